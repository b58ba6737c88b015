//! What a request's handler may look at and ask.

use std::cell::{Cell, Ref, RefCell};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use super::node::Node;
use super::quota::{Charge, ChargeMode, Charging, ConnectionWork, charge, note_throttled};
use crate::base::config::BrokerConfig;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{PartitionIndex, ShardId, TopicPartition};
use crate::base::time::MonotonicNs;
use crate::cluster::controller::ControlHandle;
use crate::cluster::image::Image;
use crate::cluster::quotas::QuotaKind;
use crate::cluster::quotas::limits::Limit;
use crate::io;
use crate::partition::ParkedFetch;
use crate::shard::FetchSignal;

/// The listener through which a client came; clients are told the advertised name of the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerInfo {
    /// Kafka's listener name, `PLAINTEXT` by default.
    pub name: String,
    /// Host that Metadata names to clients of this listener.
    pub advertised_host: String,
    /// Port that Metadata names to clients of this listener.
    pub advertised_port: u16,
}

/// The surroundings of one connection's requests. One a connection, shared by its requests.
pub struct RequestContext {
    node: Rc<Node>,
    listener: Rc<ListenerInfo>,
    peer: SocketAddr,
    fetches: RefCell<Vec<Weak<FetchSignal>>>,
    abandoned_bytes: Cell<usize>,
    muted_until: Cell<MonotonicNs>,
    work: ConnectionWork,
}

impl RequestContext {
    /// The context of a connection from `peer`.
    #[must_use]
    pub fn new(node: Rc<Node>, listener: Rc<ListenerInfo>, peer: SocketAddr) -> Self {
        Self {
            node,
            listener,
            peer,
            fetches: RefCell::default(),
            abandoned_bytes: Cell::new(0),
            muted_until: Cell::default(),
            work: ConnectionWork::default(),
        }
    }

    /// Memory that the log keeps alive for this connection was left with so much unused.
    pub fn note_abandoned(&self, bytes: usize) {
        self.abandoned_bytes.set(self.abandoned_bytes.get() + bytes);
    }

    /// What was left unused since this was last asked.
    #[must_use]
    pub fn take_abandoned(&self) -> usize {
        self.abandoned_bytes.take()
    }

    /// What the server keeps on this shard.
    #[must_use]
    pub fn node(&self) -> &Rc<Node> {
        &self.node
    }

    /// The listener that accepted the connection.
    #[must_use]
    pub fn listener(&self) -> &ListenerInfo {
        &self.listener
    }

    /// The client's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The metadata as this shard knows it. Taken once a request: it may be replaced at any await.
    #[must_use]
    pub fn image(&self) -> Arc<Image> {
        self.node.image()
    }

    /// The way to the controller; cheap to clone.
    #[must_use]
    pub fn control(&self) -> &ControlHandle {
        self.node.control()
    }

    /// The broker's settings in force; not to be held across an await.
    #[must_use]
    pub fn config(&self) -> Ref<'_, BrokerConfig> {
        self.node.config()
    }

    /// The broker's settings as it was started with them.
    #[must_use]
    pub fn fixed_config(&self) -> &Arc<BrokerConfig> {
        self.node.fixed_config()
    }

    /// The shard that owns `partition`, which the metadata knows.
    ///
    /// # Errors
    /// Kafka's code for one whose log is offline, or that another broker has
    /// (`ReplicaManager.getPartitionOrError`).
    pub fn owner(&self, partition: TopicPartition) -> Result<ShardId, ErrorCode> {
        let shard = self.node.shard();
        shard
            .owner(partition)
            .ok_or_else(|| match shard.is_offline(partition) {
                true => ErrorCode::KAFKA_STORAGE_ERROR,
                false => ErrorCode::NOT_LEADER_OR_FOLLOWER,
            })
    }

    /// The owner of a topic's partition, and its id.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION where there is none; else as [`Self::owner`].
    pub fn owner_by_name(
        &self,
        topic: &str,
        partition: PartitionIndex,
    ) -> Result<(ShardId, TopicPartition), ErrorCode> {
        let image = self.node.image_ref();
        let topic = image.topics().by_name(topic);
        let topic = topic.filter(|topic| topic.partition(partition).is_some());
        let topic = topic.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let id = TopicPartition {
            topic_id: topic.id,
            partition,
        };
        Ok((self.owner(id)?, id))
    }

    /// The limit of one kind that counts for the client of a request, if there is one.
    #[must_use]
    pub fn limit(&self, kind: QuotaKind, client_id: Option<&str>) -> Option<Limit> {
        self.node.quotas().limit(kind, client_id)
    }

    /// Counts what has happened towards a limit that may be none; answers for how long the client
    /// is to be throttled.
    pub async fn charge(&self, limit: Option<Limit>, value: f64) -> Duration {
        let Some(limit) = limit else {
            return Duration::ZERO;
        };
        let mode = ChargeMode::Always;
        charge(&self.node, limit, Charge { value, mode }).await
    }

    /// What threads do for this connection.
    #[must_use]
    pub fn work(&self) -> &ConnectionWork {
        &self.work
    }

    /// Counts what threads did for the connection since this was last called towards a limit of
    /// their time that may be none; answers for how long the client is to be throttled.
    pub fn charge_time(&self, limit: Option<Limit>) -> Charging {
        let Some(limit) = limit else {
            return Charging::Free;
        };
        let time = self.node.quotas().time_of(self.work.take());
        let used = Charge {
            value: thread_percent(time),
            mode: ChargeMode::Always,
        };
        charge(&self.node, limit, used)
    }

    /// Reads no further request for so long (KIP-219): its answer tells the client of it.
    pub fn mute(&self, of: (QuotaKind, Option<&str>), wait: Duration) {
        if !wait.is_zero() {
            let until = io::now().after(wait).max(self.muted_until.get());
            self.muted_until.set(until);
            note_throttled(&self.node, of, wait);
        }
    }

    /// Until when no request is read; `None` where it is past.
    #[must_use]
    pub fn muted_until(&self) -> Option<MonotonicNs> {
        let until = self.muted_until.get();
        (until > io::now()).then_some(until)
    }

    /// Registers a fetch that may park; the end of the connection cancels it.
    #[must_use]
    pub fn register_fetch(&self) -> (ParkedFetch, Rc<FetchSignal>) {
        let (fetch, signal) = self.node.shard().register_fetch();
        let mut fetches = self.fetches.borrow_mut();
        fetches.retain(|known| known.strong_count() > 0);
        fetches.push(Rc::downgrade(&signal));
        (fetch, signal)
    }

    /// Cancels all fetches that wait.
    pub fn cancel_fetches(&self) {
        for signal in self.fetches.take() {
            if let Some(signal) = signal.upgrade() {
                signal.cancel();
            }
        }
    }
}

/// A thread's time as the limit counts it: percent of one thread, times seconds.
fn thread_percent(time: Duration) -> f64 {
    time.as_secs_f64() * 100.0
}
