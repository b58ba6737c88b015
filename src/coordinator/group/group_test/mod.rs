//! A coordinator over a log in memory, and what it does in the cases that Kafka's
//! `GroupMetadataManagerTest` and `OffsetMetadataManagerTest` name.

mod admin_test;
mod join_test;
mod limits_test;
mod model_test;
mod offsets_test;
mod static_test;
mod sync_test;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{GenerationId, LeaderEpoch, Offset, PartitionIndex, Uuid};
use crate::base::time::{MonotonicNs, TimestampMs};

/// When the tests begin, by the wall.
const BEGIN_MS: i64 = 1_700_000_000_000;

const MEMORY_BYTES: usize = 1 << 30;

pub(super) struct Harness {
    pub(super) coordinator: GroupCoordinator,
    pub(super) log: Vec<Record>,
    /// Writes that are neither committed nor failed; only filled while `holds` is set.
    pub(super) held: VecDeque<Write>,
    pub(super) holds: bool,
    pub(super) answers: HashMap<Ticket, Response>,
    pub(super) memory: GroupMemory,
    elapsed: Duration,
    tickets: u64,
}

impl Harness {
    pub(super) fn new() -> Self {
        Self::with(GroupConfig::default())
    }

    pub(super) fn with(config: GroupConfig) -> Self {
        Self::within(config, MEMORY_BYTES)
    }

    pub(super) fn within(config: GroupConfig, bytes_max: usize) -> Self {
        let memory = GroupMemory::new(bytes_max);
        let mut harness = Self {
            coordinator: GroupCoordinator::new(config, &memory),
            memory,
            log: Vec::new(),
            held: VecDeque::new(),
            holds: false,
            answers: HashMap::new(),
            elapsed: Duration::ZERO,
            tickets: 0,
        };
        let effects = harness.coordinator.loaded(harness.now());
        harness.take(effects);
        harness
    }

    pub(super) fn now(&self) -> Now {
        Now {
            monotonic: MonotonicNs(0).after(self.elapsed),
            wall: TimestampMs(BEGIN_MS + self.elapsed.as_millis() as i64),
        }
    }

    fn take(&mut self, effects: Effects) {
        for (ticket, response) in effects.answers {
            let before = self.answers.insert(ticket, response);
            assert!(before.is_none(), "{ticket:?} is answered twice");
        }
        self.held.extend(effects.writes);
        while !self.holds && !self.held.is_empty() {
            self.commit();
        }
    }

    pub(super) fn commit(&mut self) {
        let write = self.held.pop_front().expect("a write is held");
        self.log.extend(write.records);
        let effects = self.coordinator.committed(self.now(), write.id);
        self.take(effects);
    }

    pub(super) fn fail(&mut self, code: ErrorCode) {
        let write = self.held.pop_front().expect("a write is held");
        let code = code_of_failed_append(code);
        let effects = self.coordinator.failed(self.now(), write.id, code);
        self.take(effects);
    }

    pub(super) fn ask(&mut self, operation: Operation) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let effects = self.coordinator.handle(self.now(), ticket, operation);
        self.take(effects);
        ticket
    }

    pub(super) fn answer(&mut self, operation: Operation) -> Response {
        let ticket = self.ask(operation);
        self.answers.remove(&ticket).expect("it is answered")
    }

    /// Lets time pass, deadline by deadline.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.elapsed + time;
        while let Some(next) = self.coordinator.next_deadline() {
            let next = Duration::from_nanos(next.0);
            if next > end {
                break;
            }
            self.elapsed = self.elapsed.max(next);
            let effects = self.coordinator.expire(self.now());
            self.take(effects);
        }
        self.elapsed = end;
    }

    pub(super) fn pass_ms(&mut self, ms: u64) {
        self.pass(Duration::from_millis(ms));
    }

    pub(super) fn join(&mut self, join: Join) -> Ticket {
        self.ask(Operation::Join(Box::new(join)))
    }

    pub(super) fn joined(&mut self, ticket: Ticket) -> JoinResponse {
        match self.answers.remove(&ticket) {
            Some(Response::Join(response)) => response,
            other => panic!("no answer to a join: {other:?}"),
        }
    }

    pub(super) fn join_code(&mut self, join: Join) -> ErrorCode {
        let ticket = self.join(join);
        self.joined(ticket).error_code
    }

    pub(super) fn synced(&mut self, ticket: Ticket) -> SyncResponse {
        match self.answers.remove(&ticket) {
            Some(Response::Sync(response)) => response,
            other => panic!("no answer to a sync: {other:?}"),
        }
    }

    pub(super) fn sync(&mut self, joined: &JoinResponse, given: &[(&str, &str)]) -> Ticket {
        self.ask(Operation::Sync(Box::new(sync_of(joined, given))))
    }

    pub(super) fn heartbeat(&mut self, member_id: &str, generation: i32) -> ErrorCode {
        let heartbeat = Heartbeat {
            group_id: "g".into(),
            generation_id: GenerationId(generation),
            member_id: member_id.into(),
            instance_id: None,
        };
        match self.answer(Operation::Heartbeat(heartbeat)) {
            Response::Heartbeat(code) => code,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn leave(&mut self, members: &[(&str, Option<&str>)]) -> LeaveResponse {
        let leaving = |(member_id, instance_id): &(&str, Option<&str>)| LeavingMember {
            member_id: (*member_id).into(),
            instance_id: instance_id.map(InstanceId::from),
        };
        let leave = Leave {
            group_id: "g".into(),
            members: members.iter().map(leaving).collect(),
        };
        match self.answer(Operation::Leave(leave)) {
            Response::Leave(response) => response,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn state(&mut self) -> GroupState {
        self.described("g").state
    }

    pub(super) fn described(&mut self, group_id: &str) -> DescribedGroup {
        let operation = Operation::DescribeGroups(vec![group_id.into()]);
        match self.answer(operation) {
            Response::DescribeGroups(mut groups) => groups.remove(0),
            other => panic!("{other:?}"),
        }
    }

    /// A stable group "g" of so many members, in the order of their ids; the first one leads.
    pub(super) fn stable(&mut self, count: usize) -> Vec<JoinResponse> {
        let tickets: Vec<_> = (0..count).map(|_| self.join(old_client())).collect();
        // Newcomers prolong the first wait.
        self.pass_ms(7_000);
        let mut joined: Vec<_> = tickets.into_iter().map(|one| self.joined(one)).collect();
        joined.sort_by_key(|one| one.member_id != one.leader);
        let given: Vec<(String, String)> = (joined.iter().enumerate())
            .map(|(place, one)| (one.member_id.clone(), format!("part {place}")))
            .collect();
        let given: Vec<_> = given
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        let leader = self.sync(&joined[0], &given);
        assert_eq!(self.synced(leader).assignment, "part 0");
        for (place, one) in joined.iter().enumerate().skip(1) {
            let ticket = self.sync(one, &[]);
            assert_eq!(self.synced(ticket).assignment, format!("part {place}"));
        }
        joined
    }

    /// Another coordinator with the state that the log holds.
    pub(super) fn replayed(&self, config: GroupConfig) -> GroupCoordinator {
        let mut coordinator = GroupCoordinator::new(config, &self.memory);
        for record in &self.log {
            coordinator.replay(record.clone());
        }
        coordinator
    }
}

/// A client that wants a topic and gets its member id with its first join.
pub(super) fn old_client() -> Join {
    use std::cell::Cell;
    thread_local!(static FRESH: Cell<u8> = const { Cell::new(0) });
    let number = FRESH.get().wrapping_add(1);
    FRESH.set(number);
    Join {
        group_id: "g".into(),
        member_id: "".into(),
        instance_id: None,
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: "consumer".into(),
        protocols: vec![consumer("range", "topic")],
        client_id: "client".into(),
        client_host: "/127.0.0.1".into(),
        requires_known_member_id: false,
        supports_skipping_assignment: false,
        fresh_id: Uuid([number; 16]),
    }
}

/// The same client, known by its id.
pub(super) fn known(member_id: &str) -> Join {
    Join {
        member_id: member_id.into(),
        ..old_client()
    }
}

pub(super) fn static_client(instance_id: &str) -> Join {
    Join {
        instance_id: Some(instance_id.into()),
        supports_skipping_assignment: true,
        ..old_client()
    }
}

pub(super) fn consumer(name: &str, topic: &str) -> Protocol {
    let mut metadata = b"\0\x01\0\0\0\x01\0".to_vec();
    metadata.push(topic.len() as u8);
    metadata.extend_from_slice(topic.as_bytes());
    metadata.extend_from_slice(&[0; 8]);
    Protocol {
        name: name.into(),
        metadata: metadata.into(),
    }
}

pub(super) fn sync_of(joined: &JoinResponse, given: &[(&str, &str)]) -> Sync {
    let assigned = |(member_id, assignment): &(&str, &str)| Assignment {
        member_id: (*member_id).into(),
        assignment: Bytes::copy_from_slice(assignment.as_bytes()),
    };
    Sync {
        group_id: "g".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.as_str().into(),
        instance_id: None,
        protocol_type: joined.protocol_type.clone(),
        protocol_name: joined.protocol_name.clone(),
        assignments: given.iter().map(assigned).collect(),
    }
}

/// A commit of offset `offset` for partition 0 of `topic`, by no member.
pub(super) fn commit_of(group_id: &str, topic: &str, offset: i64) -> OffsetCommit {
    OffsetCommit {
        group_id: group_id.into(),
        generation_id: GenerationId::NONE,
        member_id: "".into(),
        instance_id: None,
        retention_ms: -1,
        tells_unknown_group: true,
        topics: vec![CommitTopic {
            name: topic.into(),
            topic_id: Uuid([1; 16]),
            partitions: vec![CommitPartition {
                partition: PartitionIndex(0),
                offset: Offset(offset),
                leader_epoch: LeaderEpoch(3),
                metadata: Some("m".into()),
            }],
        }],
    }
}

pub(super) fn by(joined: &JoinResponse, commit: OffsetCommit) -> OffsetCommit {
    OffsetCommit {
        generation_id: joined.generation_id,
        member_id: joined.member_id.as_str().into(),
        ..commit
    }
}

pub(super) fn commit_code(harness: &mut Harness, commit: OffsetCommit) -> ErrorCode {
    match harness.answer(Operation::CommitOffsets(commit)) {
        Response::CommitOffsets(Ok(codes)) => codes[0].partitions[0].1,
        Response::CommitOffsets(Err(code)) => code,
        other => panic!("{other:?}"),
    }
}

pub(super) fn fetch_of(group_id: &str, topic: &str) -> FetchOffsets {
    FetchOffsets {
        group_id: group_id.into(),
        topics: Some(vec![TopicPartitions {
            name: topic.into(),
            partitions: vec![PartitionIndex(0)],
        }]),
        require_stable: false,
        bytes_max: FETCHED_BYTES_MAX,
    }
}

pub(super) fn fetched(harness: &mut Harness, group_id: &str, topic: &str) -> i64 {
    match harness.answer(Operation::FetchOffsets(fetch_of(group_id, topic))) {
        Response::FetchOffsets(fetched) => fetched.topics[0].partitions[0].offset.0,
        other => panic!("{other:?}"),
    }
}
