//! What keeps the log small: snapshots from time to time, and the end of what lies before them.
//!
//! A segment ends with each snapshot, so that the log can begin there. Whatever step a crash comes
//! at, the newest snapshot is whole and durable before anything before it goes, segments go oldest
//! first and each durably before the next, and snapshots after the segments that they begin.

use std::time::Duration;

use super::error::MetadataLogError;
use super::names::{SnapshotId, segment_name, sibling_names};
use super::retention::{self, KeptSnapshot};
use super::snapshot_file::{self, Content, remove_if_there};
use super::{MetadataLog, SnapshotFile};
use crate::base::time::TimestampMs;
use crate::cluster::image::Image;
use crate::io::directory;
use crate::wire::record_batch::ControlRecord;

impl MetadataLog {
    /// Whether a snapshot is to be taken, `since` the last one or the start
    /// (`SnapshotGenerator`): after so many bytes of records, or after so long and any record.
    #[must_use]
    pub fn is_snapshot_due(&self, since: Duration) -> bool {
        let bytes = self.bytes_since_snapshot;
        let interval = u64::try_from(self.settings.snapshot_interval_ms_max).unwrap_or(0);
        let is_time = interval > 0 && since >= Duration::from_millis(interval);
        bytes >= self.settings.bytes_between_snapshots_max.max(1) || bytes > 0 && is_time
    }

    /// Writes a snapshot of `image`, which is all that the log has told, and begins a segment
    /// behind it. When that fails, the log goes on without.
    pub async fn snapshot(
        &mut self,
        image: &Image,
        now: TimestampMs,
    ) -> Result<(), MetadataLogError> {
        // Tried; the next comes in its time.
        self.bytes_since_snapshot = 0;
        let id = SnapshotId {
            end_offset: image.end_offset(),
            epoch: image.log_epoch(),
        };
        debug_assert_eq!(id.end_offset, self.next_offset, "the image is the log's");
        if self.failed {
            return Err(MetadataLogError::Failed);
        }
        if self.snapshots.last().is_some_and(|last| last.id >= id) {
            return Ok(());
        }
        let mut head = vec![ControlRecord::snapshot_header(self.last_timestamp)];
        head.extend(self.quorum_records.iter().cloned());
        let content = Content {
            id,
            head,
            image,
            now,
        };
        snapshot_file::write(&self.folder, &content).await?;
        self.snapshots.push(SnapshotFile { id, known: None });
        if self.position > 0 {
            self.roll().await?;
        }
        Ok(())
    }

    /// Removes snapshots and segments that the retention's settings have no room or time for.
    pub async fn clean(&mut self, now: TimestampMs) -> Result<(), MetadataLogError> {
        let log_start = self.log_start();
        let stale = |file: &SnapshotFile| file.id.end_offset < log_start;
        let mut last_stale = self.snapshots.iter().rposition(stale);
        if self.snapshots.len() > 1 {
            self.learn().await?;
            let snapshots = self.snapshots.iter().filter_map(|file| file.known);
            let snapshots: Vec<KeptSnapshot> = snapshots.collect();
            let closed = self.closed.iter();
            let mut segments: Vec<_> = closed
                .map(|(base, bytes)| (*base, bytes.unwrap_or_default()))
                .collect();
            segments.push((self.segment, self.position));
            if let Some(start) = retention::new_start(&snapshots, &segments, &self.settings, now) {
                self.remove_segments_before(start).await?;
                last_stale = self.snapshots.iter().rposition(|file| file.id < start);
            }
        }
        if let Some(last) = last_stale {
            for _ in 0..=last {
                let Some(file) = self.snapshots.first() else {
                    break;
                };
                remove_if_there(&self.folder.join(file.id.file_name())).await?;
                self.snapshots.remove(0);
            }
            self.sync_folder().await?;
        }
        Ok(())
    }

    async fn remove_segments_before(&mut self, start: SnapshotId) -> Result<(), MetadataLogError> {
        loop {
            let next = self.closed.get(1).map_or(self.segment, |(base, _)| *base);
            let Some((base, _)) = self.closed.first().copied() else {
                return Ok(());
            };
            if next > start.end_offset {
                return Ok(());
            }
            remove_if_there(&self.folder.join(segment_name(base))).await?;
            for name in sibling_names(base) {
                remove_if_there(&self.folder.join(name)).await?;
            }
            self.closed.remove(0);
            self.sync_folder().await?;
        }
    }

    /// Sizes and times that retention goes by, where they are not known yet.
    async fn learn(&mut self) -> Result<(), MetadataLogError> {
        for (base, bytes) in &mut self.closed {
            if bytes.is_none() {
                let path = self.folder.join(segment_name(*base));
                let found = directory::metadata(&path).await;
                *bytes = Some(found.map_err(MetadataLogError::io("measure", &path))?.len);
            }
        }
        for file in &mut self.snapshots {
            if file.known.is_none() {
                let (bytes, timestamp) = snapshot_file::describe(&self.folder, file.id).await?;
                file.known = Some(KeptSnapshot {
                    id: file.id,
                    bytes,
                    timestamp,
                });
            }
        }
        Ok(())
    }

    async fn sync_folder(&self) -> Result<(), MetadataLogError> {
        directory::sync(&self.folder)
            .await
            .map_err(MetadataLogError::io("sync", &self.folder))
    }
}
