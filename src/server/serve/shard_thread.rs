//! One shard's thread: its runtime, its logs, its loop, until it is told to stop.

use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::cleaning::{Cleaner, clean_logs};
use super::directories::Directories;
use super::hosting;
use super::listening::{ConnectionLimits, Listening};
use super::retention::look_for_old_segments;
use crate::base::config::BrokerConfig;
use crate::base::ids::{ShardId, Uuid};
use crate::cluster::controller::ControlHandle;
use crate::cluster::image::Image;
use crate::io::reply::{ReplyReceiver, ReplySender, reply_slot};
use crate::io::uring::{RingOptions, ShardFaults};
use crate::io::{self, Inbox, InboxSender, Runtime, RuntimeOptions, TaskClass};
use crate::log::{CleanerPace, LogError, ShardLogs, ShardLogsOptions};
use crate::metrics::ShardMetrics;
use crate::server::moves::MoveRate;
use crate::server::node::{Node, NodeOptions};
use crate::shard::{
    Budget, ClosedDirectory, LogDirectories, OfflineDirectory, Shard, ShardMessage, ShardOptions,
    SharedBudget,
};

/// Messages that may wait in a shard's inbox; senders keep what does not fit.
pub const INBOX_LEN_MAX: usize = 16 * 1024;
/// How long requests in flight may take to be answered at a stop.
const DRAIN_MAX: Duration = Duration::from_millis(500);
/// Before a failed directory is told again, where the inbox was full.
const FAILURE_RETRY: Duration = Duration::from_millis(5);
const DRAIN_STEP: Duration = Duration::from_millis(5);

/// What all shards of a start have in common.
#[derive(Clone, Debug)]
pub struct ShardPlan {
    /// The settings.
    pub config: Arc<BrokerConfig>,
    /// Drawn for this start; what recovery was told.
    pub incarnation: Uuid,
    /// The log directories.
    pub directories: Arc<Directories>,
    /// Who hears of those that fail.
    pub failures: InboxSender<OfflineDirectory>,
    /// A shard's tail caches, one a directory.
    pub cache_bytes: usize,
    /// A shard's memory for requests and responses.
    pub requests_bytes: usize,
    /// A shard's memory for connections.
    pub connections_bytes: usize,
    /// Fetch sessions of a shard.
    pub fetch_sessions_max: usize,
    /// Shared by the cleaners of all shards.
    pub cleaner_pace: Arc<CleanerPace>,
    /// Bytes of all their tables.
    pub cleaner_bytes: usize,
    /// The metadata at the start.
    pub image: Arc<Image>,
    /// The ways to all shards.
    pub senders: Vec<InboxSender<ShardMessage>>,
    /// For session ids and log ids.
    pub random_seed: u64,
    /// What goes wrong with operations (tests).
    pub faults: Option<ShardFaults>,
    /// The way to the controller.
    pub control: ControlHandle,
    /// How fast all moves between log directories together copy.
    pub move_rate: Arc<MoveRate>,
}

/// What one shard closed with, by directory.
pub type Closed = Vec<ClosedDirectory>;

/// A running shard as the control plane sees it.
pub struct ShardHandle {
    /// Its thread.
    pub thread: JoinHandle<()>,
    /// Tells it to stop.
    pub stop: ReplySender<()>,
    /// How its logs closed.
    pub closed: ReplyReceiver<Closed>,
}

/// Starts a shard's thread on `cpu`; `ready` hears whether its logs opened.
pub fn spawn_shard(
    id: ShardId,
    cpu: Option<usize>,
    plan: ShardPlan,
    inbox: Inbox<ShardMessage>,
    ready: ReplySender<Result<(), String>>,
) -> Result<ShardHandle, String> {
    let (stop, stopped) = reply_slot();
    let (closing, closed) = reply_slot();
    let name = format!("shard-{id}");
    let builder = std::thread::Builder::new().name(name.clone());
    let run = move || {
        let options = RuntimeOptions {
            name,
            cpu,
            ring: RingOptions {
                faults: plan.faults.as_ref().map(|faults| faults.of(id)),
                ..RingOptions::default()
            },
            ..RuntimeOptions::default()
        };
        match Runtime::start(options) {
            Ok(mut runtime) => {
                let main = shard_main(id, plan, inbox, (ready, stopped, closing));
                runtime.block_on(main);
            }
            Err(error) => ready.send(Err(format!("cannot start shard {id}: {error}"))),
        }
    };
    let thread = builder
        .spawn(run)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(ShardHandle {
        thread,
        stop,
        closed,
    })
}

type Slots = (
    ReplySender<Result<(), String>>,
    ReplyReceiver<()>,
    ReplySender<Closed>,
);

async fn shard_main(
    id: ShardId,
    plan: ShardPlan,
    inbox: Inbox<ShardMessage>,
    (ready, stopped, closing): Slots,
) {
    let metrics = Rc::<ShardMetrics>::default();
    let logs = match open_logs(id, &plan, &metrics).await {
        Ok(logs) => logs,
        Err(reason) => {
            ready.send(Err(reason));
            return;
        }
    };
    let frame_bytes_max = plan.config.socket_request_bytes_max;
    let shard = Shard::new(ShardOptions {
        id,
        metrics: Rc::clone(&metrics),
        broker_id: plan.config.node_id,
        senders: plan.senders.clone(),
        logs: Rc::clone(&logs),
        budget: SharedBudget::new(Budget::new(plan.requests_bytes, frame_bytes_max)),
    });
    let node = Node::new(NodeOptions {
        shard: Rc::clone(&shard),
        config: Arc::clone(&plan.config),
        image: Arc::clone(&plan.image),
        control: plan.control.clone(),
        metrics,
        connections_bytes: plan.connections_bytes,
        requests_bytes: plan.requests_bytes,
        fetch_sessions_max: plan.fetch_sessions_max,
        move_rate: Arc::clone(&plan.move_rate),
        random_seed: plan.random_seed ^ u64::from(id.0),
    });
    shard.attach(Rc::clone(&node) as Rc<dyn std::any::Any>);
    io::spawn(TaskClass::Produce, Rc::clone(&shard).run(inbox));
    io::spawn(TaskClass::Background, Rc::clone(&node).reap());
    let (looking, config) = (Rc::clone(&shard), Arc::clone(&plan.config));
    io::spawn(TaskClass::Background, async move {
        look_for_old_segments(looking, &config).await;
    });
    let cleaner = Cleaner {
        shard: Rc::clone(&shard),
        pace: Arc::clone(&plan.cleaner_pace),
        bytes_max: plan.cleaner_bytes,
    };
    io::spawn(TaskClass::Background, clean_logs(cleaner));
    ready.send(Ok(()));
    // Without a word the control plane is gone, and the shard with it.
    let _ = stopped.await;
    drain(&node).await;
    node.moves().stop().await;
    hosting::release_all(&shard);
    let closed = logs.close().await;
    shard.detach();
    closing.send(closed);
}

/// Opens this shard's part of every directory. One whose files cannot be read or written is
/// offline for all.
async fn open_logs(
    id: ShardId,
    plan: &ShardPlan,
    metrics: &Rc<ShardMetrics>,
) -> Result<Rc<LogDirectories>, String> {
    let mut unopened = plan.directories.offline.clone();
    let mut open = Vec::with_capacity(plan.directories.online.len());
    for (number, directory) in plan.directories.online.iter().enumerate() {
        let seed = plan.random_seed.rotate_left(17) ^ u64::from(id.0);
        let options = ShardLogsOptions {
            directory: directory.path.clone(),
            shard: id,
            incarnation: plan.incarnation,
            journal_bytes: directory.journal_bytes_per_shard,
            cache_bytes: plan.cache_bytes / plan.directories.online.len(),
            random_seed: seed ^ ((number as u64) << 48),
            metrics: Rc::clone(metrics),
        };
        match ShardLogs::open(options).await {
            Ok(logs) => {
                let watched = watch(Rc::clone(&logs), plan.failures.clone());
                io::spawn_detached(TaskClass::Background, watched);
                open.push((directory.id, logs));
            }
            Err(error @ LogError::Io { .. }) => {
                let failed = OfflineDirectory {
                    path: directory.path.clone(),
                    reason: format!("shard {id} cannot open its journal: {error}"),
                };
                unopened.push(failed.clone());
                tell(failed, &plan.failures).await;
            }
            Err(error) => return Err(format!("shard {id} cannot open its journal: {error}")),
        }
    }
    Ok(Rc::new(LogDirectories::new(open, unopened)))
}

/// Tells the control plane when a directory goes offline here.
async fn watch(logs: Rc<ShardLogs>, failures: InboxSender<OfflineDirectory>) {
    let reason = logs.wait_offline().await;
    let path = logs.directory().to_owned();
    tell(OfflineDirectory { path, reason }, &failures).await;
}

async fn tell(mut failed: OfflineDirectory, failures: &InboxSender<OfflineDirectory>) {
    while let Err(returned) = failures.try_send(failed) {
        if failures.is_closed() {
            return;
        }
        failed = returned;
        io::sleep(FAILURE_RETRY).await;
    }
}

/// Takes no new connection, lets requests in flight be answered, then closes every connection.
async fn drain(node: &Rc<Node>) {
    node.stop();
    // Members that wait for a rebalance go elsewhere.
    node.groups().release_all();
    for connection in node.connections().all() {
        connection.stop_waiting();
    }
    let deadline = io::now().after(DRAIN_MAX);
    loop {
        let connections = node.connections().all();
        if connections.iter().all(|connection| connection.is_idle()) || io::now() >= deadline {
            break;
        }
        io::sleep(DRAIN_STEP).await;
    }
    for connection in node.connections().all() {
        connection.close();
    }
}

/// Opens the ports of one shard; runs on its thread.
pub fn open_ports(shard: &Rc<Shard>, limits: &ConnectionLimits) -> Result<(), String> {
    let Some(node) = shard.attachment::<Node>() else {
        return Err("the shard is stopping".to_owned());
    };
    let listeners = node.config().listeners.clients.clone();
    let listening = Listening::open(&node, &listeners, limits)?;
    node.set_listening(listening);
    Ok(())
}
