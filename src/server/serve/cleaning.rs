//! Each shard's cleaner: it takes the dirtiest of its compacted logs, again and again, and rests
//! for `log.cleaner.backoff.ms` when none is due (`LogCleaner`). In the whole process no more than
//! `log.cleaner.threads` clean at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::base::config::CleanerSettings;
use crate::io;
use crate::log::{CleanOptions, CleanOutcome, CleanStats, CleanerPace};
use crate::metrics::{Counter, Uncleanable};
use crate::partition::Partition;
use crate::server::node::Node;
use crate::shard::Shard;

/// Before a shard asks again where as many clean as may.
const TURN_WAIT: Duration = Duration::from_millis(50);
/// After a failure of the disk, at least.
const FAILURE_WAIT: Duration = Duration::from_secs(1);

/// What a shard's cleaner works with.
pub struct Cleaner {
    /// Whose logs.
    pub shard: Rc<Shard>,
    /// Shared with the other shards.
    pub pace: Arc<CleanerPace>,
    /// Bytes that all tables of keys may take.
    pub bytes_max: usize,
}

/// What came of one round.
enum Round {
    /// A log was cleaned: perhaps there is another one.
    Cleaned,
    Nothing,
    /// As many clean as may.
    Busy,
    Failed,
}

/// Cleans until the shard's runtime ends.
pub async fn clean_logs(cleaner: Cleaner) {
    loop {
        let settings = cleaner.settings();
        let rest = match settings.map(|settings| settings.backoff_ms) {
            Some(ms) => Duration::from_millis(u64::try_from(ms).unwrap_or(0)),
            None => FAILURE_WAIT,
        };
        let round = match settings.filter(|settings| settings.is_enabled) {
            Some(settings) => cleaner.round(settings).await,
            None => Round::Nothing,
        };
        match round {
            Round::Cleaned => io::yield_now().await,
            Round::Busy => io::sleep(TURN_WAIT).await,
            Round::Nothing => io::sleep(rest.max(Duration::from_millis(1))).await,
            Round::Failed => io::sleep(rest.max(FAILURE_WAIT)).await,
        }
    }
}

impl Cleaner {
    /// Those in force now.
    fn settings(&self) -> Option<CleanerSettings> {
        let node = self.shard.attachment::<Node>()?;
        let settings = node.config().cleaner;
        Some(settings)
    }

    /// Bytes of one table.
    fn table_bytes(&self, settings: CleanerSettings) -> usize {
        settings.dedupe_bytes.min(self.bytes_max) / settings.threads.max(1)
    }

    async fn round(&self, settings: CleanerSettings) -> Round {
        let Some(partition) = self.dirtiest(settings).await else {
            return Round::Nothing;
        };
        let Some(_running) = self.pace.begin(settings.threads) else {
            return Round::Busy;
        };
        let log = partition.log();
        let folder = log.identity().folder();
        let outcome = log.clean(&self.options(settings, &partition)).await;
        match outcome {
            Ok(CleanOutcome::Cleaned(stats)) => self.note(&folder, &stats),
            Ok(CleanOutcome::Nothing) => return Round::Nothing,
            // Whoever changes or closes the log comes first.
            Ok(CleanOutcome::Interrupted) => return Round::Busy,
            Ok(CleanOutcome::Uncleanable(what)) => {
                tracing::error!("{folder} cannot be cleaned: {what}");
            }
            Err(error) if partition.is_closed() => tracing::debug!("{folder}: {error}"),
            Err(error) => {
                tracing::error!("{folder}: cleaning failed: {error}");
                return Round::Failed;
            }
        }
        Round::Cleaned
    }

    fn options(&self, settings: CleanerSettings, partition: &Partition) -> CleanOptions {
        let (shard, begun_with) = (Rc::clone(&self.shard), settings.io_bytes_per_second);
        let rate = move || {
            let node = shard.attachment::<Node>();
            node.map_or(begun_with, |node| node.config().cleaner.io_bytes_per_second)
        };
        CleanOptions {
            last_stable_offset: partition.last_stable_offset(),
            table_bytes: self.table_bytes(settings),
            load_factor: settings.load_factor,
            // As in Kafka, one half to read into and one to write from, shared by all.
            buffer_bytes: settings.io_buffer_bytes / settings.threads.max(1) / 2,
            rate: Rc::new(rate),
            pace: Arc::clone(&self.pace),
        }
    }

    /// The dirtiest of the logs that are to be cleaned now. Says on the way where the logs stand.
    async fn dirtiest(&self, settings: CleanerSettings) -> Option<Rc<Partition>> {
        let table_bytes = self.table_bytes(settings);
        let mut dirtiest = None;
        let (mut largest, mut chosen, mut delay) = (0.0_f64, -1.0_f64, 0);
        let directories = self
            .shard
            .logs()
            .iter()
            .map(|logs| logs.directory().to_owned());
        let mut uncleanable: BTreeMap<PathBuf, Uncleanable> = directories
            .map(|directory| (directory, Uncleanable::default()))
            .collect();
        for partition in self.shard.partitions() {
            let log = partition.log();
            let config = log.config();
            let is_left = partition.is_closed() || log.is_moving() || log.damage().is_some();
            if !config.compacted || is_left {
                continue;
            }
            if log.uncleanable(table_bytes).is_some() {
                let sum = uncleanable.entry(log.directory().to_owned()).or_default();
                sum.logs += 1;
                sum.bytes += log.size_bytes();
                continue;
            }
            let Ok(cleanable) = log.cleanable(partition.last_stable_offset()).await else {
                continue;
            };
            let ratio = cleanable.ratio();
            largest = largest.max(ratio);
            delay = delay.max(cleanable.overdue_ms);
            if cleanable.is_due(&config) && log.has_room_to_clean() && ratio > chosen {
                chosen = ratio;
                dirtiest = Some(Rc::clone(&partition));
            }
            // Whatever came meanwhile goes first.
            io::yield_now().await;
        }
        self.shard.metrics().change_cleaner(|gauges| {
            gauges.dirtiest_ratio = largest;
            gauges.delay = Duration::from_millis(delay);
            gauges.uncleanable = uncleanable;
        });
        dirtiest
    }

    fn note(&self, folder: &str, stats: &CleanStats) {
        let metrics = self.shard.metrics();
        for (counter, count) in [
            (Counter::Cleanings, 1),
            (Counter::CleanerReads, stats.reads),
            (Counter::CleanedBytesRead, stats.bytes_read),
            (Counter::CleanedBytesWritten, stats.bytes_written),
            (Counter::CleanedRecordsRead, stats.records_read),
            (Counter::CleanedRecordsKept, stats.records_kept),
        ] {
            metrics.add(counter, count);
        }
        metrics.change_cleaner(|gauges| {
            gauges.last_took = stats.took;
            gauges.last_bytes = (stats.bytes_read, stats.bytes_written);
            gauges.last_table_use = stats.table_use;
        });
        tracing::info!(
            "{folder}: cleaned offsets {} to {}: {} of {} records and {} of {} bytes stay, \
             in {} of {} segments, with {} buffers, after {:.3} s",
            stats.first_dirty,
            stats.cleaned_to,
            stats.records_kept,
            stats.records_read,
            stats.bytes_written,
            stats.bytes_read,
            stats.segments.1,
            stats.segments.0,
            stats.reads,
            stats.took.as_secs_f64()
        );
    }
}
