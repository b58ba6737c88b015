//! The produce path of one partition: appends in the order in which they came, answers when the
//! asked-for replicas have them durably, nobody waiting for another partition's disk.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;

use super::append_times::AppendTimes;
use super::error::PartitionError;
use super::leadership::LeaderOnly;
use super::replica::Partition;
use crate::base::few::Few;
use crate::base::ids::{LeaderEpoch, Offset};
use crate::base::time::MonotonicNs;
use crate::io;
use crate::io::reply::ReplySender;
use crate::log::{AppendContext, AppendError, AppendOrigin, Appended, BufferBytes, Log};
use crate::metrics::{Counter, ShardMetrics, Visit};

/// While an append waits for room, those behind it are looked at so often: requests wait at least a
/// second.
const LATE_LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// When an append is answered (`acks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredAcks {
    /// 0: as soon as it is in order; nothing is sent, but a failure closes the connection.
    None,
    /// 1: when it is durable here.
    Leader,
    /// -1: when it is durable on every in-sync replica.
    All,
}

/// Why nothing of a batch is in the log, with what Kafka tells beside the code.
#[derive(Debug)]
pub struct AppendFailure {
    /// The reason.
    pub error: PartitionError,
    /// The log's first offset where Kafka names it, else -1.
    pub log_start_offset: Offset,
}

impl From<PartitionError> for AppendFailure {
    fn from(error: PartitionError) -> Self {
        Self {
            error,
            log_start_offset: Offset(-1),
        }
    }
}

/// How one partition's part of a produce ended.
pub type AppendOutcome = Result<Appended, AppendFailure>;

/// What a shard answers for its part of a produce request.
#[derive(Debug)]
pub struct AppendReply {
    /// One outcome an entry, in their order.
    pub outcomes: Few<AppendOutcome>,
    /// Those of the entry that was answered last, but for the time that all took together.
    pub times: AppendTimes,
}

/// The parts of one produce request that one shard owns; answered as one when the last is done.
#[derive(Debug)]
struct AppendGroup {
    state: RefCell<GroupState>,
}

#[derive(Debug)]
struct GroupState {
    outcomes: Vec<AppendOutcome>,
    remaining: usize,
    busy: Duration,
    reply: Option<ReplySender<AppendReply>>,
}

impl AppendGroup {
    fn new(count: usize, reply: ReplySender<AppendReply>) -> Rc<Self> {
        let mut outcomes = Vec::with_capacity(count);
        outcomes.resize_with(count, || Err(PartitionError::TimedOut.into()));
        Rc::new(Self {
            state: RefCell::new(GroupState {
                outcomes,
                remaining: count,
                busy: Duration::ZERO,
                reply: Some(reply),
            }),
        })
    }

    fn complete(&self, place: usize, outcome: AppendOutcome, times: AppendTimes) {
        let mut state = self.state.borrow_mut();
        if let Some(slot) = state.outcomes.get_mut(place) {
            *slot = outcome;
        }
        state.remaining = state.remaining.saturating_sub(1);
        state.busy += times.busy;
        if state.remaining == 0
            && let Some(reply) = state.reply.take()
        {
            let busy = state.busy;
            reply.send(AppendReply {
                outcomes: std::mem::take(&mut state.outcomes).into(),
                times: AppendTimes { busy, ..times },
            });
        }
    }
}

/// The answer that one part of a request still owes.
#[derive(Debug)]
pub struct AppendAnswer {
    owed: Owed,
}

#[derive(Debug)]
enum Owed {
    /// The only part.
    Alone(ReplySender<AppendReply>),
    /// One of several, answered together.
    Part(Rc<AppendGroup>, usize),
}

impl AppendAnswer {
    /// The answers of `count` parts, in their order; `reply` hears when the last is complete.
    pub fn of(count: usize, reply: ReplySender<AppendReply>) -> impl Iterator<Item = Self> {
        let (alone, group) = match count {
            0 | 1 => (Some(Owed::Alone(reply)), None),
            _ => (None, Some(AppendGroup::new(count, reply))),
        };
        let parts = group.into_iter().flat_map(move |group| {
            (0..count).map(move |place| Owed::Part(Rc::clone(&group), place))
        });
        alone.into_iter().chain(parts).map(|owed| Self { owed })
    }

    /// Settles this part.
    pub fn complete(self, outcome: AppendOutcome, times: AppendTimes) {
        match self.owed {
            Owed::Alone(reply) => {
                let outcomes = Few::One(outcome);
                reply.send(AppendReply { outcomes, times });
            }
            Owed::Part(group, place) => group.complete(place, outcome, times),
        }
    }
}

/// A batch on its way into the log.
#[derive(Debug)]
pub struct QueuedAppend {
    /// The batch, to be stamped in place.
    pub batch: BytesMut,
    /// What it keeps alive.
    pub buffer_bytes: BufferBytes,
    /// When it is answered.
    pub required_acks: RequiredAcks,
    /// Who appends.
    pub origin: AppendOrigin,
    /// Until when it may wait for room.
    pub deadline: MonotonicNs,
    /// How it came here.
    pub visit: Visit,
    /// Who hears of it.
    pub answer: AppendAnswer,
}

/// An append in order that waits for an end to pass it.
#[derive(Debug)]
pub struct PendingAnswer {
    appended: Appended,
    answer: AppendAnswer,
    times: AppendTimes,
}

impl PendingAnswer {
    pub(super) fn succeed(mut self, log: &Log, metrics: &ShardMetrics) {
        self.times.issue = log.durable_issue();
        self.times.answered_at = io::now().max(self.times.appended_at);
        self.times.record(metrics);
        self.answer.complete(Ok(self.appended), self.times);
    }

    pub(super) fn fail(mut self, error: PartitionError) {
        self.times.answered_at = io::now().max(self.times.appended_at);
        self.answer.complete(Err(error.into()), self.times);
    }
}

impl Partition {
    /// Queues an append. Appends of one partition are taken in this order and never overtake each
    /// other, also where one waits for room. True when nobody is at work on them: then
    /// [`Self::drain_appends`] is to be run.
    #[must_use]
    pub fn enqueue_append(&self, queued: QueuedAppend) -> bool {
        self.appends.borrow_mut().push_back(queued);
        !self.is_appending.replace(true)
    }

    /// Takes queued appends until there is none left.
    pub async fn drain_appends(&self) {
        loop {
            let next = self.appends.borrow_mut().pop_front();
            let Some(queued) = next else { break };
            self.append_in_turn(queued).await;
        }
        self.is_appending.set(false);
    }

    /// One append; those behind it whose time passes meanwhile need not wait for it to be told.
    async fn append_in_turn(&self, queued: QueuedAppend) {
        let mut appending = pin!(self.append_one(queued));
        loop {
            let deadline = io::now().after(LATE_LOOK_INTERVAL);
            let appended = io::task::with_deadline(deadline, appending.as_mut()).await;
            if appended.is_some() {
                return;
            }
            self.refuse_late();
        }
    }

    /// Answers the queued appends whose time has passed: they are not in the log.
    fn refuse_late(&self) {
        let now = io::now();
        let late: Vec<QueuedAppend> = {
            let mut appends = self.appends.borrow_mut();
            if appends.iter().all(|queued| queued.deadline > now) {
                return;
            }
            let (late, rest) = appends
                .drain(..)
                .partition::<Vec<_>, _>(|queued| queued.deadline <= now);
            appends.extend(rest);
            late
        };
        for mut queued in late {
            self.count_failure(queued.batch.len());
            queued.visit.started_at = now;
            let times = AppendTimes {
                visit: queued.visit,
                appended_at: now,
                answered_at: now,
                ..AppendTimes::default()
            };
            let timed_out = Err(PartitionError::TimedOut.into());
            queued.answer.complete(timed_out, times);
        }
    }

    async fn append_one(&self, queued: QueuedAppend) {
        let QueuedAppend {
            batch,
            buffer_bytes,
            required_acks,
            origin,
            deadline,
            visit,
            answer,
        } = queued;
        let bytes = batch.len();
        let mut times = AppendTimes {
            visit,
            ..AppendTimes::default()
        };
        // Others of this turn came before it.
        times.visit.started_at = io::now().max(self.appended_at.get());
        let appending =
            self.append_records_to_leader((batch, buffer_bytes), (required_acks, origin), deadline);
        match appending.await {
            Err(failure) => {
                self.count_failure(bytes);
                self.note_appended(&mut times);
                times.answered_at = times.appended_at;
                answer.complete(Err(failure), times);
            }
            Ok(appended) => {
                self.count(&appended, bytes);
                self.note_appended(&mut times);
                let pending = PendingAnswer {
                    appended,
                    answer,
                    times,
                };
                if required_acks == RequiredAcks::None {
                    pending.succeed(&self.log(), &self.metrics);
                } else {
                    self.answer_when_durable(pending, required_acks);
                }
            }
        }
    }

    /// The thread was at it from its beginning on, or from when it went on after a wait.
    fn note_appended(&self, times: &mut AppendTimes) {
        times.appended_at = io::clock();
        let began = times.visit.started_at.max(io::turn_began());
        times.busy = times.appended_at.since(began);
        self.appended_at.set(times.appended_at);
    }

    fn count_failure(&self, bytes: usize) {
        self.metrics.add(Counter::AppendsFailed, 1);
        self.metrics.add(Counter::BytesRefused, bytes as u64);
        self.note(|counts| {
            counts.appends += 1;
            counts.appends_failed += 1;
            counts.bytes_refused += bytes as u64;
        });
    }

    fn count(&self, appended: &Appended, bytes: usize) {
        if appended.duplicate {
            self.metrics.add(Counter::BatchesDuplicate, 1);
            return;
        }
        let records = appended.last_offset.0 - appended.base_offset.0 + 1;
        self.note(|counts| {
            counts.appends += 1;
            counts.records_in += records.unsigned_abs();
            counts.bytes_in += bytes as u64;
        });
        self.metrics.add(Counter::BatchesAppended, 1);
        self.metrics.add(Counter::BytesAppended, bytes as u64);
        self.metrics
            .add(Counter::RecordsAppended, records.unsigned_abs());
    }

    async fn append_records_to_leader(
        &self,
        (batch, buffer_bytes): (BytesMut, BufferBytes),
        (required_acks, origin): (RequiredAcks, AppendOrigin),
        deadline: MonotonicNs,
    ) -> AppendOutcome {
        self.check_append(required_acks)?;
        if io::now() >= deadline {
            return Err(PartitionError::TimedOut.into());
        }
        let change = self.begin_change(deadline).await;
        let _change = change.ok_or(PartitionError::TimedOut)?;
        let leader_epoch = self.check_append(required_acks)?;
        let context = AppendContext {
            origin,
            leader_epoch,
            deadline,
            buffer_bytes,
        };
        self.log()
            .append(batch, context)
            .await
            .map_err(|error| AppendFailure {
                log_start_offset: self.told_start(&error),
                error: error.into(),
            })
    }

    fn check_append(&self, required_acks: RequiredAcks) -> Result<LeaderEpoch, PartitionError> {
        self.check_open()?;
        let leadership = self.leadership.borrow();
        leadership.check(self.local, LeaderEpoch::NONE, LeaderOnly::Yes)?;
        if required_acks == RequiredAcks::All {
            leadership.check_in_sync(self.min_insync_replicas.get())?;
        }
        Ok(leadership.leader_epoch)
    }

    /// Kafka names the log's start where the records themselves were at fault
    /// (`ReplicaManager.appendToLocalLog`).
    fn told_start(&self, error: &AppendError) -> Offset {
        match error {
            AppendError::OutOfOrderSequence(_) | AppendError::InvalidProducerEpoch(_) => {
                self.log().log_start_offset()
            }
            AppendError::Invalid { code, .. } if error_is_of_records(*code) => {
                self.log().log_start_offset()
            }
            _ => Offset(-1),
        }
    }

    fn answer_when_durable(&self, pending: PendingAnswer, required_acks: RequiredAcks) {
        let end = pending.appended.last_offset.plus(1);
        let (reached, queue) = match required_acks {
            RequiredAcks::All => (self.high_watermark(), &self.pending_all),
            _ => (self.log().durable_end(), &self.pending_leader),
        };
        if end <= reached {
            pending.succeed(&self.log(), &self.metrics);
        } else if self.is_closed() {
            pending.fail(PartitionError::NotLeader);
        } else {
            queue.borrow_mut().push(end, pending);
        }
    }
}

/// Whether a validation's code is that of Kafka's `RecordValidationException`.
#[must_use]
pub fn error_is_of_records(code: crate::base::error_code::ErrorCode) -> bool {
    use crate::base::error_code::ErrorCode;
    code == ErrorCode::INVALID_RECORD || code == ErrorCode::INVALID_TIMESTAMP
}
