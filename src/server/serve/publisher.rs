//! How a new image reaches the shards.
//!
//! New partitions are hosted by their owners before any shard routes to them; deleted ones are
//! routed to no more before their logs go. The caller answers its client after that.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::connection_limits::{AddressLimits, addresses_of};
use super::hosting::{self, HostOrder};
use crate::base::config::BrokerConfig;
use crate::base::ids::{ShardId, TopicPartition, Uuid};
use crate::cluster::effective;
use crate::cluster::image::{Image, PartitionImage, QuotaValues, TopicImage};
use crate::cluster::quotas::limits::of_host_names;
use crate::io::reply::{ReplyReceiver, reply_slot};
use crate::io::{self, InboxSender, TaskClass};
use crate::server::node::{Node, has_limits_of};
use crate::shard::{Placement, Router, Shard, ShardMessage};

/// How long the control plane waits before it tries a full inbox again.
const INBOX_RETRY: Duration = Duration::from_millis(1);

/// The control plane's side of all shards.
pub struct Publisher {
    senders: Vec<InboxSender<ShardMessage>>,
    config: Arc<BrokerConfig>,
    state: RefCell<State>,
    /// The settings whose limits of addresses the shards have.
    limited: RefCell<Option<Arc<BrokerConfig>>>,
    /// The limits of hosts' names that the shards have, and how often they were others before.
    limited_hosts: RefCell<(u64, BTreeMap<String, QuotaValues>)>,
}

struct State {
    placement: Placement,
    hosted: HashMap<TopicPartition, PartitionImage>,
    /// Partitions whose log directory is offline; those that were hosted before still have a shard.
    offline: Vec<TopicPartition>,
    /// The image and the settings that the shards have.
    published: Option<(Arc<Image>, Arc<BrokerConfig>)>,
}

impl State {
    /// Whether a topic's logs have the settings that they have with `image` and `config`.
    fn has_settings_of(&self, image: &Image, config: &BrokerConfig, topic: &TopicImage) -> bool {
        self.published.as_ref().is_some_and(|(before, settings)| {
            settings.texts == config.texts
                && (before.has_configs_of(image)
                    || before.topic_configs(&topic.name) == image.topic_configs(&topic.name))
        })
    }
}

/// What changes from one image to the next.
#[derive(Debug, Default)]
struct Change {
    host: BTreeMap<ShardId, Vec<HostOrder>>,
    delete: BTreeMap<ShardId, Vec<TopicPartition>>,
}

impl Publisher {
    /// Shards that host nothing yet.
    #[must_use]
    pub fn new(senders: Vec<InboxSender<ShardMessage>>, config: Arc<BrokerConfig>) -> Self {
        let shards = u16::try_from(senders.len()).unwrap_or(u16::MAX);
        Self {
            senders,
            config,
            limited: RefCell::default(),
            limited_hosts: RefCell::default(),
            state: RefCell::new(State {
                placement: Placement::new(shards),
                hosted: HashMap::new(),
                offline: Vec::new(),
                published: None,
            }),
        }
    }

    /// Brings all shards to `image`. Answers the partitions that could not be hosted.
    pub async fn publish(&self, image: Arc<Image>) -> Vec<(TopicPartition, String)> {
        let config = effective::config(&self.config, &image);
        let change = self.change_to(&image, &config);
        let mut waits = Vec::new();
        for (shard, orders) in change.host {
            let host = move |shard: Rc<Shard>| hosting::host_all(shard, orders);
            waits.push(self.run(shard, host).await);
        }
        let mut failed = Vec::new();
        for wait in waits {
            failed.extend(wait.await.unwrap_or_default());
        }
        for (id, reason) in &failed {
            tracing::error!(
                "partition {} of topic {}: {reason}",
                id.partition,
                id.topic_id
            );
        }
        let router = self.router_without(&failed);
        self.replace(&image, &config, &router).await;
        self.resolve_names(&config);
        self.resolve_hosts(&image);
        let mut waits = Vec::new();
        for (shard, ids) in change.delete {
            let delete = move |shard: Rc<Shard>| hosting::delete_all(shard, ids);
            waits.push(self.run(shard, delete).await);
        }
        for wait in waits {
            let _ = wait.await;
        }
        failed
    }

    /// Gives every shard the image, the settings in force and the table that belongs to it.
    async fn replace(&self, image: &Arc<Image>, config: &Arc<BrokerConfig>, router: &Arc<Router>) {
        let mut waits = Vec::with_capacity(self.senders.len());
        for shard in self.shards() {
            let (image, router) = (Arc::clone(image), Arc::clone(router));
            let config = Arc::clone(config);
            let replace = move |shard: Rc<Shard>| async move {
                shard.set_router(router);
                if let Some(node) = shard.attachment::<Node>() {
                    node.set_image(image, config);
                }
            };
            waits.push(self.run(shard, replace).await);
        }
        for wait in waits {
            let _ = wait.await;
        }
    }

    /// Has the addresses of hosts' names looked up where settings limit names and have changed.
    fn resolve_names(&self, config: &Arc<BrokerConfig>) {
        let mut limited = self.limited.borrow_mut();
        let is_known = (limited.as_ref()).is_some_and(|before| has_limits_of(before, config));
        *limited = Some(Arc::clone(config));
        if is_known || !AddressLimits::has_names(config) {
            return;
        }
        let names = Arc::clone(config);
        let config = Arc::clone(config);
        self.look_up(
            move || AddressLimits::resolved(&names),
            move |node, limits| node.set_address_limits(&config, limits),
        );
    }

    /// The same for the limits of clients.
    fn resolve_hosts(&self, image: &Image) {
        let limits = of_host_names(image.client_quotas());
        let mut limited = self.limited_hosts.borrow_mut();
        if limits == limited.1 {
            return;
        }
        let names: Vec<String> = limits.keys().cloned().collect();
        let order = limited.0 + 1;
        *limited = (order, limits);
        if !names.is_empty() {
            self.look_up(
                move || addresses_of(names, order),
                |node, hosts| node.quotas().set_hosts(hosts),
            );
        }
    }

    /// Has a thread wait for what the system says of names, which may take long, and gives that to
    /// all shards.
    fn look_up<T: Send + Sync + 'static>(
        &self,
        look_up: impl FnOnce() -> T + Send + 'static,
        set: impl Fn(&Node, &Arc<T>) + Clone + Send + 'static,
    ) {
        let (reply, found) = reply_slot();
        let thread = std::thread::Builder::new().name("coreline-names".to_owned());
        if let Err(error) = thread.spawn(move || reply.send(Arc::new(look_up()))) {
            tracing::warn!("limits of hosts' names: no name is resolved: {error}");
            return;
        }
        let senders = self.senders.clone();
        io::spawn(TaskClass::Background, async move {
            let Some(found) = found.await else { return };
            for sender in &senders {
                let (found, set) = (Arc::clone(&found), set.clone());
                let set = move |shard: &Rc<Shard>| {
                    if let Some(node) = shard.attachment::<Node>() {
                        set(&node, &found);
                    }
                };
                send(sender, ShardMessage::Run(Box::new(set))).await;
            }
        });
    }

    /// The ways to all shards.
    #[must_use]
    pub fn senders(&self) -> &[InboxSender<ShardMessage>] {
        &self.senders
    }

    /// All shards.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        let count = u16::try_from(self.senders.len()).unwrap_or(u16::MAX);
        (0..count).map(ShardId)
    }

    /// Runs `work` as a task of a shard. `None` when that shard is gone.
    pub async fn run<T, F, W>(&self, shard: ShardId, work: W) -> ReplyReceiver<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
        W: FnOnce(Rc<Shard>) -> F + Send + 'static,
    {
        let (reply, answer) = reply_slot();
        let start = move |shard: &Rc<Shard>| {
            let task = work(Rc::clone(shard));
            io::spawn(TaskClass::Background, async move { reply.send(task.await) });
        };
        if let Some(sender) = self.senders.get(usize::from(shard.0)) {
            send(sender, ShardMessage::Run(Box::new(start))).await;
        }
        answer
    }

    /// Works out what changes, and takes it as done.
    fn change_to(&self, image: &Arc<Image>, config: &Arc<BrokerConfig>) -> Change {
        let mut state = self.state.borrow_mut();
        let mut hosted = std::mem::take(&mut state.hosted);
        let mut change = Change::default();
        let is_start = state.published.is_none();
        state.offline.clear();
        let mut now = HashMap::with_capacity(hosted.len());
        let local = image.node_id();
        for topic in image.topics().iter() {
            // Worked out once a topic, and only when one of its partitions changes.
            let settings = OnceCell::new();
            let is_as_before = state.has_settings_of(image, config, topic);
            for (index, partition) in &topic.partitions {
                if !partition.replicas.contains(&local) {
                    continue;
                }
                let id = TopicPartition {
                    topic_id: topic.id,
                    partition: *index,
                };
                let known = hosted.remove(&id);
                let Some(directory) = directory_of(image, partition) else {
                    state.offline.push(id);
                    now.extend(known.map(|known| (id, known)));
                    continue;
                };
                let known = known.filter(|known| is_as_before && known == partition);
                if known.is_none() {
                    let settings = settings.get_or_init(|| hosting::settings(image, config, topic));
                    let topic = (topic.as_ref(), settings);
                    let mut order = hosting::order(topic, (*index, partition), directory, config);
                    order.is_known = is_start;
                    let owner = state.placement.place(id);
                    change.host.entry(owner).or_default().push(order);
                }
                now.insert(id, known.unwrap_or_else(|| partition.clone()));
            }
        }
        state.hosted = now;
        state.published = Some((Arc::clone(image), Arc::clone(config)));
        for id in hosted.into_keys() {
            if let Some(owner) = state.placement.remove(id) {
                change.delete.entry(owner).or_default().push(id);
            }
        }
        change
    }

    /// The table, with the partitions offline that no shard can host, which the next image tries
    /// again, and those whose directory is offline.
    fn router_without(&self, failed: &[(TopicPartition, String)]) -> Arc<Router> {
        let mut state = self.state.borrow_mut();
        let mut router = state.placement.router().clone();
        for (id, _) in failed {
            router.take_offline(*id);
            state.hosted.remove(id);
        }
        for id in &state.offline {
            router.take_offline(*id);
        }
        Arc::new(router)
    }
}

/// The log directory of this broker's replica; `None` when it is offline. Zero where the log's
/// level knows of no directories, for then there is but one.
fn directory_of(image: &Image, partition: &PartitionImage) -> Option<Uuid> {
    let local = image.node_id();
    let online = &image.broker(local)?.directories;
    if online.is_empty() {
        return Some(Uuid::ZERO);
    }
    let directory = partition.directory(local)?;
    online.contains(&directory).then_some(directory)
}

/// Puts a message into a shard's inbox once there is room; drops it when the shard is gone.
async fn send(sender: &InboxSender<ShardMessage>, mut message: ShardMessage) {
    while let Err(returned) = sender.try_send(message) {
        if sender.is_closed() {
            break;
        }
        message = returned;
        io::sleep(INBOX_RETRY).await;
    }
}
