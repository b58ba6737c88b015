//! When the controller takes a snapshot of the metadata log and drops what is old.

use std::time::Duration;

use crate::base::config::MetadataLogSettings;
use crate::base::time::MonotonicNs;
use crate::cluster::image::Image;
use crate::cluster::metadata_log::MetadataLog;
use crate::io;

/// Longest pause between two looks (`KafkaMetadataLog`'s cleaner in `KafkaRaftClient`).
const UPKEEP_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Shortest pause, whatever the settings.
const UPKEEP_PAUSE_MIN: Duration = Duration::from_millis(10);

/// The next look, and what the last came to.
#[derive(Debug)]
pub struct Upkeep {
    /// When it is due, if no request comes before.
    pub at: MonotonicNs,
    pause: Duration,
    last_snapshot: MonotonicNs,
}

impl Upkeep {
    /// Begins now. A start is in no hurry: the first look comes after the first pause or request.
    #[must_use]
    pub fn new(settings: &MetadataLogSettings) -> Self {
        let pause = match u64::try_from(settings.snapshot_interval_ms_max) {
            Ok(interval) if interval > 0 => Duration::from_millis(interval),
            _ => UPKEEP_PAUSE_MAX,
        };
        let pause = pause.clamp(UPKEEP_PAUSE_MIN, UPKEEP_PAUSE_MAX);
        let now = io::now();
        Self {
            at: now.after(pause),
            pause,
            last_snapshot: now,
        }
    }

    /// Takes a snapshot of `image`, all that `log` has told, and cleans, each if it is due. What
    /// fails is told and tried again in its time: the log holds everything.
    pub async fn carry_out(&mut self, log: &mut MetadataLog, image: &Image) {
        let is_due = log.is_snapshot_due(io::now().since(self.last_snapshot));
        if is_due {
            self.last_snapshot = io::now();
            match log.snapshot(image, io::wall_clock()).await {
                Ok(()) => tracing::debug!("took a snapshot at {}", image.end_offset()),
                Err(fault) => tracing::warn!("no snapshot of the metadata is taken: {fault}"),
            }
        }
        if is_due || io::now() >= self.at {
            self.at = io::now().after(self.pause);
            if let Err(fault) = log.clean(io::wall_clock()).await {
                tracing::warn!("the metadata log is not cleaned: {fault}");
            }
        }
    }
}
