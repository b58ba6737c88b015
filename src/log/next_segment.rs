//! The next segment's file, made before it is needed: created, locked, its first blocks reserved
//! and all of that synced, under a name of its own, so that a roll waits for nothing.
//!
//! ```text
//! None ─> Making ─> Ready ─(roll)─> named in the background ─> None
//!            └────> Failed (for a second) ─> None
//! ```
//!
//! The roll's record goes out at once; the file gets its name, durably, beside it. Until then the
//! records are all that name the segment, and they are live: no journal file that names it is
//! reused and no WATERMARK passes its beginning before. So where recovery misses the last segment
//! of a log, it finds its file under the name that stands here ([`adopt`]).

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::config::LogConfig;
use super::error::LogError;
use super::format::file_names::{LogFileKind, LogFileName, NEXT_SEGMENT};
use super::journal::Result;
use super::partition_log::{Log, LogStatus};
use super::segment::{LOCK_WAIT, STEP_BYTES_MIN, Segment, floor_to_block};
use crate::base::ids::Offset;
use crate::base::limits::MIB;
use crate::base::time::TimestampMs;
use crate::io::{self, File, OpenOptions, TaskClass};

/// Between two tries while the disk has no room.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The file is made when this part of the segment is left, or of its time.
const LEFT_DIVISOR: u64 = 8;
/// Fast producers fill small segments within milliseconds: of those, half is left.
const LEFT_BYTES_MIN: u64 = 16 * MIB as u64;
/// The first reservation is this part of a segment, between one step and the maximum here.
const FIRST_RESERVATION_DIVISOR: u64 = 16;
const FIRST_RESERVATION_BYTES_MAX: u64 = 4 * MIB as u64;

/// How far the next segment's file is.
#[derive(Default)]
pub(crate) enum NextSegment {
    #[default]
    None,
    Making,
    Ready(Prepared),
    /// Not tried again for a while.
    Failed,
}

/// A file that waits for its name.
pub(crate) struct Prepared {
    pub(crate) file: File,
    pub(crate) reserved: u64,
}

/// Whether a segment will roll soon. Pure.
fn is_near_roll(
    config: &LogConfig,
    size: u64,
    first_timestamp: Option<TimestampMs>,
    latest: TimestampMs,
) -> bool {
    let bytes = config.segment_bytes;
    let left = (bytes / LEFT_DIVISOR).max(LEFT_BYTES_MIN.min(bytes / 2));
    let age = first_timestamp.map_or(0, |first| latest.0.saturating_sub(first.0.max(0)));
    let limit = config
        .segment_ms_max()
        .saturating_sub(config.segment_jitter_ms);
    let near = limit - limit / LEFT_DIVISOR;
    size > 0 && (size + left >= bytes || u64::try_from(age).is_ok_and(|age| age > near))
}

/// Blocks reserved in a new file. Pure.
fn first_reservation(segment_bytes: u64, step_max: u64) -> u64 {
    let step_max = step_max.clamp(STEP_BYTES_MIN, FIRST_RESERVATION_BYTES_MAX);
    floor_to_block((segment_bytes / FIRST_RESERVATION_DIVISOR).clamp(STEP_BYTES_MIN, step_max))
}

impl Log {
    /// Has the next segment's file made when this one is nearly full or old.
    pub(crate) fn prepare_next_if_near(self: &Rc<Self>, latest: TimestampMs) {
        let segment = self.active_segment();
        let first = segment.first_timestamp.get();
        let is_near = is_near_roll(&self.config(), segment.size.get(), first, latest);
        let is_free = matches!(*self.next_segment.borrow(), NextSegment::None);
        if !is_near || !is_free || !segment.is_named.get() || self.is_closed() {
            return;
        }
        *self.next_segment.borrow_mut() = NextSegment::Making;
        let log = Rc::clone(self);
        io::spawn(TaskClass::Background, async move {
            let made = log.make_next().await;
            // No room now is no failure: the roll makes the file itself, and says so.
            let is_made = made.is_ok();
            *log.next_segment.borrow_mut() = made.map_or(NextSegment::Failed, NextSegment::Ready);
            log.waiters.wake_all();
            if !is_made {
                io::sleep(RETRY_DELAY).await;
                *log.next_segment.borrow_mut() = NextSegment::None;
            }
        });
    }

    async fn make_next(&self) -> std::io::Result<Prepared> {
        let path = self.folder.join(NEXT_SEGMENT);
        let options = OpenOptions {
            write: true,
            direct: true,
            create_new: true,
            ..OpenOptions::default()
        };
        let file = File::open(&path, options).await?;
        let reserved =
            first_reservation(self.config().segment_bytes, self.shard.reserve_step_max());
        let made = async {
            file.lock_exclusive(LOCK_WAIT).await?;
            file.preallocate(0, reserved).await?;
            file.sync_all().await?;
            io::directory::sync(&self.folder.path()).await
        };
        match made.await {
            Ok(()) => Ok(Prepared { file, reserved }),
            Err(error) => {
                let _ = io::directory::remove_file(&path).await;
                Err(error)
            }
        }
    }

    /// Takes the file that was made; waits for one that is being made.
    pub(crate) async fn take_next(&self) -> Result<Option<Prepared>> {
        self.wait_for_next().await?;
        match self.next_segment.take() {
            NextSegment::Ready(prepared) => Ok(Some(prepared)),
            other => {
                *self.next_segment.borrow_mut() = other;
                Ok(None)
            }
        }
    }

    async fn wait_for_next(&self) -> Result<()> {
        let is_idle = || !matches!(*self.next_segment.borrow(), NextSegment::Making);
        let idle = || is_idle().then_some(());
        self.shard.health.race(&self.waiters, idle).await
    }

    /// Waits until the active segment's file has its name, and none is being made.
    pub(crate) async fn wait_until_named(&self) -> Result<()> {
        self.wait_for_next().await?;
        self.active_segment().wait_until_named().await
    }

    /// Gives a segment's file its name, durably, in the background.
    pub(crate) fn name_in_background(self: &Rc<Self>, segment: &Rc<Segment>) {
        let (log, segment) = (Rc::clone(self), Rc::clone(segment));
        io::spawn(TaskClass::Background, async move {
            let mut short_of_disk = None;
            while let Err(error) = name(&log.folder.path(), segment.base_offset).await {
                if log.status.get() == LogStatus::Deleting {
                    // Nobody will look for it under its name.
                    break;
                }
                if error.kind() != std::io::ErrorKind::StorageFull {
                    segment.fail("naming", &error);
                    return;
                }
                short_of_disk.get_or_insert_with(|| log.shard.note_short_of_disk());
                io::sleep(RETRY_DELAY).await;
            }
            segment.is_named.set(true);
            segment.waiters.wake_all();
        });
    }

    /// Removes a file that was made and is not needed: the log is closed.
    pub(crate) async fn drop_next(&self) -> Result<()> {
        if self.take_next().await?.is_some() {
            remove_next(&self.folder.path()).await?;
        }
        Ok(())
    }
}

async fn name(folder: &Path, base: Offset) -> std::io::Result<()> {
    let to = folder.join(LogFileName::live(base, LogFileKind::Log).to_string());
    match io::directory::rename(&folder.join(NEXT_SEGMENT), &to).await {
        // Renamed by a try whose sync failed.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            io::directory::metadata(&to).await?;
        }
        renamed => renamed?,
    }
    io::directory::sync(folder).await
}

/// The last segment of a log was rolled to and has not got its name: it gets it now.
pub(crate) async fn adopt(folder: &Path, base: Offset) -> Result<()> {
    let named = name(folder, base).await;
    named.map_err(|error| LogError::io(format!("naming {}", folder.display()), error))
}

/// Removes the file, durably: what it holds must not come back under a later life's name.
pub(crate) async fn remove_next(folder: &Path) -> Result<()> {
    let path = folder.join(NEXT_SEGMENT);
    let failed = |error| LogError::io(format!("removing {}", path.display()), error);
    match io::directory::remove_file(&path).await {
        Ok(()) => io::directory::sync(folder).await.map_err(failed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
#[path = "next_segment_test.rs"]
mod next_segment_test;
