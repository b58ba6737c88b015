//! Reading the log when a node starts: the newest snapshot that is whole, then the segments after
//! it.
//!
//! What ends a log is either a torn append, which was never acknowledged and is cut, or damage,
//! which is named and refused. An append is durable before the next is written; so what is torn is
//! one batch at most, nothing whole stands behind it, and it lies past the synced point.
//!
//! A damaged snapshot is named. An older one, or the log's beginning, takes its place when the log
//! from there on holds all that the damaged one held; else the start is refused.

use std::path::Path;

use bytes::Bytes;

use super::batch;
use super::create::{self, EPOCH_CHECKPOINT_FILE};
use super::error::MetadataLogError;
use super::names::{SnapshotId, parse_segment_name, segment_name};
use super::reader::{BatchReader, Next};
use super::replay::Replay;
use super::snapshot_file;
use super::synced_point::{SYNCED_POINT_BYTES, SYNCED_POINT_FILE, SyncedPoint};
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::cluster::image::Image;
use crate::cluster::records::MetadataRecord;
use crate::io::directory;
use crate::wire::record_batch::BatchHeader;

/// Largest checkpoint of epochs that is read, in bytes.
const EPOCH_CHECKPOINT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Where the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Base offset of the last segment.
    pub segment: Offset,
    /// Bytes of it that hold whole batches; what lies past them is to be cut.
    pub position: u64,
    /// Bytes of a torn append past that.
    pub torn_bytes: u64,
    /// When its first batch was appended.
    pub began: Option<TimestampMs>,
}

/// What a folder holds.
#[derive(Debug)]
pub struct Loaded {
    /// All that was read.
    pub replay: Replay,
    /// What a new cluster is to begin with, when the log holds nothing yet.
    pub bootstrap: Vec<MetadataRecord>,
    /// Where the log ends; `None` when it has no segment.
    pub tail: Option<Tail>,
    /// Base offsets of all segments, in order.
    pub segments: Vec<Offset>,
    /// The snapshots, in order.
    pub snapshots: Vec<SnapshotId>,
    /// Snapshots that are damaged, and that nothing is missed without.
    pub damaged: Vec<SnapshotId>,
}

/// Reads the folder. `empty` is the image before the first record.
pub async fn load(folder: &Path, empty: &Image) -> Result<Loaded, MetadataLogError> {
    let names = directory::list(folder)
        .await
        .map_err(MetadataLogError::io("list", folder))?;
    let names = || names.iter().map(|entry| entry.name.as_str());
    let mut snapshots: Vec<SnapshotId> = names().filter_map(SnapshotId::parse).collect();
    snapshots.sort_unstable();
    let mut segments: Vec<Offset> = names().filter_map(parse_segment_name).collect();
    segments.sort_unstable();
    let Beginning {
        mut replay,
        bootstrap,
        mut damaged,
    } = begin(folder, empty, &mut snapshots).await?;
    if replay.next_offset > Offset(0) {
        let starts = read_epoch_starts(folder).await?;
        let is_told = |(_, start): &(_, Offset)| *start < replay.next_offset;
        replay.epoch_starts = starts.into_iter().filter(is_told).collect();
    }
    let tail = match read_segments(folder, &segments, &mut replay).await {
        // The older snapshot is not followed by all of the log: what is missing is the damaged one.
        Err(MetadataLogError::Gap { .. }) if !damaged.is_empty() => {
            return Err(damaged.swap_remove(0).1);
        }
        read => read?,
    };
    if damaged
        .first()
        .is_some_and(|(id, _)| replay.next_offset < id.end_offset)
    {
        return Err(damaged.swap_remove(0).1);
    }
    Ok(Loaded {
        replay,
        bootstrap,
        tail,
        segments,
        snapshots,
        damaged: damaged.into_iter().map(|(id, _)| id).collect(),
    })
}

/// Where the replay of the log begins.
struct Beginning {
    replay: Replay,
    bootstrap: Vec<MetadataRecord>,
    /// From the newest on.
    damaged: Vec<(SnapshotId, MetadataLogError)>,
}

/// Reads the newest snapshot that is whole; those that are not leave `snapshots`.
async fn begin(
    folder: &Path,
    empty: &Image,
    snapshots: &mut Vec<SnapshotId>,
) -> Result<Beginning, MetadataLogError> {
    let mut damaged = Vec::new();
    while let Some(id) = snapshots.last().copied() {
        let mut replay = Replay::new(empty.clone());
        match snapshot_file::read(folder, id, &mut replay).await {
            Ok(bootstrap) => {
                return Ok(Beginning {
                    replay,
                    bootstrap,
                    damaged,
                });
            }
            Err(fault @ MetadataLogError::Damaged { .. }) if id != SnapshotId::BOOTSTRAP => {
                tracing::error!("{fault}");
                damaged.push((id, fault));
                snapshots.pop();
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(Beginning {
        replay: Replay::new(empty.clone()),
        bootstrap: Vec::new(),
        damaged,
    })
}

/// Where epochs began before the snapshot, as an earlier start noted it; nothing when that cannot
/// be read, for only Kafka's tools look at it.
async fn read_epoch_starts(
    folder: &Path,
) -> Result<Vec<(crate::base::ids::LeaderEpoch, Offset)>, MetadataLogError> {
    let path = folder.join(EPOCH_CHECKPOINT_FILE);
    match directory::read_file(&path, EPOCH_CHECKPOINT_BYTES_MAX).await {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            Ok(create::parse_epoch_checkpoint(&text).unwrap_or_default())
        }
        Err(error) => match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidData => Ok(Vec::new()),
            _ => Err(MetadataLogError::io("read", &path)(error)),
        },
    }
}

/// Reads the segments that hold anything past what `replay` has.
async fn read_segments(
    folder: &Path,
    segments: &[Offset],
    replay: &mut Replay,
) -> Result<Option<Tail>, MetadataLogError> {
    let synced = read_synced_point(folder).await?;
    check_synced_segment(folder, segments, synced)?;
    let begin = replay.next_offset;
    let next_bases = segments.iter().skip(1).map(|base| Some(*base));
    let mut tail = None;
    let mut log_end = Offset(0);
    for (base, next) in segments.iter().zip(next_bases.chain([None])) {
        if next.is_some_and(|next| next <= begin) {
            continue;
        }
        let (end, read) = load_segment(folder, *base, (next.is_none(), synced), replay).await?;
        (tail, log_end) = (Some(read), end);
    }
    if log_end < begin {
        return Err(MetadataLogError::EndsEarly {
            folder: folder.to_owned(),
            end: log_end,
            snapshot_end: begin,
        });
    }
    Ok(tail)
}

pub(super) async fn read_synced_point(
    folder: &Path,
) -> Result<Option<SyncedPoint>, MetadataLogError> {
    let path = folder.join(SYNCED_POINT_FILE);
    match directory::read_file(&path, SYNCED_POINT_BYTES).await {
        Ok(bytes) => Ok(SyncedPoint::decode(&bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(MetadataLogError::io("read", &path)(error)),
    }
}

/// The segment of the synced point must be there, unless the log begins behind it: Kafka may have
/// carried the log on and dropped it since.
fn check_synced_segment(
    folder: &Path,
    segments: &[Offset],
    synced: Option<SyncedPoint>,
) -> Result<(), MetadataLogError> {
    let Some(point) = synced else { return Ok(()) };
    let is_dropped = segments.first().is_some_and(|first| point.segment < *first);
    if is_dropped || segments.contains(&point.segment) {
        return Ok(());
    }
    Err(MetadataLogError::Damaged {
        path: folder.join(segment_name(point.segment)),
        position: 0,
        reason: format!("it is missing, {} bytes of it were durable", point.position),
    })
}

/// Reads one segment from its first batch to its end; answers the offset after its last record
/// too.
async fn load_segment(
    folder: &Path,
    base: Offset,
    (is_last, synced): (bool, Option<SyncedPoint>),
    replay: &mut Replay,
) -> Result<(Offset, Tail), MetadataLogError> {
    let mut reader = BatchReader::open(folder.join(segment_name(base))).await?;
    if base > replay.next_offset {
        return Err(MetadataLogError::Gap {
            path: reader.path,
            expected: replay.next_offset,
            found: base,
        });
    }
    let durable_to = match synced {
        Some(point) if is_last && point.segment == base => point.position,
        Some(point) if is_last && point.segment > base => u64::MAX,
        _ if !is_last => u64::MAX,
        _ => 0,
    };
    let mut covered_to = base;
    let mut tail = Tail {
        segment: base,
        position: 0,
        torn_bytes: 0,
        began: None,
    };
    let reason = loop {
        match reader.next().await? {
            // Whether a whole segment that others follow is short shows at the next one.
            Next::End if is_last && reader.position < durable_to => {
                break Some("the file ends before what was durable".to_owned());
            }
            Next::End => break None,
            Next::Batch(header, bytes) => {
                match follow(&header, &bytes, (&mut covered_to, replay))? {
                    Ok(()) => reader.position += bytes.len() as u64,
                    Err(reason) => break Some(reason),
                }
                tail.began.get_or_insert(header.max_timestamp);
            }
            Next::Bad(reason) => break Some(reason),
        }
    };
    if let Some(reason) = reason {
        let next_offset = replay.next_offset;
        tail.torn_bytes = reader.judge_end(durable_to, next_offset, reason).await?;
    }
    tail.position = reader.position;
    Ok((covered_to, tail))
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
