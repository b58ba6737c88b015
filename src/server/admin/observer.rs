//! What all shards told: since the start, and in the last minute. Lives on the admin thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Phase;
use super::latency_log::LatencyLog;
use super::report::{self, Gauges, PartitionReport, Report};
use crate::base::config::BrokerConfig;
use crate::base::ids::ShardId;
use crate::coordinator::group_service::GroupsReport;
use crate::io::InboxSender;
use crate::metrics::{Compact, Counter, MetricsSnapshot, Recorded};
use crate::server::disk_gauge::DiskGauge;
use crate::shard::ShardMessage;

/// How often shards are asked.
const TICK: Duration = Duration::from_secs(1);
/// What the last minute is.
pub const MINUTE: Duration = Duration::from_secs(60);
/// A shard that has told nothing for so long stands still.
pub const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Partitions that were told longer ago are asked for again.
const PARTITIONS_AGE_MAX: Duration = Duration::from_secs(5);

/// What one shard told.
pub struct ShardView {
    inbox: InboxSender<ShardMessage>,
    /// Since the start.
    pub total: Recorded,
    /// Each about a second, oldest first.
    slices: VecDeque<Slice>,
    /// Empty, for the shard to go on with.
    spare: Recorded,
    /// How often it was asked, and how often it has told.
    asked: u64,
    told: u64,
    /// Somebody wants what comes after the answer that is under way.
    is_wanted_again: bool,
    /// When it told last.
    pub heard_at: Instant,
    /// Counters since the start.
    pub counters: Vec<u64>,
    /// Where it stood.
    pub gauges: Box<Gauges>,
    /// It was asked for its partitions and has not told them yet.
    are_partitions_asked: bool,
    /// Its partitions, and when they were told.
    pub partitions: (Vec<PartitionReport>, Option<Instant>),
    /// Its groups, told with them.
    pub groups: GroupsReport,
}

struct Slice {
    at: Instant,
    compact: Compact,
    counters: Vec<u64>,
    gauges: Box<Gauges>,
}

/// The span of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Since the start.
    Start,
    /// The last minute.
    Minute,
}

/// What the admin thread knows.
pub struct Observer {
    /// The settings.
    pub config: Arc<BrokerConfig>,
    /// The disks of the log directories.
    pub disks: Vec<Arc<DiskGauge>>,
    /// When the broker was started.
    pub started: Instant,
    phase: Cell<Phase>,
    shards: RefCell<Vec<ShardView>>,
    reports: UnboundedSender<Report>,
    arrived: RefCell<Option<UnboundedReceiver<Report>>>,
    told: Notify,
    log: RefCell<Option<LatencyLog>>,
}

impl Observer {
    /// Knows nothing yet.
    pub fn new(config: &Arc<BrokerConfig>, disks: Vec<Arc<DiskGauge>>) -> Rc<Self> {
        let (reports, arrived) = unbounded_channel();
        Rc::new(Self {
            config: Arc::clone(config),
            disks,
            started: Instant::now(),
            phase: Cell::new(Phase::Starting),
            shards: RefCell::default(),
            reports,
            arrived: RefCell::new(Some(arrived)),
            told: Notify::new(),
            log: RefCell::new(config.latency_log.clone().map(LatencyLog::new)),
        })
    }

    /// Clients are served from now on.
    pub fn serve(&self, shards: Vec<InboxSender<ShardMessage>>) {
        let view = |inbox| ShardView {
            inbox,
            total: Recorded::default(),
            slices: VecDeque::new(),
            spare: Recorded::default(),
            asked: 0,
            told: 0,
            is_wanted_again: false,
            heard_at: Instant::now(),
            counters: Vec::new(),
            gauges: Box::default(),
            are_partitions_asked: false,
            partitions: (Vec::new(), None),
            groups: GroupsReport::default(),
        };
        *self.shards.borrow_mut() = shards.into_iter().map(view).collect();
        self.phase.set(Phase::Serving);
    }

    /// How far the broker is.
    pub fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// The broker stops: its shards are asked nothing further, so that their inboxes close.
    pub fn stop(&self) {
        self.phase.set(Phase::Stopping);
    }

    /// Takes in what is told.
    pub async fn listen(self: Rc<Self>) {
        let Some(mut arrived) = self.arrived.borrow_mut().take() else {
            return;
        };
        while let Some(report) = arrived.recv().await {
            self.take_in(report);
            self.told.notify_waiters();
        }
    }

    /// Asks once a second.
    pub async fn watch(self: Rc<Self>) {
        loop {
            self.ask_all();
            self.write_log(false).await;
            tokio::time::sleep(TICK).await;
        }
    }

    fn ask_all(&self) {
        let mut shards = self.shards.borrow_mut();
        shards.iter_mut().for_each(|shard| self.ask(shard));
    }

    /// Asks unless an answer is under way. A full inbox: it is asked again at the next turn.
    fn ask(&self, shard: &mut ShardView) {
        if self.phase.get() != Phase::Serving || shard.asked != shard.told {
            return;
        }
        let fresh = std::mem::take(&mut shard.spare);
        let message = report::ask_interval(fresh, self.reports.clone());
        shard.asked += u64::from(shard.inbox.try_send(message).is_ok());
    }

    fn take_in(&self, report: Report) {
        let mut shards = self.shards.borrow_mut();
        let of = |shard: ShardId| usize::from(shard.0);
        match report {
            Report::Partitions {
                shard,
                partitions,
                groups,
            } => {
                if let Some(view) = shards.get_mut(of(shard)) {
                    view.partitions = (partitions, Some(Instant::now()));
                    view.groups = groups;
                    view.are_partitions_asked = false;
                }
            }
            Report::Interval {
                shard,
                mut recorded,
                counters,
                gauges,
            } => {
                let Some(view) = shards.get_mut(of(shard)) else {
                    return;
                };
                view.total.merge(&recorded);
                if let Some(log) = &mut *self.log.borrow_mut() {
                    log.add(&recorded);
                }
                view.slices.push_back(Slice {
                    at: Instant::now(),
                    compact: Compact::of(&recorded),
                    counters: counters.clone(),
                    gauges: gauges.clone(),
                });
                while view
                    .slices
                    .front()
                    .is_some_and(|old| old.at.elapsed() > MINUTE)
                {
                    view.slices.pop_front();
                }
                recorded.clear();
                view.spare = recorded;
                view.told += 1;
                view.heard_at = Instant::now();
                (view.counters, view.gauges) = (counters, gauges);
                if std::mem::take(&mut view.is_wanted_again) {
                    self.ask(view);
                }
            }
        }
    }

    /// Waits until all shards have told what they know now, but not for long.
    pub async fn refresh(&self, wait: Duration) {
        if self.phase.get() != Phase::Serving {
            return;
        }
        let want = |shard: &mut ShardView| {
            let is_under_way = shard.asked != shard.told;
            shard.is_wanted_again |= is_under_way;
            self.ask(shard);
            shard.told + 1 + u64::from(is_under_way)
        };
        let wanted: Vec<u64> = self.shards.borrow_mut().iter_mut().map(want).collect();
        self.until(wait, |shards| {
            let mut pairs = shards.iter().zip(&wanted);
            pairs.all(|(shard, wanted)| shard.told >= *wanted)
        })
        .await;
    }

    /// The same for their partitions, where those were told too long ago.
    pub async fn refresh_partitions(&self, wait: Duration) {
        let is_old = |view: &ShardView| {
            let at = view.partitions.1;
            at.is_none_or(|at| at.elapsed() > PARTITIONS_AGE_MAX)
        };
        if self.phase.get() == Phase::Serving {
            let mut shards = self.shards.borrow_mut();
            let due = |view: &&mut ShardView| is_old(view) && !view.are_partitions_asked;
            // However many ask here, a shard has one such message before it.
            for view in shards.iter_mut().filter(due) {
                let message = report::ask_partitions(self.reports.clone());
                view.are_partitions_asked = view.inbox.try_send(message).is_ok();
            }
        }
        self.until(wait, |shards| !shards.iter().any(is_old)).await;
    }

    async fn until(&self, wait: Duration, is_so: impl Fn(&[ShardView]) -> bool) {
        let told = async {
            loop {
                let next = self.told.notified();
                if is_so(&self.shards.borrow()) {
                    return;
                }
                next.await;
            }
        };
        let _ = tokio::time::timeout(wait, told).await;
    }

    /// What shards told, one by one.
    pub fn shards<T>(&self, look: impl FnOnce(&[ShardView]) -> T) -> T {
        look(&self.shards.borrow())
    }

    /// Latencies of one shard, or of all.
    pub fn recorded(&self, shard: Option<usize>, window: Window) -> Recorded {
        let mut sum = Recorded::default();
        let shards = self.shards.borrow();
        let wanted = shards.iter().enumerate();
        for (_, view) in wanted.filter(|(number, _)| shard.is_none_or(|one| one == *number)) {
            match window {
                Window::Start => sum.merge(&view.total),
                Window::Minute => view
                    .slices
                    .iter()
                    .filter(|slice| slice.at.elapsed() <= MINUTE)
                    .for_each(|slice| sum.merge_compact(&slice.compact)),
            }
        }
        sum
    }

    /// Everything since the start.
    pub fn snapshot(&self) -> MetricsSnapshot {
        self.snapshot_of(None, Window::Start)
    }

    /// Latencies and counters of one shard, or of all; counters are since the start.
    pub fn snapshot_of(&self, shard: Option<usize>, window: Window) -> MetricsSnapshot {
        let mut sum = MetricsSnapshot {
            recorded: self.recorded(shard, window),
            counters: vec![0; Counter::ALL.len()],
        };
        if window == Window::Start {
            for (number, view) in self.shards.borrow().iter().enumerate() {
                if shard.is_none_or(|one| one == number) {
                    let parts = sum.counters.iter_mut().zip(&view.counters);
                    parts.for_each(|(sum, count)| *sum += count);
                }
            }
        }
        sum
    }

    /// Writes what the interval log still lacks.
    pub async fn finish(&self) {
        self.write_log(true).await;
    }

    async fn write_log(&self, is_last: bool) {
        let rows = match &mut *self.log.borrow_mut() {
            Some(log) => log.take_rows(is_last),
            None => None,
        };
        if let Some(rows) = rows {
            let written = tokio::task::spawn_blocking(move || rows.write());
            if is_last {
                let _ = tokio::time::timeout(TICK, written).await;
            }
        }
    }
}

impl ShardView {
    /// How long it has told nothing.
    pub fn silence(&self) -> Duration {
        self.heard_at.elapsed()
    }

    /// Messages in its inbox.
    pub fn inbox_depth(&self) -> usize {
        self.inbox.depth()
    }

    /// The part of the last minute in which it was not waiting for events, 0 to 1.
    pub fn busy_share(&self) -> f64 {
        let Some((first, last)) = self.slices.front().zip(self.slices.back()) else {
            return 0.0;
        };
        let whole = last.gauges.now.since(first.gauges.now).as_secs_f64();
        let idle = last.gauges.idle.saturating_sub(first.gauges.idle);
        if whole <= 0.0 {
            return 0.0;
        }
        (1.0 - idle.as_secs_f64() / whole).clamp(0.0, 1.0)
    }

    /// What a counter has risen by in each second of the last minute.
    pub fn rate(&self, counter: Counter) -> f64 {
        let Some((first, last)) = self.slices.front().zip(self.slices.back()) else {
            return 0.0;
        };
        let of = |slice: &Slice| slice.counters.get(counter as usize).copied().unwrap_or(0);
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        if seconds <= 0.0 {
            return 0.0;
        }
        of(last).saturating_sub(of(first)) as f64 / seconds
    }

    /// A counter since the start.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or(0)
    }
}
