//! The control thread: unpinned, with its own driver. It recovers, opens the metadata log, starts
//! the shards, opens the ports, then serves the controller until the broker is told to stop.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::checkpoints::Checkpoints;
use super::memory_guard::keep_within;
use super::shards::{Shards, ShardsOptions};
use super::strays;
use crate::base::config::{BrokerConfig, Budgets};
use crate::base::ids::{BrokerEpoch, Uuid};
use crate::base::random::Random;
use crate::cluster::controller::{ControlHandle, Controller, Publish};
use crate::cluster::decide::LastStop;
use crate::io::task::JoinHandle;
use crate::io::uring::ShardFaults;
use crate::io::{self, Inbox, InboxSender, Runtime, RuntimeOptions, TaskClass};
use crate::log::{ClosedLog, RecoveryOptions, RecoveryReport, recover, seal_directory};
use crate::shard::ShardMessage;

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
    /// What goes wrong with their operations (tests).
    pub faults: Option<ShardFaults>,
    /// From the system's entropy.
    pub random_seed: u64,
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
    config: Arc<BrokerConfig>,
    shards: Shards,
    handle: ControlHandle,
    broker_epoch: BrokerEpoch,
    controller: JoinHandle<bool>,
    checkpoints: Rc<Checkpoints>,
}

async fn start(options: ControlOptions) -> Result<Control, String> {
    let mut random = Random::new(options.random_seed);
    let incarnation = random.next_uuid();
    let report = recover_logs(&options, incarnation).await?;
    let config = Arc::clone(&options.config);
    let last_stop = match report.was_sealed {
        true => LastStop::Orderly,
        false => LastStop::Other,
    };
    let seed = random.next_u64();
    let opened = Controller::open(Arc::clone(&config), seed, last_stop, io::wall_clock()).await;
    let controller = opened.map_err(|error| error.to_string())?;
    let (image, handle) = (controller.image(), controller.handle());
    let broker_epoch = controller.broker_epoch();
    let strays = strays::set_aside(&config.log_dir, &image, &mut random).await;
    strays.map_err(|error| format!("looking for stray folders: {error}"))?;
    let shards = ShardsOptions {
        config: Arc::clone(&config),
        budgets: options.budgets,
        cpus: options.cpus,
        faults: options.faults,
        incarnation,
        journal_bytes_per_shard: report.journal_bytes_per_shard,
        random_seed: random.next_u64(),
        control: handle.clone(),
    };
    let shards = Shards::start(shards, Arc::clone(&image)).await?;
    let publisher = Rc::clone(shards.publisher());
    publisher.publish(image).await;
    let publish: Publish = Box::new(move |image| {
        let publisher = Rc::clone(&publisher);
        Box::pin(async move {
            publisher.publish(image).await;
        })
    });
    let controller = io::spawn(TaskClass::Produce, async move {
        let ended = controller.serve(publish).await;
        if let Err(error) = &ended {
            tracing::error!("the metadata log did not close cleanly: {error}");
        }
        ended.is_ok()
    });
    let checkpoints = Checkpoints::start(shards.publisher(), &config);
    let control = Control {
        config,
        checkpoints,
        shards,
        handle,
        broker_epoch,
        controller,
    };
    if let Err(reason) = control
        .shards
        .open_ports(&control.config.listeners.clients)
        .await
    {
        control.stop().await;
        return Err(reason);
    }
    Ok(control)
}

async fn recover_logs(
    options: &ControlOptions,
    incarnation: Uuid,
) -> Result<RecoveryReport, String> {
    let recovery = RecoveryOptions {
        directory: options.config.log_dir.clone(),
        incarnation,
        shard_count: u16::try_from(options.cpus.len().max(1)).unwrap_or(u16::MAX),
        journal_bytes: options.budgets.journal_bytes,
    };
    let report = recover(recovery).await.map_err(|error| error.to_string())?;
    for notice in &report.notices {
        tracing::warn!("{notice}");
    }
    if !report.was_clean {
        tracing::info!(logs = report.logs_recovered, "recovered");
    }
    Ok(report)
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
    /// clean-shutdown file last, and only if nothing failed.
    async fn stop(self) -> bool {
        self.checkpoints.stop().await;
        let closed = self.shards.stop().await;
        self.handle.stop().await;
        let is_controller_closed = self.controller.await;
        match closed {
            Ok(logs) if is_controller_closed => seal(&self.config, &logs, self.broker_epoch).await,
            Ok(_) => false,
            Err(reason) => {
                tracing::error!("the logs did not close: {reason}");
                false
            }
        }
    }
}

async fn seal(config: &BrokerConfig, logs: &[ClosedLog], broker_epoch: BrokerEpoch) -> bool {
    match seal_directory(&config.log_dir, logs, broker_epoch).await {
        Ok(()) => true,
        Err(error) => {
            tracing::error!("the data folder is not sealed: {error}");
            false
        }
    }
}
