//! The admin port: health, metrics and latencies, over HTTP, on a thread of its own.
//!
//! The thread asks every shard once a second, through its inbox, for what it has recorded since the
//! last time. A shard hands its histograms over and goes on with empty ones: nothing is copied on
//! it, and nothing waits for it. Whatever is asked here is answered from what the shards told last;
//! a shard that stands still is named with its silence.
//!
//! | Path | What |
//! |---|---|
//! | `/healthz`, `/readyz` | whether it lives, whether it serves |
//! | `/metrics` | Prometheus text, under the names of Kafka's usual JMX exporter rules |
//! | `/latency` | a live page; `/latency.json` behind it |
//! | `/latency.txt` | the table of `coreline latency` |
//! | `/latency.hgrm` | one percentile distribution for HdrHistogram's viewers |
//!
//! | File | What |
//! |---|---|
//! | `report` | what a shard tells, gathered on its own loop |
//! | `observer` | what all shards told: since the start, and in the last minute |
//! | `latency_log` | the interval log (`coreline.latency.log`) |
//! | `http`, `places` | connections and their limits |
//! | `large_answers` | how many answers that grow with the partitions are held |
//! | `routes`, `latency`, `metrics` | paths to answers |
//!
//! The only place where tokio runs. Absent: authentication (bind it to an address that only
//! operators reach), anything that changes the broker.

mod http;
mod large_answers;
mod latency;
mod latency_log;
mod metrics;
mod observer;
mod places;
mod report;
mod routes;

#[cfg(test)]
mod admin_test;

use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;

use crate::base::config::BrokerConfig;
use crate::io::InboxSender;
use crate::metrics::MetricsSnapshot;
use crate::server::disk_gauge::DiskGauge;
use crate::shard::ShardMessage;
use observer::Observer;

/// How long the main thread waits for the shards' metrics.
const COLLECT_WAIT: Duration = Duration::from_secs(3);
/// How long shards may take to tell what they have, where somebody waits for it.
const REFRESH_WAIT: Duration = Duration::from_secs(1);

/// How far the broker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It recovers; no client is served.
    Starting,
    /// Clients are served.
    Serving,
    /// What is in flight is answered, nothing further.
    Stopping,
}

/// What the main thread tells.
enum Order {
    /// Clients are served; these are the ways to the shards.
    Serve(Vec<InboxSender<ShardMessage>>),
    /// Tell everything that the shards know now.
    Collect(std::sync::mpsc::Sender<MetricsSnapshot>),
    /// The broker stops; its shards are asked nothing further.
    Stop,
}

/// The admin thread as the main thread sees it.
pub struct Admin {
    orders: UnboundedSender<Order>,
    thread: JoinHandle<()>,
    address: Option<SocketAddr>,
}

impl Admin {
    /// Starts the thread, which serves on `listener` if there is one.
    ///
    /// # Errors
    /// What the system said.
    pub fn start(
        config: &Arc<BrokerConfig>,
        disks: Vec<Arc<DiskGauge>>,
        listener: Option<TcpListener>,
    ) -> Result<Self, String> {
        let address = listener.as_ref().and_then(|bound| bound.local_addr().ok());
        let (orders, taken) = unbounded_channel();
        let config = Arc::clone(config);
        let builder = std::thread::Builder::new().name("admin".to_owned());
        let thread = builder
            .spawn(move || run(&config, disks, listener, taken))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self {
            orders,
            thread,
            address,
        })
    }

    /// The address of the admin port, if there is one.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Clients are served from now on.
    pub fn serve(&self, shards: Vec<InboxSender<ShardMessage>>) {
        let _ = self.orders.send(Order::Serve(shards));
    }

    /// What all shards have recorded since the start. A shard that does not answer within a second
    /// is told by what it said last.
    #[must_use]
    pub fn collect(&self) -> MetricsSnapshot {
        let (answer, answers) = std::sync::mpsc::channel();
        let _ = self.orders.send(Order::Collect(answer));
        answers.recv_timeout(COLLECT_WAIT).unwrap_or_default()
    }

    /// Tells whoever asks that the broker stops.
    pub fn stop(&self) {
        let _ = self.orders.send(Order::Stop);
    }

    /// Ends the thread.
    pub fn end(self) {
        drop(self.orders);
        let _ = self.thread.join();
    }
}

fn run(
    config: &Arc<BrokerConfig>,
    disks: Vec<Arc<DiskGauge>>,
    listener: Option<TcpListener>,
    orders: UnboundedReceiver<Order>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(1)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!("no admin port and no latencies: {error}");
            return;
        }
    };
    let tasks = LocalSet::new();
    let observer = Observer::new(config, disks);
    tasks.block_on(&runtime, serve(observer, listener, orders));
    // A write to a stalled disk must not hold up the end.
    runtime.shutdown_background();
}

async fn serve(
    observer: Rc<Observer>,
    listener: Option<TcpListener>,
    mut orders: UnboundedReceiver<Order>,
) {
    // Where nobody looks, shards are not asked each second but keep what they record.
    if listener.is_some() || observer.config.latency_log.is_some() {
        tokio::task::spawn_local(Rc::clone(&observer).watch());
    }
    if let Some(listener) = listener {
        tokio::task::spawn_local(http::listen(listener, Rc::clone(&observer)));
    }
    tokio::task::spawn_local(Rc::clone(&observer).listen());
    while let Some(order) = orders.recv().await {
        match order {
            Order::Serve(shards) => observer.serve(shards),
            Order::Collect(answer) => {
                observer.refresh(REFRESH_WAIT).await;
                let _ = answer.send(observer.snapshot());
            }
            Order::Stop => observer.stop(),
        }
    }
    observer.finish().await;
}
