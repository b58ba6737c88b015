//! Moves of partitions between log directories (KIP-113, `ReplicaAlterLogDirsManager`), as one
//! shard carries them out for its partitions. What a move is, step by step, and what must hold at
//! each, stands in `log::moving`.
//!
//! ```text
//! begun ─> copying <─> caught up ─> closed to changes ─> named in the metadata ─> serving
//!   │         │            │              │ └─> copying           │
//!   └─────────┴────────────┴──────────────┴─> given up            └─> lost (until a start)
//! ```

mod carry_out;
mod gauges;
mod rate;
mod switch;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use crate::base::error_code::ErrorCode;
use crate::base::ids::{TopicPartition, Uuid};
use crate::io::wait::{Turn, Turns, Waiters};
use crate::io::{self, TaskClass};
use crate::log::Log;
use crate::partition::Partition;
use crate::server::node::Node;
use crate::shard::OfflineDirectory;

pub use gauges::MoveGauges;
pub use rate::MoveRate;

/// How often a move that waits for its place looks whether it is still wanted.
const PLACE_LOOK: Duration = Duration::from_secs(1);
/// Orders of one request that a shard carries out at a time: they share the disk's flushes.
const ORDERS_MAX: usize = 32;
/// How long a stop waits for moves that are named in the metadata already.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// Who wants a partition in another directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A client.
    Client,
    /// A start, which goes on with what a client has ordered before.
    Start,
}

/// The moves of one shard. Lives on its thread.
#[derive(Default)]
pub struct Moves {
    all: RefCell<BTreeMap<TopicPartition, Rc<Move>>>,
    /// Partitions for which an order is being carried out.
    orders: RefCell<BTreeSet<TopicPartition>>,
    /// Partitions whose last move was given up for a failure.
    failed: RefCell<BTreeSet<TopicPartition>>,
    /// Two copy at a time: enough that one waits for its disk while another has work, few enough
    /// that what they hold in memory is little. The others wait.
    copying: (Turns, Turns),
    waiters: Waiters,
    is_stopping: Cell<bool>,
}

/// One partition on its way.
struct Move {
    partition: Rc<Partition>,
    /// The log that serves when it begins.
    source: Rc<Log>,
    future: Rc<Log>,
    to: Uuid,
    is_marked: Cell<bool>,
    is_cancelled: Cell<bool>,
    is_over: Cell<bool>,
}

impl Moves {
    /// Does with each partition what [`Self::alter`] does, several at a time; answers in their
    /// order.
    pub async fn alter_all(
        node: &Rc<Node>,
        wishes: Vec<(TopicPartition, Uuid)>,
        whose: Whose,
    ) -> Vec<ErrorCode> {
        let mut codes = Vec::with_capacity(wishes.len());
        let mut under_way = VecDeque::new();
        for (id, to) in wishes {
            if under_way.len() >= ORDERS_MAX
                && let Some(first) = under_way.pop_front()
            {
                codes.push(first.await);
            }
            let node = Rc::clone(node);
            let altering = async move { node.moves().alter(&node, (id, to), whose).await };
            under_way.push_back(io::spawn(TaskClass::Background, altering));
        }
        for last in under_way {
            codes.push(last.await);
        }
        codes
    }

    /// Sees to it that a partition gets into a directory, or stays there: answers when its copy is
    /// there, empty. A move to another directory is given up first
    /// (`ReplicaManager.alterReplicaLogDirs`).
    async fn alter(
        &self,
        node: &Rc<Node>,
        (id, to): (TopicPartition, Uuid),
        whose: Whose,
    ) -> ErrorCode {
        let _order = self.take_order(id).await;
        let known = self.all.borrow().get(&id).cloned();
        if let Some(known) = known {
            if known.to == to && known.is_wanted() {
                return ErrorCode::NONE;
            }
            known.is_cancelled.set(true);
            self.waiters.wake_all();
            let over = || known.is_over.get().then_some(());
            self.waiters.wait_for(over).await;
        }
        // As in Kafka: the partition may have a copy in the one that is offline. What a start goes
        // on with has none.
        let offline = match whose {
            Whose::Client => node.shard().logs().offline().next(),
            Whose::Start => None,
        };
        let code = self.begin_or_tell(node, (id, to), offline).await;
        if code.is_none() {
            self.failed.borrow_mut().remove(&id);
        } else if whose == Whose::Start {
            self.count_failed(id);
        }
        code
    }

    /// Waits until nobody else orders something for the partition.
    async fn take_order(&self, id: TopicPartition) -> Order<'_> {
        let free = || self.orders.borrow_mut().insert(id).then_some(());
        self.waiters.wait_for(free).await;
        Order(self, id)
    }

    async fn begin_or_tell(
        &self,
        node: &Rc<Node>,
        (id, to): (TopicPartition, Uuid),
        offline: Option<OfflineDirectory>,
    ) -> ErrorCode {
        match self.begin(node, (id, to), offline).await {
            Ok(()) => ErrorCode::NONE,
            Err((code, reason)) => {
                let (index, topic) = (id.partition, id.topic_id);
                tracing::warn!("partition {index} of topic {topic}: no move: {reason}");
                code
            }
        }
    }

    async fn begin(
        &self,
        node: &Rc<Node>,
        (id, to): (TopicPartition, Uuid),
        offline: Option<OfflineDirectory>,
    ) -> Result<(), (ErrorCode, String)> {
        let failed = |reason: String| (ErrorCode::KAFKA_STORAGE_ERROR, reason);
        let shard = node.shard();
        let Some(partition) = shard.partition(id).filter(|one| !one.is_closed()) else {
            return Err(absent(node, id));
        };
        let source = partition.log();
        let check = source.check_online();
        check.map_err(|error| failed(error.to_string()))?;
        let logs = shard.logs();
        if logs.id_of(source.directory()) == Some(to) {
            return Ok(());
        }
        if let Some(offline) = offline {
            return Err(failed(offline.told()));
        }
        if self.is_stopping.get() {
            return Err(failed("the broker is stopping".to_owned()));
        }
        let target = logs.of(to).map_err(|error| failed(error.to_string()))?;
        let future = target.create_future(&source).await;
        let future = future.map_err(|error| failed(error.to_string()))?;
        tracing::info!(
            "{} moves from {} to {}",
            source.identity().folder(),
            source.directory().display(),
            future.directory().display()
        );
        partition.set_future(Some(Rc::clone(&future)));
        let begun = Rc::new(Move {
            partition,
            source,
            future,
            to,
            is_marked: Cell::new(false),
            is_cancelled: Cell::new(false),
            is_over: Cell::new(false),
        });
        self.all.borrow_mut().insert(id, Rc::clone(&begun));
        let node = Rc::clone(node);
        io::spawn_detached(TaskClass::Background, async move {
            begun.carry_out(&node).await;
            node.moves().forget(&begun);
        });
        Ok(())
    }

    /// A move is over.
    fn forget(&self, over: &Rc<Move>) {
        over.is_over.set(true);
        let id = over.partition.id();
        let mut all = self.all.borrow_mut();
        if all.get(&id).is_some_and(|known| Rc::ptr_eq(known, over)) {
            all.remove(&id);
        }
        drop(all);
        self.waiters.wake_all();
    }

    /// How many partitions are on their way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.borrow().len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins no further step of any move; answers when those that are named in the metadata serve
    /// from where they are named. The copies of the others stay, for the next start to go on.
    pub async fn stop(&self) {
        self.is_stopping.set(true);
        self.waiters.wake_all();
        let deadline = io::now().after(STOP_WAIT);
        let none = || self.is_empty().then_some(());
        if self.waiters.wait_until(deadline, none).await.is_none() {
            tracing::warn!("{} moves are left to the next start", self.len());
        }
    }

    /// Waits for a place among those that copy; `None` when the move is not to go on.
    async fn take_place(&self, of: &Move) -> Option<Turn<'_>> {
        let TopicPartition {
            topic_id,
            partition,
        } = of.partition.id();
        let add = |sum: i32, byte: &u8| sum.wrapping_add(i32::from(*byte));
        let place = match topic_id.0.iter().fold(partition.0, add) % 2 {
            0 => &self.copying.0,
            _ => &self.copying.1,
        };
        loop {
            let turn = place.take_until(io::now().after(PLACE_LOOK)).await;
            if turn.is_some() || of.check(self).is_err() {
                return turn;
            }
        }
    }

    /// Waits, less long where something is stopped or called off.
    async fn pause(&self, of: &Move, pause: Duration) {
        let unwanted = || (self.is_stopping.get() || !of.is_wanted()).then_some(());
        let deadline = io::now().after(pause);
        let _ = self.waiters.wait_until(deadline, unwanted).await;
    }
}

/// One order at a time a partition.
struct Order<'a>(&'a Moves, TopicPartition);

impl Drop for Order<'_> {
    fn drop(&mut self) {
        self.0.orders.borrow_mut().remove(&self.1);
        self.0.waiters.wake_all();
    }
}

/// Why a partition that is not hosted does not move.
fn absent(node: &Node, id: TopicPartition) -> (ErrorCode, String) {
    let shard = node.shard();
    let code = if shard.is_offline(id) {
        ErrorCode::KAFKA_STORAGE_ERROR
    } else if shard.owner(id).is_some() {
        ErrorCode::REPLICA_NOT_AVAILABLE
    } else {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    };
    (code, "it is not hosted".to_owned())
}
