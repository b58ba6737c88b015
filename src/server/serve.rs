//! The whole broker behind one handle: what the command line starts, asks and stops.

use std::net::SocketAddr;
use std::time::Duration;

use thiserror::Error;

use super::startup::Prepared;
use crate::metrics::MetricsSnapshot;

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
#[derive(Debug)]
pub struct Broker {
    addresses: Vec<SocketAddr>,
}

/// Called from any thread when the broker can no longer serve; the text says why.
pub type OnFailure = Box<dyn Fn(String) + Send + Sync>;

impl Broker {
    /// Recovers, starts control and shards, opens the ports. Returns when clients are served.
    ///
    /// # Errors
    /// Whatever keeps it from serving; everything that was started has ended then.
    pub fn start(_prepared: Prepared, _on_failure: OnFailure) -> Result<Self, ServeError> {
        Err(ServeError::Start("nothing is served yet".to_owned()))
    }

    /// The addresses that were bound, in the order of the listeners.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Asks every shard for its metrics and adds them up.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        MetricsSnapshot::default()
    }

    /// Stops taking requests, answers what is in flight, writes back, closes.
    #[must_use]
    pub fn stop(self) -> StopReport {
        StopReport {
            is_clean: false,
            duration: Duration::ZERO,
            metrics: MetricsSnapshot::default(),
        }
    }
}
