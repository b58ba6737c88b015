//! What all groups of a coordinator share: time, deadlines, writes in flight, answers.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::config::GroupConfig;
use super::ids::{GroupId, MemberId};
use super::memory::{Charge, GroupMemory};
use super::operation::FetchOffsets;
use super::record::Record;
use super::response::{JoinResponse, LeaveResponse, Response};
use super::roster::Group;
use super::static_member::ReplacedMember;
use super::timers::Timers;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{GenerationId, PartitionIndex};
use crate::base::time::{MonotonicNs, TimestampMs};
use crate::metrics::DurationCounts;

/// Names an answer that is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Names a write; a later one has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// One point in time on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For deadlines.
    pub monotonic: MonotonicNs,
    /// For what is stored.
    pub wall: TimestampMs,
}

/// Records that are to be appended together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// By this it is reported as committed or failed.
    pub id: WriteId,
    /// In this order.
    pub records: Vec<Record>,
}

/// What is to be done after a call: append the writes in their order, send the answers.
#[derive(Debug, Default)]
pub struct Effects {
    /// To be appended.
    pub writes: Vec<Write>,
    /// To be sent now.
    pub answers: Vec<(Ticket, Response)>,
}

/// What a write does when it is committed, or has failed.
#[derive(Debug)]
pub enum AfterWrite {
    /// Nothing.
    Nothing,
    /// An answer leaves.
    Answer(Ticket, Response),
    /// A group was made known; members whose join made it hear of a failure.
    NewGroup(GroupId),
    /// More of the same follows; this one has the rest.
    PartOf(WriteId),
    /// A leader's assignment counts.
    StoreAssignment {
        /// The group.
        group_id: GroupId,
        /// The generation that it is for.
        generation_id: GenerationId,
        /// What each member consumes.
        assignments: HashMap<MemberId, Bytes>,
    },
    /// A static member came back without a rebalance.
    ReplaceStatic(Box<ReplacedMember>),
    /// Groups are gone; they come back after a failure.
    DeleteGroups {
        /// Who asked for it, if it was not their age.
        answer: Option<(Ticket, Response)>,
        /// The groups as they were.
        removed: Vec<Group>,
    },
}

/// An offset's place.
pub type OffsetKey = (GroupId, String, PartitionIndex);

/// A write that is neither committed nor failed.
#[derive(Debug)]
pub struct InFlight {
    pub(super) after: AfterWrite,
    pub(super) offsets: Vec<OffsetKey>,
    /// How the writes went that are parts of the same.
    pub(super) parts: Result<(), ErrorCode>,
    /// Fetches that see what this write did.
    pub(super) fetches: Vec<(Ticket, FetchOffsets)>,
}

/// What all groups share.
#[derive(Debug)]
pub struct Core {
    pub(super) config: GroupConfig,
    pub(super) timers: Timers,
    pub(super) effects: Effects,
    pub(super) in_flight: BTreeMap<WriteId, InFlight>,
    pub(super) charge: Charge,
    pub(super) rebalances: DurationCounts,
    last_write: u64,
}

impl Core {
    pub(super) fn new(config: GroupConfig, memory: &GroupMemory) -> Self {
        Self {
            config,
            timers: Timers::default(),
            effects: Effects::default(),
            in_flight: BTreeMap::new(),
            charge: Charge::new(memory),
            rebalances: DurationCounts::default(),
            last_write: 0,
        }
    }

    pub(super) fn answer(&mut self, ticket: Ticket, response: Response) {
        self.effects.answers.push((ticket, response));
    }

    pub(super) fn answer_join(&mut self, ticket: Ticket, response: JoinResponse) {
        self.answer(ticket, Response::Join(response));
    }

    /// Has records appended; `after` happens when they are committed.
    pub(super) fn write(&mut self, records: Vec<Record>, after: AfterWrite) -> WriteId {
        self.last_write += 1;
        let id = WriteId(self.last_write);
        let offset_of = |record: &Record| match record {
            Record::Group { .. } => None,
            Record::Offset {
                group_id,
                topic,
                partition,
                ..
            } => Some((group_id.clone(), topic.clone(), *partition)),
        };
        let in_flight = InFlight {
            after,
            offsets: records.iter().filter_map(offset_of).collect(),
            parts: Ok(()),
            fetches: Vec::new(),
        };
        self.in_flight.insert(id, in_flight);
        self.effects.writes.push(Write { id, records });
        id
    }

    /// The id that the next write will have.
    pub(super) fn next_write(&self) -> WriteId {
        WriteId(self.last_write + 1)
    }
}

/// What the client of a group is told when the log refused its records
/// (`CoordinatorOperationExceptionHelper`).
#[must_use]
pub fn code_of_failed_append(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        | ErrorCode::NOT_ENOUGH_REPLICAS
        | ErrorCode::REQUEST_TIMED_OUT => ErrorCode::COORDINATOR_NOT_AVAILABLE,
        ErrorCode::NOT_LEADER_OR_FOLLOWER | ErrorCode::KAFKA_STORAGE_ERROR => {
            ErrorCode::NOT_COORDINATOR
        }
        ErrorCode::MESSAGE_TOO_LARGE
        | ErrorCode::RECORD_LIST_TOO_LARGE
        | ErrorCode::INVALID_FETCH_SIZE => ErrorCode::UNKNOWN_SERVER_ERROR,
        other => other,
    }
}

impl Response {
    /// The same answer, turned into a refusal.
    pub(super) fn refused(self, code: ErrorCode) -> Self {
        match self {
            Self::CommitOffsets(_) => Self::CommitOffsets(Err(code)),
            Self::DeleteOffsets(_) => Self::DeleteOffsets(Err(code)),
            Self::DeleteGroups(groups) => {
                Self::DeleteGroups(groups.into_iter().map(|(id, _)| (id, code)).collect())
            }
            Self::Leave(_) => Self::Leave(LeaveResponse {
                error_code: code,
                members: Vec::new(),
            }),
            other => other,
        }
    }
}
