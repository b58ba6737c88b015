//! One partition's coordinator at work: its answers, its records, its time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use super::{GroupAnswer, GroupServiceOptions, loading};
use crate::base::error_code::ErrorCode;
use crate::base::few::Few;
use crate::base::ids::{TopicId, TopicPartition};
use crate::base::time::MonotonicNs;
use crate::coordinator::group::{
    Effects, GroupCoordinator, GroupCounts, GroupId, GroupReport, NamedTopic, Now, Operation,
    Ticket, Write, WriteId, code_of_failed_append,
};
use crate::coordinator::group_records;
use crate::io::reply::{ReplySender, reply_slot};
use crate::io::wait::Waiters;
use crate::io::{self, TaskClass};
use crate::log::{AppendOrigin, BufferBytes};
use crate::metrics::Visit;
use crate::partition::RequiredAcks;
use crate::shard::{AppendEntry, AppendMessage, Shard, ShardMessage};

enum Phase {
    Loading,
    Active(Box<GroupCoordinator>),
    Failed,
    Released,
}

impl Phase {
    /// Why an operation cannot be taken now, if it cannot; `has_topic` says which topics this
    /// shard's metadata knows.
    fn refusal(
        &self,
        operation: &Operation,
        has_topic: impl Fn(&str, TopicId) -> bool,
    ) -> Option<ErrorCode> {
        match self {
            // Whoever has sorted it knows another metadata: it is sorted anew when it comes again.
            Self::Active(_) if !has_topics_of(operation, has_topic) => {
                Some(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
            }
            Self::Active(_) => None,
            Self::Loading => Some(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
            Self::Failed | Self::Released => Some(ErrorCode::NOT_COORDINATOR),
        }
    }
}

/// An offset for a topic that was forgotten meanwhile would be left for ever, and for the next
/// topic of that name.
fn has_topics_of(operation: &Operation, has_topic: impl Fn(&str, TopicId) -> bool) -> bool {
    match operation {
        Operation::CommitOffsets(commit) => {
            let mut topics = commit.topics.iter();
            topics.all(|topic| has_topic(&topic.name, topic.topic_id))
        }
        _ => true,
    }
}

/// A partition of `__consumer_offsets` with its coordinator.
pub struct Hosted {
    shard: Rc<Shard>,
    id: TopicPartition,
    options: Rc<GroupServiceOptions>,
    phase: RefCell<Phase>,
    replies: RefCell<HashMap<Ticket, ReplySender<GroupAnswer>>>,
    last_ticket: Cell<u64>,
    /// Until when the timekeeper sleeps.
    sleeps_until: Cell<MonotonicNs>,
    has_changed: Waiters,
}

impl fmt::Debug for Hosted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Hosted")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

fn now() -> Now {
    Now {
        monotonic: io::now(),
        wall: io::wall_clock(),
    }
}

impl Hosted {
    /// Starts to load the partition.
    pub fn load(
        shard: &Rc<Shard>,
        id: TopicPartition,
        options: &Rc<GroupServiceOptions>,
    ) -> Rc<Self> {
        let hosted = Rc::new(Self {
            shard: Rc::clone(shard),
            id,
            options: Rc::clone(options),
            phase: RefCell::new(Phase::Loading),
            replies: RefCell::default(),
            last_ticket: Cell::new(0),
            sleeps_until: Cell::new(MonotonicNs(0)),
            has_changed: Waiters::default(),
        });
        io::spawn(TaskClass::Background, Rc::clone(&hosted).run());
        hosted
    }

    async fn run(self: Rc<Self>) {
        let loaded = loading::load(&self.shard, self.id, &self.options).await;
        // Deleted while they could not be forgotten: before a kill, or while this was loaded.
        // Others may have their names by now. The one node's metadata is never older than its
        // offsets.
        let mut gone;
        let effects = {
            let mut phase = self.phase.borrow_mut();
            if !matches!(*phase, Phase::Loading) {
                return;
            }
            match loaded {
                Ok(mut coordinator) => {
                    let effects = coordinator.loaded(now());
                    gone = coordinator.topics();
                    gone.retain(|(name, id)| !self.has_topic(name, *id));
                    *phase = Phase::Active(Box::new(coordinator));
                    effects
                }
                Err(fault) => {
                    let index = self.id.partition;
                    tracing::error!("the groups of partition {index} cannot be loaded: {fault}");
                    *phase = Phase::Failed;
                    return;
                }
            }
        };
        self.perform(effects);
        if !gone.is_empty() {
            self.forget_topics(&gone);
        }
        self.keep_time().await;
    }

    /// Lets deadlines pass until the partition is given up.
    async fn keep_time(self: Rc<Self>) {
        loop {
            let next = match &*self.phase.borrow() {
                Phase::Active(coordinator) => coordinator.next_deadline(),
                _ => return,
            };
            let next = next.unwrap_or(MonotonicNs(u64::MAX));
            self.sleeps_until.set(next);
            let changed = self.has_changed.wait_for(|| self.is_due_before(next));
            let _ = io::with_deadline(next, changed).await;
            self.with(|coordinator| coordinator.expire(now()));
        }
    }

    fn is_due_before(&self, deadline: MonotonicNs) -> Option<()> {
        match &*self.phase.borrow() {
            Phase::Active(coordinator) => {
                let next = coordinator.next_deadline();
                next.is_some_and(|next| next < deadline).then_some(())
            }
            _ => Some(()),
        }
    }

    /// Has the coordinator do something, then what follows from it.
    fn with(self: &Rc<Self>, work: impl FnOnce(&mut GroupCoordinator) -> Effects) {
        let effects = match &mut *self.phase.borrow_mut() {
            Phase::Active(coordinator) => {
                let effects = work(coordinator);
                let next = coordinator.next_deadline();
                if next.is_some_and(|next| next < self.sleeps_until.get()) {
                    self.has_changed.wake_all();
                }
                effects
            }
            _ => return,
        };
        self.perform(effects);
    }

    fn perform(self: &Rc<Self>, effects: Effects) {
        for (ticket, response) in effects.answers {
            let reply = self.replies.borrow_mut().remove(&ticket);
            if let Some(reply) = reply {
                reply.send(Ok(response));
            }
        }
        for write in effects.writes {
            self.append(write);
        }
    }

    /// Takes an operation.
    pub fn ask(self: &Rc<Self>, operation: Operation, reply: ReplySender<GroupAnswer>) {
        let has_topic = |name: &str, id| self.has_topic(name, id);
        let refusal = self.phase.borrow().refusal(&operation, has_topic);
        if let Some(code) = refusal {
            reply.send(Err(code));
            return;
        }
        let ticket = self.ticket();
        self.replies.borrow_mut().insert(ticket, reply);
        self.with(|coordinator| coordinator.handle(now(), ticket, operation));
        self.tell_refusals();
    }

    /// Clients are told no more than that the coordinator is not available.
    fn tell_refusals(&self) {
        let memory = &self.options.memory;
        if let Some(count) = memory.refused_untold(io::now()) {
            let (used, max) = (memory.used(), memory.bytes_max());
            tracing::warn!(
                "groups and offsets of shard {} have {used} of {max} bytes: {count} requests for \
                 more were refused (raise coreline.memory)",
                self.shard.id()
            );
        }
    }

    fn has_topic(&self, name: &str, id: TopicId) -> bool {
        (self.options.has_topic)(&self.shard, name, id)
    }

    /// Offsets for deleted topics go; nobody waits for it.
    pub fn forget_topics(self: &Rc<Self>, topics: &[NamedTopic]) {
        let operation = Operation::ForgetTopics(topics.to_vec());
        let ticket = self.ticket();
        self.with(|coordinator| coordinator.handle(now(), ticket, operation));
    }

    fn ticket(&self) -> Ticket {
        self.last_ticket.set(self.last_ticket.get() + 1);
        Ticket(self.last_ticket.get())
    }

    fn append(self: &Rc<Self>, write: Write) {
        let (reply, appended) = reply_slot();
        let id = write.id;
        match group_records::batch(&write.records, self.options.codec, io::wall_clock()) {
            Ok(batch) => {
                let entry = AppendEntry {
                    partition: self.id,
                    batch,
                    buffer_bytes: BufferBytes::default(),
                };
                let message = AppendMessage {
                    entries: Few::One(entry),
                    required_acks: RequiredAcks::All,
                    origin: AppendOrigin::Coordinator,
                    deadline: io::now().after(self.options.commit_timeout),
                    from: self.shard.id(),
                    visit: Visit::sent(io::now()),
                    reply,
                };
                let own = self.shard.id();
                self.shard.send(own, ShardMessage::Append(message));
            }
            Err(fault) => {
                tracing::warn!("a group's records cannot be written: {fault}");
                drop(reply);
            }
        }
        let hosted = Rc::clone(self);
        io::spawn(TaskClass::Produce, async move {
            let result = match appended.await {
                Some(reply) => match reply.outcomes.into_iter().next() {
                    Some(Ok(_)) => Ok(()),
                    Some(Err(failure)) => Err(failure.error.error_code()),
                    None => Err(ErrorCode::UNKNOWN_SERVER_ERROR),
                },
                None => Err(ErrorCode::UNKNOWN_SERVER_ERROR),
            };
            hosted.settle(id, result);
        });
    }

    fn settle(self: &Rc<Self>, write: WriteId, result: Result<(), ErrorCode>) {
        self.with(|coordinator| match result {
            Ok(()) => coordinator.committed(now(), write),
            Err(code) => coordinator.failed(now(), write, code_of_failed_append(code)),
        });
    }

    /// Gives the partition up. Who waits hears it by the loss of the answer's sender.
    pub fn release(&self) {
        *self.phase.borrow_mut() = Phase::Released;
        self.replies.take();
        self.has_changed.wake_all();
    }

    /// Some groups, those after `from`; none until it is loaded.
    pub fn report(&self, from: Option<&GroupId>, groups_max: usize) -> Vec<GroupReport> {
        match &*self.phase.borrow() {
            Phase::Active(coordinator) => coordinator.report(from, groups_max),
            _ => Vec::new(),
        }
    }

    /// How many groups and offsets there are, once loaded.
    pub fn counts(&self) -> Option<GroupCounts> {
        match &*self.phase.borrow() {
            Phase::Active(coordinator) => Some(coordinator.counts()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{GenerationId, Uuid};
    use crate::coordinator::group::{CommitTopic, GroupConfig, GroupMemory, OffsetCommit};

    const KNOWN: TopicId = Uuid([1; 16]);
    const OTHER: TopicId = Uuid([2; 16]);

    fn commit(topics: &[(&str, TopicId)]) -> Operation {
        let topic = |(name, topic_id): &(&str, TopicId)| CommitTopic {
            name: (*name).to_owned(),
            topic_id: *topic_id,
            partitions: Vec::new(),
        };
        Operation::CommitOffsets(OffsetCommit {
            group_id: "g".into(),
            generation_id: GenerationId::NONE,
            member_id: "".into(),
            instance_id: None,
            retention_ms: -1,
            tells_unknown_group: true,
            topics: topics.iter().map(topic).collect(),
        })
    }

    fn active() -> Phase {
        let memory = GroupMemory::new(1 << 20);
        let coordinator = GroupCoordinator::new(GroupConfig::default(), &memory);
        Phase::Active(Box::new(coordinator))
    }

    #[test]
    fn a_commit_for_a_topic_that_is_not_known_here_is_to_come_again() {
        let again = Some(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        let refusal = |operation: &Operation| {
            active().refusal(operation, |name, id| (name, id) == ("t", KNOWN))
        };
        assert_eq!(refusal(&commit(&[("t", KNOWN)])), None);
        assert_eq!(refusal(&commit(&[])), None);
        assert_eq!(refusal(&commit(&[("new", KNOWN)])), again, "not yet");
        assert_eq!(refusal(&commit(&[("t", OTHER)])), again, "made anew");
        assert_eq!(
            refusal(&commit(&[("t", KNOWN), ("new", OTHER)])),
            again,
            "one of two"
        );
        let of_no_topic = Operation::DescribeGroups(vec!["g".into()]);
        assert_eq!(refusal(&of_no_topic), None);
    }

    #[test]
    fn who_has_not_loaded_or_has_given_up_says_so_whatever_topics_it_knows() {
        for is_known in [false, true] {
            let refusal = |phase: Phase| phase.refusal(&commit(&[("t", KNOWN)]), |_, _| is_known);
            let again = Some(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
            assert_eq!(refusal(Phase::Loading), again);
            let elsewhere = Some(ErrorCode::NOT_COORDINATOR);
            assert_eq!(refusal(Phase::Failed), elsewhere);
            assert_eq!(refusal(Phase::Released), elsewhere);
        }
    }
}
