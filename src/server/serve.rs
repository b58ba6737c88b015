//! The whole broker behind one handle: what the command line starts, asks and stops.
//!
//! ```text
//! recovery ─▶ metadata log ─▶ shards ─▶ logs open ─▶ ports open ─▶ … ─▶ drain ─▶ logs close
//!     ─▶ metadata log closes ─▶ clean-shutdown file
//! ```

mod checkpoints;
mod cleaning;
mod control;
mod directories;
mod disk_watch;
mod failures;
mod hosting;
pub mod connection_limits;
pub mod listening;
mod log_settings;
mod memory_guard;
mod moved;
mod publisher;
mod retention;
mod shard_thread;
mod shards;
mod strays;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::admin::Admin;
use super::disk_gauge::DiskGauge;
use super::startup::{DirectoryLock, Prepared};
use crate::base::config::BrokerConfig;
use crate::io::InboxSender;
use crate::io::inbox::inbox;
use crate::metrics::MetricsSnapshot;
use control::{Command, ControlOptions};

/// Commands that may wait for the control thread.
const COMMANDS_LEN_MAX: usize = 4;

/// Why a broker did not start, or no longer runs.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A part of the start failed; the text says which and why.
    #[error("{0}")]
    Start(String),
}

/// How a shutdown went.
#[derive(Debug)]
pub struct StopReport {
    /// Whether everything was written back and the clean-shutdown file stands.
    pub is_clean: bool,
    /// What took so long.
    pub duration: Duration,
    /// All shards' metrics at the end.
    pub metrics: MetricsSnapshot,
}

/// A broker that serves. Its shards run on threads of their own; the methods block and are for the
/// main thread alone.
pub struct Broker {
    addresses: Vec<SocketAddr>,
    admin: Admin,
    commands: InboxSender<Command>,
    control: JoinHandle<()>,
    /// Held until the last thread has ended.
    _locks: Vec<DirectoryLock>,
}

impl fmt::Debug for Broker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Broker")
            .field("addresses", &self.addresses)
            .field("admin", &self.admin.address())
            .finish_non_exhaustive()
    }
}

/// Called from any thread when the broker can no longer serve; the text says why.
pub type OnFailure = Box<dyn Fn(String) + Send + Sync>;

/// The same, for all who may tell.
type Failed = Arc<dyn Fn(String) + Send + Sync>;

impl Broker {
    /// Recovers, starts control and shards, opens the ports. Returns when clients are served.
    ///
    /// # Errors
    /// Whatever keeps it from serving; everything that was started has ended then.
    pub fn start(prepared: Prepared, on_failure: OnFailure) -> Result<Self, ServeError> {
        let Prepared {
            config,
            budgets,
            cpus,
            admin,
            faults,
            locks,
            offline,
            ..
        } = prepared;
        let on_failure: Failed = on_failure.into();
        let addresses = addresses(&config)?;
        let config = Arc::new(config);
        // Before recovery, which it may tell of.
        let gauge = |directory: &PathBuf| Arc::new(DiskGauge::new(directory.clone(), &config));
        let disks: Vec<_> = config.log_dirs.iter().map(gauge).collect();
        let admin = Admin::start(&config, disks.clone(), admin).map_err(ServeError::Start)?;
        let options = ControlOptions {
            config,
            budgets,
            cpus,
            disks,
            faults,
            offline,
            random_seed: entropy(),
            on_failure: Arc::clone(&on_failure),
        };
        let (commands, orders) = inbox(COMMANDS_LEN_MAX);
        let (ready, is_ready) = channel();
        let builder = std::thread::Builder::new().name("control".to_owned());
        let run = move || {
            if control::run(options, orders, &ready) {
                on_failure("the control thread has ended".to_owned());
            }
        };
        let control = builder
            .spawn(run)
            .map_err(|error| ServeError::Start(format!("cannot start a thread: {error}")))?;
        let served = is_ready.recv();
        let served = served.unwrap_or_else(|_| Err("the control thread has ended".to_owned()));
        match served {
            Ok(serving) => {
                admin.serve(serving.shards);
                Ok(Self {
                    addresses,
                    admin,
                    commands,
                    control,
                    _locks: locks,
                })
            }
            Err(reason) => {
                admin.end();
                let _ = control.join();
                Err(ServeError::Start(reason))
            }
        }
    }

    /// The addresses that were bound, in the order of the listeners.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What all shards have recorded since the start.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        self.admin.collect()
    }

    /// The address of the admin port, if there is one.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.address()
    }

    /// Stops taking requests, answers what is in flight, writes back, closes.
    #[must_use]
    pub fn stop(self) -> StopReport {
        let started = Instant::now();
        let metrics = self.metrics();
        self.admin.stop();
        let (answer, answers) = channel();
        let told = self.commands.try_send(Command::Stop(answer)).is_ok();
        let is_clean = told && answers.recv().unwrap_or(false);
        let has_ended = self.control.join().is_ok();
        self.admin.end();
        StopReport {
            is_clean: is_clean && has_ended,
            duration: started.elapsed(),
            metrics,
        }
    }
}

fn addresses(config: &BrokerConfig) -> Result<Vec<SocketAddr>, ServeError> {
    let listeners = config.listeners.clients.iter();
    listeners
        .map(|listener| {
            let ip = listener.host.parse();
            let ip = ip.map_err(|error| {
                ServeError::Start(format!("listener {}: {error}", listener.name))
            })?;
            Ok(SocketAddr::new(ip, listener.port))
        })
        .collect()
}

/// 64 bits that no other start gets; the standard library draws hash keys from the system.
fn entropy() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
