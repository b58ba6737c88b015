//! What the server keeps on each shard: the metadata image, fetch sessions, connections.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::connection::{
    Connection, ConnectionMemory, ReapRules, STALLED_PARTIAL_MAX_SHORT, STALLED_SEND_MAX_SHORT,
};
use super::fetch_session::FetchSessions;
use super::groups;
use super::log_limit::LogLimit;
use super::moves::{MoveRate, Moves};
use super::quota::ClientQuotas;
use super::serve::connection_limits::{AddressCounts, AddressLimits};
use super::serve::listening::Listening;
use super::slow_requests::SlowRequests;
use crate::base::config::BrokerConfig;
use crate::base::ids::{TopicId, Uuid};
use crate::base::random::Random;
use crate::base::time::MonotonicNs;
use crate::cluster::controller::ControlHandle;
use crate::cluster::effective;
use crate::cluster::image::Image;
use crate::coordinator::group::NamedTopic;
use crate::coordinator::group_service::GroupService;
use crate::io;
use crate::io::wait::Turns;
use crate::metrics::ShardMetrics;
use crate::shard::Shard;
use crate::wire::frame::FrameLimits;

/// How often connections are looked at that stand still: so often within the shortest time that one
/// may, and at least so often.
const REAPS_PER_LIMIT: u32 = 6;
/// See [`REAPS_PER_LIMIT`].
const REAP_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// The part of the memory for connections that is for their fetch sessions.
const SESSIONS_DIVISOR: usize = 4;
/// How often memory is looked for while somebody waits for it.
const RELIEF_INTERVAL: Duration = Duration::from_millis(20);
/// Connections with unread answers, or with partly sent requests, that are closed at once to find
/// memory.
const CLOSED_AT_ONCE_MAX: usize = 4;

/// Whether both limit addresses alike.
pub fn has_limits_of(one: &BrokerConfig, other: &BrokerConfig) -> bool {
    one.connections_per_ip_max == other.connections_per_ip_max
        && one.connections_per_ip_overrides == other.connections_per_ip_overrides
}

/// The server's part of one shard. Lives on its thread.
pub struct Node {
    shard: Rc<Shard>,
    fixed_config: Arc<BrokerConfig>,
    config: RefCell<Arc<BrokerConfig>>,
    image: RefCell<Arc<Image>>,
    control: ControlHandle,
    sessions: RefCell<FetchSessions>,
    connections: Connections,
    metrics: Rc<ShardMetrics>,
    connection_memory: Rc<ConnectionMemory>,
    address_counts: AddressCounts,
    address_limits: RefCell<Arc<AddressLimits>>,
    log_limit: LogLimit,
    quotas: ClientQuotas,
    slow_requests: SlowRequests,
    /// Who makes an answer that is large while it is made, and lets others run meanwhile.
    describing: Turns,
    groups: GroupService,
    moves: Moves,
    move_rate: Arc<MoveRate>,
    random: RefCell<Random>,
    stopping: Cell<bool>,
    listening: RefCell<Listening>,
}

/// What a node is made from.
pub struct NodeOptions {
    /// Its shard.
    pub shard: Rc<Shard>,
    /// The broker's settings.
    pub config: Arc<BrokerConfig>,
    /// The metadata at the start.
    pub image: Arc<Image>,
    /// The way to the controller.
    pub control: ControlHandle,
    /// Where latencies go.
    pub metrics: Rc<ShardMetrics>,
    /// Memory for connections and their fetch sessions.
    pub connections_bytes: usize,
    /// Fetch sessions that this shard may keep.
    pub fetch_sessions_max: usize,
    /// Memory for requests of this shard.
    pub requests_bytes: usize,
    /// How fast the moves of all shards together copy.
    pub move_rate: Arc<MoveRate>,
    /// For session ids and ids of group members.
    pub random_seed: u64,
}

impl Node {
    /// A node without connections.
    #[must_use]
    pub fn new(options: NodeOptions) -> Rc<Self> {
        let sessions_bytes = options.connections_bytes / SESSIONS_DIVISOR;
        let sessions = FetchSessions::new(options.fetch_sessions_max, options.random_seed)
            .within(sessions_bytes);
        let slower_than = Duration::from_millis(options.config.slow_request_ms);
        let config = effective::config(&options.config, &options.image);
        let address_limits = AddressLimits::of_addresses(&config);
        let groups = groups::options(&options.config, options.requests_bytes);
        let groups = GroupService::new(groups);
        let quotas = ClientQuotas::new(&options.image, config.quota_windows);
        Rc::new(Self {
            shard: options.shard,
            config: RefCell::new(config),
            fixed_config: options.config,
            image: RefCell::new(options.image),
            control: options.control,
            sessions: RefCell::new(sessions),
            connections: Connections::default(),
            metrics: options.metrics,
            connection_memory: ConnectionMemory::new(options.connections_bytes - sessions_bytes),
            address_counts: AddressCounts::default(),
            address_limits: RefCell::new(Arc::new(address_limits)),
            log_limit: LogLimit::new(io::now()),
            quotas,
            slow_requests: SlowRequests::new(slower_than, io::now()),
            describing: Turns::default(),
            groups,
            moves: Moves::default(),
            move_rate: options.move_rate,
            random: RefCell::new(Random::new(options.random_seed.rotate_left(29))),
            stopping: Cell::new(false),
            listening: RefCell::default(),
        })
    }

    /// The shard.
    #[must_use]
    pub fn shard(&self) -> &Rc<Shard> {
        &self.shard
    }

    /// The broker's settings in force; not to be held across an await.
    #[must_use]
    pub fn config(&self) -> Ref<'_, BrokerConfig> {
        Ref::map(self.config.borrow(), Arc::as_ref)
    }

    /// The broker's settings as it was started with them.
    #[must_use]
    pub fn fixed_config(&self) -> &Arc<BrokerConfig> {
        &self.fixed_config
    }

    /// The newest metadata that this shard was given.
    #[must_use]
    pub fn image(&self) -> Arc<Image> {
        Arc::clone(&self.image.borrow())
    }

    /// The same, to look at without keeping it.
    #[must_use]
    pub fn image_ref(&self) -> Ref<'_, Arc<Image>> {
        self.image.borrow()
    }

    /// The moves of this shard's partitions between log directories.
    #[must_use]
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// How fast the moves of all shards together copy.
    #[must_use]
    pub fn move_rate(&self) -> &MoveRate {
        &self.move_rate
    }

    /// The way to the controller.
    #[must_use]
    pub fn control(&self) -> &ControlHandle {
        &self.control
    }

    /// Topics that `image` no longer has, where this shard has offsets for some.
    fn topics_gone(&self, image: &Image) -> Vec<NamedTopic> {
        if self.groups.counts().offsets == 0 {
            return Vec::new();
        }
        let before = self.image.borrow();
        let topics = before.topics().iter();
        let gone = topics.filter(|topic| image.topics().by_id(topic.id).is_none());
        // Those that do not say which topic of the name they are for are for this one.
        gone.flat_map(|topic| [topic.id, TopicId::ZERO].map(|id| (topic.name.to_string(), id)))
            .collect()
    }

    /// Replaces the metadata, and with it the settings in force. Limits of hosts' names follow
    /// once their addresses are known.
    pub fn set_image(&self, image: Arc<Image>, config: Arc<BrokerConfig>) {
        let gone = self.topics_gone(&image);
        self.quotas.set_image(&image);
        *self.image.borrow_mut() = image;
        if !gone.is_empty() {
            self.groups.forget_topics(&gone);
        }
        let before = std::mem::replace(&mut *self.config.borrow_mut(), Arc::clone(&config));
        if !has_limits_of(&before, &config) {
            let limits = AddressLimits::of_addresses(&config);
            *self.address_limits.borrow_mut() = Arc::new(limits);
        }
    }

    /// Takes the limits of addresses that `config` comes to, unless others were set since.
    pub fn set_address_limits(&self, config: &BrokerConfig, limits: &Arc<AddressLimits>) {
        if has_limits_of(&self.config(), config) {
            *self.address_limits.borrow_mut() = Arc::clone(limits);
        }
    }

    /// How many connections each address may have.
    #[must_use]
    pub fn address_limits(&self) -> Ref<'_, AddressLimits> {
        Ref::map(self.address_limits.borrow(), Arc::as_ref)
    }

    /// The shard's fetch sessions; not to be held across an await.
    pub fn sessions(&self) -> RefMut<'_, FetchSessions> {
        self.sessions.borrow_mut()
    }

    /// The shard's connections.
    #[must_use]
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// The memory of the shard's connections.
    #[must_use]
    pub fn connection_memory(&self) -> &Rc<ConnectionMemory> {
        &self.connection_memory
    }

    /// Connections of all shards by address, on the shard that keeps them.
    #[must_use]
    pub fn address_counts(&self) -> &AddressCounts {
        &self.address_counts
    }

    /// Where latencies and counts go.
    #[must_use]
    pub fn metrics(&self) -> &Rc<ShardMetrics> {
        &self.metrics
    }

    /// Which log lines about clients are written.
    #[must_use]
    pub fn log_limit(&self) -> &LogLimit {
        &self.log_limit
    }

    /// Limits of clients, and what of them is used.
    #[must_use]
    pub fn quotas(&self) -> &ClientQuotas {
        &self.quotas
    }

    /// Turns at making large answers.
    #[must_use]
    pub fn describing(&self) -> &Turns {
        &self.describing
    }

    /// The coordinators of this shard's groups.
    #[must_use]
    pub fn groups(&self) -> &GroupService {
        &self.groups
    }

    /// The random part of a new group member's id.
    #[must_use]
    pub fn fresh_id(&self) -> Uuid {
        self.random.borrow_mut().next_uuid()
    }

    /// Names slow requests.
    #[must_use]
    pub fn slow_requests(&self) -> &SlowRequests {
        &self.slow_requests
    }

    /// Keeps the listeners that were opened.
    pub fn set_listening(&self, listening: Listening) {
        *self.listening.borrow_mut() = listening;
    }

    /// Takes no further connection.
    pub fn stop(&self) {
        self.stopping.set(true);
        self.listening.borrow_mut().close();
    }

    /// Whether the broker is stopping.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// The largest frames: `socket.request.max.bytes`, or what the budget can always finish.
    #[must_use]
    pub fn frame_limits(&self) -> FrameLimits {
        let largest = self.config().socket_request_bytes_max;
        FrameLimits::authenticated(largest.min(self.shard.budget().frame_bytes_max()))
    }

    /// Closes what stands still, for as long as the shard runs, and finds memory where it is
    /// short.
    pub async fn reap(self: Rc<Self>) {
        let idle_max = u64::try_from(self.config().connections_idle_ms_max).ok();
        let idle_max = idle_max.map(Duration::from_millis);
        let partial_max = self.config().partial_request_max;
        let shortest = idle_max.map_or(partial_max, |idle| idle.min(partial_max));
        let interval = (shortest / REAPS_PER_LIMIT).clamp(RELIEF_INTERVAL, REAP_INTERVAL_MAX);
        let mut reap_at = io::now().after(interval);
        loop {
            self.until_short(reap_at).await;
            if self.shard.budget().is_short() {
                self.relieve();
            }
            if io::now() >= reap_at {
                reap_at = io::now().after(interval);
                let rules = ReapRules {
                    // What is not closed at this look is at the next.
                    partial_max: partial_max.saturating_sub(interval),
                    idle_max,
                    memory_is_short: self.shard.budget().is_short(),
                };
                for connection in self.connections.all() {
                    connection.reap(io::now(), rules);
                }
            }
            io::sleep(RELIEF_INTERVAL).await;
        }
    }

    async fn until_short(&self, deadline: MonotonicNs) {
        let short = std::future::poll_fn(|context| self.shard.budget().poll_short(context));
        let _ = io::task::with_deadline(deadline, short).await;
    }

    /// Somebody waits for memory: frees what requests hold behind answers that are not read, and
    /// closes the connections whose partly sent request has stood still for longest, and if fetches
    /// wait those that have left an answer unread for longest.
    fn relieve(&self) {
        let now = io::now();
        let (mut stalled, mut partial) = (Vec::new(), Vec::new());
        for connection in self.connections.all() {
            connection.settle();
            let since = connection.partial_since();
            if let Some(since) = since.filter(|at| now.since(*at) > STALLED_PARTIAL_MAX_SHORT) {
                partial.push((since, Rc::clone(&connection)));
            }
            let since = connection.sending_since();
            if let Some(since) = since.filter(|at| now.since(*at) > STALLED_SEND_MAX_SHORT) {
                stalled.push((since, connection));
            }
        }
        partial.sort_by_key(|(since, _)| *since);
        for (_, connection) in partial.into_iter().take(CLOSED_AT_ONCE_MAX) {
            connection.close_partial();
        }
        if self.shard.budget().is_short_for_answers() {
            stalled.sort_by_key(|(since, _)| *since);
            for (_, connection) in stalled.into_iter().take(CLOSED_AT_ONCE_MAX) {
                connection.close_unread();
            }
        }
    }
}

/// The connections of one shard.
#[derive(Default)]
pub struct Connections {
    state: RefCell<(u64, BTreeMap<u64, Rc<Connection>>)>,
}

impl Connections {
    /// Adds one; answers its number.
    pub fn add(&self, connection: Rc<Connection>) -> u64 {
        let mut state = self.state.borrow_mut();
        state.0 += 1;
        let number = state.0;
        state.1.insert(number, connection);
        number
    }

    /// Removes one.
    pub fn remove(&self, number: u64) {
        let removed = self.state.borrow_mut().1.remove(&number);
        drop(removed);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.borrow().1.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<Rc<Connection>> {
        self.state.borrow().1.values().cloned().collect()
    }
}
