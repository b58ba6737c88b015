//! One shard: its partitions, its router table, and the loop that takes its messages.
//!
//! Every change to a partition comes out of this loop, requests of the own connections included.
//! The loop never waits: an append joins its partition's queue, a read becomes a task.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::append_workers::AppendWorkers;
use super::credit::SharedBudget;
use super::log_directories::LogDirectories;
use super::message::{AppendMessage, ShardMessage, UnparkMessage, WakeMessage};
use super::outbox::Outbox;
use super::parking::FetchSignal;
use super::router::Router;
use crate::base::ids::{BrokerId, ShardId, TopicPartition};
use crate::io::{self, Inbox, InboxSender};
use crate::log::LogError;
use crate::metrics::{Counter, ShardMetrics};
use crate::partition::{
    AppendAnswer, AppendTimes, Departure, ParkedFetch, Partition, PartitionError, QueuedAppend,
    Waiter, WakeSink,
};

/// How long a message waits for room in a full inbox before it is tried again.
const INBOX_RETRY: Duration = Duration::from_micros(200);

/// What a shard is made from.
pub struct ShardOptions {
    /// Its place in the router.
    pub id: ShardId,
    /// This broker.
    pub broker_id: BrokerId,
    /// The ways to all shards, in order of their ids.
    pub senders: Vec<InboxSender<ShardMessage>>,
    /// Its logs.
    pub logs: Rc<LogDirectories>,
    /// Memory for requests and responses.
    pub budget: SharedBudget,
    /// Where the shard counts.
    pub metrics: Rc<ShardMetrics>,
}

/// One core's state. All methods run on its thread.
pub struct Shard {
    id: ShardId,
    broker_id: BrokerId,
    logs: Rc<LogDirectories>,
    outbox: Outbox,
    append_workers: Rc<AppendWorkers>,
    budget: SharedBudget,
    metrics: Rc<ShardMetrics>,
    partitions: RefCell<HashMap<TopicPartition, Rc<Partition>>>,
    router: RefCell<Arc<Router>>,
    fetches: RefCell<HashMap<u64, Weak<FetchSignal>>>,
    fetch_number: Cell<u64>,
    attachment: RefCell<Option<Rc<dyn Any>>>,
}

impl fmt::Debug for Shard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shard")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Shard {
    /// A shard that hosts nothing yet.
    #[must_use]
    pub fn new(options: ShardOptions) -> Rc<Self> {
        Rc::new(Self {
            id: options.id,
            broker_id: options.broker_id,
            logs: options.logs,
            outbox: Outbox::new(options.id, options.senders),
            append_workers: Rc::default(),
            budget: options.budget,
            metrics: options.metrics,
            partitions: RefCell::default(),
            router: RefCell::default(),
            fetches: RefCell::default(),
            fetch_number: Cell::new(0),
            attachment: RefCell::new(None),
        })
    }

    /// Its place in the router.
    #[must_use]
    pub fn id(&self) -> ShardId {
        self.id
    }

    /// This broker.
    #[must_use]
    pub fn broker_id(&self) -> BrokerId {
        self.broker_id
    }

    /// Its logs.
    #[must_use]
    pub fn logs(&self) -> &Rc<LogDirectories> {
        &self.logs
    }

    /// Memory for requests and responses in flight.
    #[must_use]
    pub fn budget(&self) -> &SharedBudget {
        &self.budget
    }

    /// Where the shard counts.
    #[must_use]
    pub fn metrics(&self) -> &Rc<ShardMetrics> {
        &self.metrics
    }

    /// The shard that owns `partition`; `None` when this broker does not host it.
    #[must_use]
    pub fn owner(&self, partition: TopicPartition) -> Option<ShardId> {
        self.router.borrow().owner(partition)
    }

    /// Whether `partition` belongs to this broker and its log does not serve: it does not open, or
    /// its directory is offline.
    #[must_use]
    pub fn is_offline(&self, partition: TopicPartition) -> bool {
        self.router.borrow().is_offline(partition)
    }

    /// Partitions of this broker, on any shard, whose logs do not serve.
    #[must_use]
    pub fn offline_count(&self) -> usize {
        self.router.borrow().offline_len()
    }

    /// Replaces the router table whole.
    pub fn set_router(&self, router: Arc<Router>) {
        *self.router.borrow_mut() = router;
    }

    /// What the layer above keeps on this shard.
    pub fn attach(&self, attachment: Rc<dyn Any>) {
        *self.attachment.borrow_mut() = Some(attachment);
    }

    /// What was attached, if it is of this type.
    #[must_use]
    pub fn attachment<T: 'static>(&self) -> Option<Rc<T>> {
        self.attachment.borrow().clone()?.downcast().ok()
    }

    /// Gives up what was attached.
    pub fn detach(&self) {
        self.attachment.borrow_mut().take();
    }

    /// All shards, this one included.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        let count = u16::try_from(self.outbox.shard_count()).unwrap_or(u16::MAX);
        (0..count).map(ShardId)
    }

    /// Sends a message to a shard, this one included.
    pub fn send(&self, to: ShardId, message: ShardMessage) {
        if to != self.id {
            self.metrics.add(Counter::Hops, 1);
        }
        self.outbox.send(to, message);
    }

    /// A partition hosted here.
    #[must_use]
    pub fn partition(&self, id: TopicPartition) -> Option<Rc<Partition>> {
        self.partitions.borrow().get(&id).cloned()
    }

    /// Why a partition that is asked for is not hosted here. One that the table still has was given
    /// up because the broker stops: clients are to look for it again, not to take it for deleted
    /// (`ReplicaManager.getPartitionOrError`).
    pub(super) fn absence(&self, id: TopicPartition) -> PartitionError {
        if self.is_offline(id) {
            LogError::Offline("its log does not serve".to_owned()).into()
        } else if self.owner(id).is_some() {
            PartitionError::NotLeader
        } else {
            PartitionError::Unknown
        }
    }

    /// How many partitions are hosted here.
    #[must_use]
    pub fn partition_count(&self) -> usize {
        self.partitions.borrow().len()
    }

    /// All partitions hosted here.
    #[must_use]
    pub fn partitions(&self) -> Vec<Rc<Partition>> {
        self.partitions.borrow().values().cloned().collect()
    }

    /// Hosts a partition.
    pub fn insert(&self, partition: Rc<Partition>) {
        self.partitions
            .borrow_mut()
            .insert(partition.id(), partition);
    }

    /// Stops hosting a partition: what waits on it is answered. Its log is the caller's to delete.
    pub fn remove(&self, id: TopicPartition, why: Departure) -> Option<Rc<Partition>> {
        let partition = self.partitions.borrow_mut().remove(&id)?;
        partition.close(why);
        Some(partition)
    }

    /// How partitions of this shard wake parked fetches of any shard.
    #[must_use]
    pub fn wake_sink(self: &Rc<Self>) -> WakeSink {
        let shard = Rc::downgrade(self);
        Rc::new(move |woken: &[Waiter]| {
            if let Some(shard) = shard.upgrade() {
                shard.wake(woken);
            }
        })
    }

    pub(super) fn wake(&self, woken: &[Waiter]) {
        for waiter in woken {
            let (number, place) = (waiter.fetch.number, waiter.place);
            let message = ShardMessage::Wake(WakeMessage {
                number,
                place,
                sent_at: io::now(),
            });
            self.send(waiter.fetch.shard, message);
        }
    }

    /// Registers a fetch that may park; it is forgotten with the signal.
    #[must_use]
    pub fn register_fetch(&self) -> (ParkedFetch, Rc<FetchSignal>) {
        let number = self.fetch_number.get() + 1;
        self.fetch_number.set(number);
        let signal = Rc::new(FetchSignal::default());
        self.fetches
            .borrow_mut()
            .insert(number, Rc::downgrade(&signal));
        let shard = self.id;
        (ParkedFetch { shard, number }, signal)
    }

    /// Forgets a fetch.
    pub fn forget_fetch(&self, fetch: ParkedFetch) {
        self.fetches.borrow_mut().remove(&fetch.number);
    }

    /// Fetches that are registered.
    #[must_use]
    pub fn fetch_count(&self) -> usize {
        self.fetches.borrow().len()
    }

    /// Takes messages until every sender is gone. The outbox holds a sender to this very inbox,
    /// so that in practice the loop ends with the runtime.
    pub async fn run(self: Rc<Self>, mut inbox: Inbox<ShardMessage>) {
        let mut messages = Vec::new();
        loop {
            let open = {
                let mut receive = pin!(inbox.receive_batch(&mut messages));
                std::future::poll_fn(|context| {
                    let filled = self.outbox.poll_filled(context);
                    match receive.as_mut().poll(context) {
                        Poll::Ready(open) => Poll::Ready(open),
                        Poll::Pending if filled => Poll::Ready(true),
                        Poll::Pending => Poll::Pending,
                    }
                })
                .await
            };
            if !open {
                break;
            }
            self.handle_all(&mut messages).await;
        }
    }

    async fn handle_all(self: &Rc<Self>, messages: &mut Vec<ShardMessage>) {
        let all_sent = self.outbox.flush(messages);
        for message in messages.drain(..) {
            self.handle(message);
        }
        if !all_sent {
            io::sleep(INBOX_RETRY).await;
        }
    }

    fn handle(self: &Rc<Self>, message: ShardMessage) {
        match message {
            ShardMessage::Append(append) => self.handle_append(append),
            ShardMessage::Read(mut read) => {
                read.visit.take(io::now(), read.from != self.id);
                io::spawn(io::TaskClass::Fetch, Rc::clone(self).handle_read(read));
            }
            ShardMessage::ListOffsets(offsets) => {
                io::spawn(
                    io::TaskClass::Fetch,
                    Rc::clone(self).handle_offsets(offsets),
                );
            }
            ShardMessage::DeleteRecords(deletions) => {
                let deleting = Rc::clone(self).handle_delete_records(deletions);
                io::spawn(io::TaskClass::Background, deleting);
            }
            ShardMessage::LogSizes(wanted) => {
                let telling = Rc::clone(self).handle_log_sizes(wanted);
                io::spawn(io::TaskClass::Background, telling);
            }
            ShardMessage::EpochEnds(ends) => self.handle_epoch_ends(ends),
            ShardMessage::Producers(wanted) => {
                let telling = Rc::clone(self).handle_producers(wanted);
                io::spawn(io::TaskClass::Background, telling);
            }
            ShardMessage::Unpark(unpark) => self.handle_unpark(&unpark),
            ShardMessage::Wake(wake) => self.handle_wake(&wake),
            ShardMessage::Run(work) => work(self),
        }
    }

    fn handle_append(&self, append: AppendMessage) {
        let AppendMessage {
            entries,
            required_acks,
            origin,
            deadline,
            from,
            mut visit,
            reply,
        } = append;
        visit.take(io::now(), from != self.id);
        let answers = AppendAnswer::of(entries.len(), reply);
        for (entry, answer) in entries.into_iter().zip(answers) {
            let Some(partition) = self.partition(entry.partition) else {
                let times = AppendTimes {
                    visit,
                    ..AppendTimes::default()
                };
                answer.complete(Err(self.absence(entry.partition).into()), times);
                continue;
            };
            let queued = QueuedAppend {
                batch: entry.batch,
                buffer_bytes: entry.buffer_bytes,
                required_acks,
                origin,
                deadline,
                visit,
                answer,
            };
            if partition.enqueue_append(queued) {
                self.append_workers.assign(partition);
            }
        }
    }

    fn handle_unpark(&self, unpark: &UnparkMessage) {
        for at in &unpark.places {
            if let Some(partition) = self.partition(at.partition) {
                let waiter = Waiter {
                    fetch: unpark.fetch,
                    place: at.place,
                };
                partition.forget(unpark.isolation, at.known_end, waiter);
            }
        }
    }

    fn handle_wake(&self, wake: &WakeMessage) {
        let signal = self
            .fetches
            .borrow()
            .get(&wake.number)
            .and_then(Weak::upgrade);
        if let Some(signal) = signal {
            signal.wake(wake.place, wake.sent_at);
        }
    }
}
