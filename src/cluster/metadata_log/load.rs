//! Reading the log when a node starts: the latest snapshot, then the segments after it.
//!
//! What ends a log is either a torn append, which was never acknowledged and is cut, or damage,
//! which is named and refused. An append is durable before the next is written; so what is torn is
//! one batch at most, nothing whole stands behind it, and it lies past the synced point.

use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};

use super::batch::{self, BATCH_BYTES_MAX, Entry, Scan};
use super::error::MetadataLogError;
use super::names::{SnapshotId, parse_segment_name, segment_name};
use super::replay::Replay;
use super::synced_point::{SYNCED_POINT_BYTES, SYNCED_POINT_FILE, SyncedPoint};
use crate::base::ids::Offset;
use crate::cluster::records::MetadataRecord;
use crate::io::{AlignedBuffer, File, OpenOptions, directory};
use crate::wire::record_batch::{BatchHeader, ControlRecordType};

/// Bytes read at a time.
const READ_BYTES: usize = 1024 * 1024;

/// Largest snapshot that is read, in bytes.
const SNAPSHOT_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Where the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Base offset of the last segment.
    pub segment: Offset,
    /// Bytes of it that hold whole batches; what lies past them is to be cut.
    pub position: u64,
    /// Bytes of a torn append past that.
    pub torn_bytes: u64,
}

/// What a folder holds.
#[derive(Debug)]
pub struct Loaded {
    /// What a new cluster is to begin with, when the log holds nothing yet.
    pub bootstrap: Vec<MetadataRecord>,
    /// Where the log ends; `None` when it has no segment.
    pub tail: Option<Tail>,
}

/// Reads the folder into `replay`.
pub async fn load(folder: &Path, replay: &mut Replay) -> Result<Loaded, MetadataLogError> {
    let names = directory::list(folder)
        .await
        .map_err(MetadataLogError::io("list", folder))?;
    let names = || names.iter().map(|entry| entry.name.as_str());
    let mut bootstrap = Vec::new();
    let mut snapshots: Vec<SnapshotId> = names().filter_map(SnapshotId::parse).collect();
    snapshots.sort_unstable();
    if snapshots.contains(&SnapshotId::BOOTSTRAP) {
        for entry in read_snapshot(folder, SnapshotId::BOOTSTRAP).await? {
            match entry {
                Entry::Data(_, record) => bootstrap.push(record),
                control @ Entry::Control(..) => replay.apply_entry(control)?,
            }
        }
    }
    if let Some(latest) = snapshots.last().copied()
        && latest != SnapshotId::BOOTSTRAP
    {
        for entry in read_snapshot(folder, latest).await? {
            replay.apply_entry(entry)?;
        }
        replay.next_offset = latest.end_offset;
        replay.epoch = latest.epoch;
        replay.image.advance_to(latest.end_offset, latest.epoch);
    }
    let mut segments: Vec<Offset> = names().filter_map(parse_segment_name).collect();
    segments.sort_unstable();
    let synced = read_synced_point(folder).await?;
    let mut tail = None;
    for (place, base) in segments.iter().enumerate() {
        let is_last = place + 1 == segments.len();
        tail = Some(load_segment(folder, *base, (is_last, synced), replay).await?);
    }
    Ok(Loaded { bootstrap, tail })
}

async fn read_synced_point(folder: &Path) -> Result<Option<SyncedPoint>, MetadataLogError> {
    let path = folder.join(SYNCED_POINT_FILE);
    match directory::read_file(&path, SYNCED_POINT_BYTES).await {
        Ok(bytes) => Ok(SyncedPoint::decode(&bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(MetadataLogError::io("read", &path)(error)),
    }
}

/// All entries of a snapshot, which must be whole.
async fn read_snapshot(folder: &Path, id: SnapshotId) -> Result<Vec<Entry>, MetadataLogError> {
    let path = folder.join(id.file_name());
    let bytes = directory::read_file(&path, SNAPSHOT_BYTES_MAX)
        .await
        .map_err(MetadataLogError::io("read", &path))?;
    let mut rest = Bytes::from(bytes);
    let mut all = Vec::new();
    let mut position = 0;
    let mut is_whole = false;
    while !rest.is_empty() {
        let damaged = |reason: String| MetadataLogError::Damaged {
            path: path.clone(),
            position,
            reason,
        };
        let header = match batch::scan(&rest) {
            Scan::Batch(header) => header,
            Scan::More(_) => return Err(damaged("it ends inside a batch".to_owned())),
            Scan::Bad(reason) => return Err(damaged(reason)),
        };
        let bytes = rest.split_to(header.total_bytes());
        for entry in batch::entries(&header, &bytes)?.map_err(damaged)? {
            is_whole |= matches!(
                entry,
                Entry::Control(_, ControlRecordType::SnapshotFooter, _)
            );
            all.push(entry);
        }
        position += bytes.len() as u64;
    }
    if is_whole {
        Ok(all)
    } else {
        Err(MetadataLogError::Damaged {
            path,
            position,
            reason: "it ends without a footer".to_owned(),
        })
    }
}

/// Reads one segment from its first batch to its end.
async fn load_segment(
    folder: &Path,
    base: Offset,
    (is_last, synced): (bool, Option<SyncedPoint>),
    replay: &mut Replay,
) -> Result<Tail, MetadataLogError> {
    let mut reader = SegmentReader::open(folder.join(segment_name(base))).await?;
    if base > replay.next_offset {
        return Err(MetadataLogError::Gap {
            path: reader.path,
            expected: replay.next_offset,
            found: base,
        });
    }
    let mut covered_to = base;
    loop {
        let reason = match reader.next().await? {
            Next::End => break,
            Next::Batch(header, bytes) => {
                match follow(&header, &bytes, (&mut covered_to, replay))? {
                    Ok(()) => {
                        reader.position += bytes.len() as u64;
                        continue;
                    }
                    Err(reason) => reason,
                }
            }
            Next::Bad(reason) => reason,
        };
        let durable_to = match synced {
            _ if !is_last => u64::MAX,
            Some(point) if point.segment == base => point.position,
            Some(point) if point.segment > base => u64::MAX,
            _ => 0,
        };
        let torn_bytes = reader
            .judge_end(durable_to, replay.next_offset, reason)
            .await?;
        return Ok(Tail {
            segment: base,
            position: reader.position,
            torn_bytes,
        });
    }
    Ok(Tail {
        segment: base,
        position: reader.position,
        torn_bytes: 0,
    })
}

/// Applies a batch that must follow on the one before it in its segment. One that a snapshot has
/// told already is passed over.
fn follow(
    header: &BatchHeader,
    bytes: &Bytes,
    (covered_to, replay): (&mut Offset, &mut Replay),
) -> Result<Result<(), String>, MetadataLogError> {
    if header.base_offset != *covered_to {
        return Ok(Err(format!(
            "a batch begins at offset {}, where {covered_to} should come next",
            header.base_offset
        )));
    }
    if header.last_offset_delta < 0 {
        return Ok(Err("a batch ends before it begins".to_owned()));
    }
    *covered_to = header.next_offset();
    if header.next_offset() <= replay.next_offset {
        return Ok(Ok(()));
    }
    if header.leader_epoch < replay.epoch {
        return Ok(Err(format!(
            "epoch {} follows on {}",
            header.leader_epoch, replay.epoch
        )));
    }
    match batch::entries(header, bytes)? {
        Ok(entries) => replay.apply(header, entries).map(Ok),
        Err(reason) => Ok(Err(reason)),
    }
}

enum Next {
    Batch(BatchHeader, Bytes),
    Bad(String),
    End,
}

/// A window that moves over a segment.
struct SegmentReader {
    file: File,
    path: PathBuf,
    len: u64,
    /// Where the window begins; moved by the caller over each batch that it accepts.
    position: u64,
    window_at: u64,
    window: BytesMut,
}

impl SegmentReader {
    async fn open(path: PathBuf) -> Result<Self, MetadataLogError> {
        let file = File::open(&path, OpenOptions::default())
            .await
            .map_err(MetadataLogError::io("open", &path))?;
        let len = file.len().await;
        let len = len.map_err(MetadataLogError::io("measure", &path))?;
        Ok(Self {
            file,
            path,
            len,
            position: 0,
            window_at: 0,
            window: BytesMut::new(),
        })
    }

    /// Reads `bytes` from `at`, fewer at the end of the file.
    async fn read(&self, at: u64, bytes: usize) -> Result<AlignedBuffer, MetadataLogError> {
        let (result, mut buffer) = self.file.read_at(at, AlignedBuffer::zeroed(bytes)).await;
        let read = result.map_err(MetadataLogError::io("read", &self.path))?;
        buffer.resize_within_capacity(read.min(bytes));
        Ok(buffer)
    }

    async fn next(&mut self) -> Result<Next, MetadataLogError> {
        loop {
            let need = match batch::scan(&self.window) {
                Scan::Batch(header) => {
                    let bytes = self.window.split_to(header.total_bytes()).freeze();
                    self.window_at += bytes.len() as u64;
                    return Ok(Next::Batch(header, bytes));
                }
                Scan::Bad(reason) => return Ok(Next::Bad(reason)),
                Scan::More(need) => need,
            };
            let at = self.window_at + self.window.len() as u64;
            let left = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
            let missing = need.saturating_sub(self.window.len());
            if left < missing {
                let is_end = self.window.is_empty() && left == 0;
                let reason = format!("the file ends {} bytes short of a batch", missing - left);
                return Ok(if is_end { Next::End } else { Next::Bad(reason) });
            }
            let buffer = self.read(at, left.min(missing.max(READ_BYTES))).await?;
            if buffer.is_empty() {
                return Ok(Next::Bad(
                    "the file became shorter while it was read".to_owned(),
                ));
            }
            self.window.extend_from_slice(&buffer);
        }
    }

    /// Judges what stands at `position`, which is no batch that could come next: the length of a
    /// torn append, or damage.
    async fn judge_end(
        &self,
        durable_to: u64,
        next_offset: Offset,
        reason: String,
    ) -> Result<u64, MetadataLogError> {
        let left = self.len.saturating_sub(self.position);
        let mut is_damage = self.position < durable_to || left > BATCH_BYTES_MAX as u64;
        if !is_damage {
            let rest = self.read(self.position, left as usize).await?;
            is_damage = batch::holds_a_batch_past(&rest, next_offset.plus(1));
        }
        if is_damage {
            return Err(MetadataLogError::Damaged {
                path: self.path.clone(),
                position: self.position,
                reason,
            });
        }
        Ok(left)
    }
}
