//! The control thread: unpinned, with its own driver. It recovers, opens the metadata log, starts
//! the shards, opens the ports, then serves the controller until the broker is told to stop.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::Failed;
use super::checkpoints::Checkpoints;
use super::directories::Directories;
use super::disk_watch::DiskWatch;
use super::failures::{FAILURES_LEN_MAX, Failures};
use super::memory_guard::keep_within;
use super::moved;
use super::shards::{ClosedDirectories, Shards, ShardsOptions};
use crate::base::config::{BrokerConfig, Budgets};
use crate::base::ids::{BrokerEpoch, Uuid};
use crate::base::random::Random;
use crate::cluster::controller::{ControlHandle, Controller, Publish};
use crate::io::inbox::inbox;
use crate::io::memory::give_back_freed;
use crate::io::task::JoinHandle;
use crate::io::uring::ShardFaults;
use crate::io::{self, Inbox, InboxSender, Runtime, RuntimeOptions, TaskClass};
use crate::log::{ClosedLog, RecoveryOptions, seal_directory};
use crate::server::disk_gauge::DiskGauge;
use crate::shard::{OfflineDirectory, ShardMessage};

/// What the main thread tells the control thread.
pub enum Command {
    /// Stop in order; the answer says whether all is written back.
    Stop(Sender<bool>),
}

/// What the main thread hears when clients are served.
pub struct Serving {
    /// The ways to all shards.
    pub shards: Vec<InboxSender<ShardMessage>>,
}

/// What the control thread is started with.
pub struct ControlOptions {
    /// The settings.
    pub config: Arc<BrokerConfig>,
    /// Bytes of the whole process.
    pub budgets: Budgets,
    /// The CPU of each shard.
    pub cpus: Vec<Option<usize>>,
    /// The disks of the log directories.
    pub disks: Vec<Arc<DiskGauge>>,
    /// What goes wrong with their operations (tests).
    pub faults: Option<ShardFaults>,
    /// Log directories that cannot be used.
    pub offline: Vec<OfflineDirectory>,
    /// From the system's entropy.
    pub random_seed: u64,
    /// Hears why the broker cannot go on.
    pub on_failure: Failed,
}

/// Runs the control thread to its end. True when that came unasked, after clients were served.
pub fn run(
    options: ControlOptions,
    commands: Inbox<Command>,
    ready: &Sender<Result<Serving, String>>,
) -> bool {
    let runtime = RuntimeOptions {
        name: "control".to_owned(),
        ..RuntimeOptions::default()
    };
    let mut runtime = match Runtime::start(runtime) {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = ready.send(Err(format!("cannot start the control executor: {error}")));
            return false;
        }
    };
    let memory_bytes = options.budgets.memory_bytes;
    runtime.block_on(async {
        match start(options).await {
            Err(reason) => {
                let _ = ready.send(Err(reason));
                false
            }
            Ok(control) => {
                io::spawn_detached(TaskClass::Background, keep_within(memory_bytes));
                let shards = control.shards.publisher().senders().to_vec();
                ready.send(Ok(Serving { shards })).is_ok() && control.serve(commands).await
            }
        }
    })
}

/// Everything that runs.
struct Control {
    shards: Shards,
    handle: ControlHandle,
    broker_epoch: BrokerEpoch,
    controller: JoinHandle<bool>,
    checkpoints: Rc<Checkpoints>,
    disk_watches: Vec<Rc<DiskWatch>>,
}

async fn start(options: ControlOptions) -> Result<Control, String> {
    let mut random = Random::new(options.random_seed);
    let incarnation = random.next_uuid();
    let config = Arc::clone(&options.config);
    let offline = options.offline.clone();
    let identified = Directories::identify(&config, offline, &mut random).await;
    let (mut directories, identity) = identified?;
    recover_logs(&mut directories, &options, incarnation).await?;
    // What recovery took is this thread's to use again, and no shard's.
    give_back_freed();
    let seed = random.next_u64();
    let opened = Controller::open(Arc::clone(&config), &identity, seed, io::wall_clock()).await;
    let mut controller = opened.map_err(|error| error.to_string())?;
    let local = directories.look(&controller.image(), &mut random).await?;
    let begun = controller.begin(&local, io::wall_clock()).await;
    begun.map_err(|error| error.to_string())?;
    let (failures, failed) = inbox(FAILURES_LEN_MAX);
    controller.on_log_failure(tell_failed_log(&config, failures.clone()));
    let (image, handle) = (controller.image(), controller.handle());
    let broker_epoch = controller.broker_epoch();
    let directories = Arc::new(directories);
    let shards = ShardsOptions {
        config: Arc::clone(&config),
        budgets: options.budgets,
        cpus: options.cpus,
        faults: options.faults,
        incarnation,
        directories: Arc::clone(&directories),
        failures,
        random_seed: random.next_u64(),
        control: handle.clone(),
    };
    let shards = Shards::start(shards, Arc::clone(&image)).await?;
    shards.publisher().publish(image).await;
    moved::go_on(shards.publisher(), &directories.moves).await;
    let watch = Failures {
        publisher: Rc::clone(shards.publisher()),
        control: handle.clone(),
        config: Arc::clone(&config),
        directories: Arc::clone(&directories),
        on_failure: options.on_failure,
    };
    let controller = serve_controller(controller, &shards);
    io::spawn_detached(TaskClass::Background, watch.watch(failed));
    let checkpoints = Checkpoints::start(shards.publisher(), &directories, &config);
    let disk_watches = DiskWatch::start(shards.publisher(), options.disks).await;
    let control = Control {
        checkpoints,
        disk_watches,
        shards,
        handle,
        broker_epoch,
        controller,
    };
    if let Err(reason) = control.shards.open_ports(&config.listeners.clients).await {
        control.stop().await;
        return Err(reason);
    }
    Ok(control)
}

fn serve_controller(controller: Controller, shards: &Shards) -> JoinHandle<bool> {
    let publisher = Rc::clone(shards.publisher());
    let publish: Publish = Box::new(move |image| {
        let publisher = Rc::clone(&publisher);
        Box::pin(async move {
            publisher.publish(image).await;
        })
    });
    io::spawn(TaskClass::Produce, async move {
        let ended = controller.serve(publish).await;
        if let Err(error) = &ended {
            tracing::error!("the metadata log did not close cleanly: {error}");
        }
        ended.is_ok()
    })
}

/// A metadata log that takes nothing any more counts as the failure of its directory.
fn tell_failed_log(
    config: &BrokerConfig,
    failures: InboxSender<OfflineDirectory>,
) -> Box<dyn Fn(String)> {
    let path = config.metadata_log_dir().to_owned();
    Box::new(move |reason| {
        let failed = OfflineDirectory {
            path: path.clone(),
            reason,
        };
        // A full inbox tells of failures enough.
        let _ = failures.try_send(failed);
    })
}

async fn recover_logs(
    directories: &mut Directories,
    options: &ControlOptions,
    incarnation: Uuid,
) -> Result<(), String> {
    let recovery = |directory| RecoveryOptions {
        directory,
        incarnation,
        shard_count: u16::try_from(options.cpus.len().max(1)).unwrap_or(u16::MAX),
        journal_bytes: options.budgets.journal_bytes,
    };
    directories.recover(recovery).await
}

impl Control {
    /// True when the end came unasked.
    async fn serve(self, mut commands: Inbox<Command>) -> bool {
        let mut batch = Vec::new();
        let was_told = commands.receive_batch(&mut batch).await;
        let is_clean = self.stop().await;
        for Command::Stop(answer) in batch {
            let _ = answer.send(is_clean);
        }
        !was_told
    }

    /// Shards first, since their requests may still ask the controller; then the metadata log; the
    /// clean-shutdown files last, one in each directory in which nothing failed.
    async fn stop(self) -> bool {
        self.checkpoints.stop().await;
        self.disk_watches.iter().for_each(|watch| watch.stop());
        let closed = self.shards.stop().await;
        self.handle.stop().await;
        let is_controller_closed = self.controller.await;
        is_controller_closed && seal_all(closed, self.broker_epoch).await
    }
}

/// Whether all are sealed.
async fn seal_all(closed: ClosedDirectories, broker_epoch: BrokerEpoch) -> bool {
    let mut is_clean = true;
    for (directory, closed) in closed {
        is_clean &= match closed {
            Ok(logs) => seal(&directory, &logs, broker_epoch).await,
            Err(reason) => {
                tracing::error!(
                    "the logs in {} did not close: {reason}",
                    directory.display()
                );
                false
            }
        };
    }
    is_clean
}

async fn seal(directory: &Path, logs: &[ClosedLog], broker_epoch: BrokerEpoch) -> bool {
    match seal_directory(directory, logs, broker_epoch).await {
        Ok(()) => true,
        Err(error) => {
            tracing::error!("the data folder is not sealed: {error}");
            false
        }
    }
}
