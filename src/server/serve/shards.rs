//! All shards of the broker as the control plane starts and stops them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use super::directories::Directories;
use super::listening::ConnectionLimits;
use super::publisher::Publisher;
use super::shard_thread::{INBOX_LEN_MAX, ShardHandle, ShardPlan, open_ports, spawn_shard};
use crate::base::config::{BrokerConfig, Budgets, Listener};
use crate::base::ids::{ShardId, Uuid};
use crate::cluster::controller::ControlHandle;
use crate::cluster::image::Image;
use crate::io::InboxSender;
use crate::io::inbox::{Inbox, inbox};
use crate::io::reply::reply_slot;
use crate::io::uring::ShardFaults;
use crate::log::ClosedLog;
use crate::shard::{ClosedDirectory, OfflineDirectory, Shard, ShardMessage};

/// What the shards are started with.
#[derive(Clone, Debug)]
pub struct ShardsOptions {
    /// The settings.
    pub config: Arc<BrokerConfig>,
    /// Bytes of the whole process.
    pub budgets: Budgets,
    /// The CPU of each shard.
    pub cpus: Vec<Option<usize>>,
    /// What goes wrong with their operations (tests).
    pub faults: Option<ShardFaults>,
    /// Drawn for this start; what recovery was told.
    pub incarnation: Uuid,
    /// The log directories, as recovery left them.
    pub directories: Arc<Directories>,
    /// Who hears of those that fail.
    pub failures: InboxSender<OfflineDirectory>,
    /// For ids and jitter.
    pub random_seed: u64,
    /// The way to the controller.
    pub control: ControlHandle,
}

/// How the logs of each directory closed, on all shards.
pub type ClosedDirectories = BTreeMap<PathBuf, Result<Vec<ClosedLog>, String>>;

/// Takes in how one shard's part of a directory closed.
fn merge(all: &mut ClosedDirectories, (path, closed): ClosedDirectory) {
    let outcome = all.entry(path).or_insert_with(|| Ok(Vec::new()));
    match (outcome, closed) {
        (Ok(logs), Ok(more)) => logs.extend(more),
        (Err(_), _) => {}
        (outcome, failed) => *outcome = failed,
    }
}

/// The running shards.
pub struct Shards {
    handles: Vec<ShardHandle>,
    publisher: Rc<Publisher>,
}

impl Shards {
    /// Starts a thread a shard and waits until every one has its logs. On a failure those that
    /// run are stopped.
    pub async fn start(options: ShardsOptions, image: Arc<Image>) -> Result<Self, String> {
        let count = options.cpus.len().max(1);
        let (senders, inboxes): (Vec<_>, Vec<Inbox<ShardMessage>>) =
            (0..count).map(|_| inbox(INBOX_LEN_MAX)).unzip();
        let share = |bytes: u64| usize::try_from(bytes / count as u64).unwrap_or(usize::MAX);
        let plan = ShardPlan {
            config: Arc::clone(&options.config),
            incarnation: options.incarnation,
            directories: options.directories,
            failures: options.failures,
            cache_bytes: share(options.budgets.cache_bytes),
            requests_bytes: share(options.budgets.requests_bytes),
            connections_bytes: share(options.budgets.connections_bytes),
            fetch_sessions_max: options.config.fetch_sessions_max.div_ceil(count),
            cleaner_pace: Arc::default(),
            cleaner_bytes: usize::try_from(options.budgets.cleaner_bytes).unwrap_or(usize::MAX),
            image,
            senders: senders.clone(),
            faults: options.faults,
            random_seed: options.random_seed,
            control: options.control,
            move_rate: Arc::default(),
        };
        let mut shards = Self {
            handles: Vec::with_capacity(count),
            publisher: Rc::new(Publisher::new(senders, options.config)),
        };
        let mut waits = Vec::with_capacity(count);
        let mut failure = None;
        for (number, inbox) in inboxes.into_iter().enumerate() {
            let id = ShardId(u16::try_from(number).unwrap_or(u16::MAX));
            let cpu = options.cpus.get(number).copied().flatten();
            let (ready, is_ready) = reply_slot();
            match spawn_shard(id, cpu, plan.clone(), inbox, ready) {
                Ok(handle) => shards.handles.push(handle),
                Err(reason) => failure = Some(reason),
            }
            waits.push(is_ready);
        }
        for wait in waits {
            match wait.await {
                Some(Ok(())) => {}
                Some(Err(reason)) => failure = Some(reason),
                None => failure = failure.or(Some("a shard ended at its start".to_owned())),
            }
        }
        match failure {
            None => Ok(shards),
            Some(reason) => {
                let _ = shards.stop().await;
                Err(reason)
            }
        }
    }

    /// How images reach them.
    #[must_use]
    pub fn publisher(&self) -> &Rc<Publisher> {
        &self.publisher
    }

    /// Opens the ports of every shard.
    pub async fn open_ports(&self, listeners: &[Listener]) -> Result<(), String> {
        let limits = ConnectionLimits::new(listeners);
        for shard in self.publisher.shards() {
            let limits = limits.clone();
            let open = move |shard: Rc<Shard>| async move { open_ports(&shard, &limits) };
            let opened = self.publisher.run(shard, open).await.await;
            opened.unwrap_or_else(|| Err("a shard ended at its start".to_owned()))?;
        }
        Ok(())
    }

    /// Stops all shards at once and waits for them; answers for each directory where the logs in
    /// it ended, or what kept one from closing.
    pub async fn stop(self) -> ClosedDirectories {
        let mut closing = Vec::with_capacity(self.handles.len());
        let mut threads = Vec::with_capacity(self.handles.len());
        for handle in self.handles {
            handle.stop.send(());
            closing.push(handle.closed);
            threads.push(handle.thread);
        }
        let mut all = ClosedDirectories::new();
        let mut broken = None;
        for closed in closing {
            match closed.await {
                Some(closed) => closed.into_iter().for_each(|one| merge(&mut all, one)),
                None => broken = Some("a shard ended without closing its logs"),
            }
        }
        for thread in threads {
            if thread.join().is_err() {
                broken = Some("a shard's thread panicked");
            }
        }
        if let Some(reason) = broken {
            all.values_mut()
                .for_each(|outcome| *outcome = Err(reason.to_owned()));
        }
        all
    }
}
