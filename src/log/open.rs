//! From a folder at rest to a log in memory: segments, the active one's indexes, producers, epochs.
//! Reads headers since a snapshot near the end, never whole segments (JOURNAL §7).

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use bytes::Bytes;

use super::cleaner::{CleanedMark, has_leftovers, settle_swaps};
use super::config::{LogConfig, LogIdentity};
use super::error::LogError;
use super::folder_place::FolderPlace;
use super::format::damage_mark::DamageMark;
use super::format::epoch_cache::EpochCache;
use super::format::file_names::{
    CLEANED_MARK, DAMAGE_MARK, FileState, LEADER_EPOCH_CHECKPOINT, LOG_ID, LogFileKind,
    LogFileName, NEXT_SEGMENT,
};
use super::format::producer_snapshot;
use super::format::producer_state::ProducerStates;
use super::health::Health;
use super::journal::Result;
use super::next_segment::remove_next;
use super::partition_log::LogParts;
use super::producers::apply_batch;
use super::retention::remove_marked;
use super::scan::{ScanEnd, Scanner};
use super::segment::{IndexFault, Segment, SegmentIndex, floor_to_block};
use super::snapshots::Snapshot;
use crate::base::ids::Offset;
use crate::base::limits::{BLOCK_BYTES, MIB};
use crate::io::{self, AlignedBuffer};

/// Largest small file of a folder that is read whole.
const SMALL_FILE_BYTES_MAX: usize = 64 * MIB;

/// What a folder holds, by name.
#[derive(Debug, Default)]
pub(crate) struct FolderListing {
    /// Base offsets of the segments, with their sizes in bytes.
    pub(crate) segments: BTreeMap<i64, u64>,
    /// Offsets of the producer snapshots.
    pub(crate) snapshots: Vec<Offset>,
    /// Files beside the segments: the log was in use.
    pub(crate) has_derived: bool,
    pub(crate) names: Vec<String>,
}

impl FolderListing {
    /// Whether the log was created and never used: what checkpoints say of the partition is of a
    /// topic of that name which was deleted before.
    pub(crate) fn is_new(&self) -> bool {
        let is_empty = self
            .segments
            .iter()
            .all(|(base, bytes)| (*base, *bytes) == (0, 0));
        is_empty && !self.has_derived && !self.names.iter().any(|name| name == LOG_ID)
    }
}

/// Lists a log's folder.
pub(crate) async fn list_folder(folder: &Path) -> Result<FolderListing> {
    let failed = |error| LogError::io(format!("listing {}", folder.display()), error);
    let mut listing = FolderListing::default();
    for entry in io::directory::list(folder).await.map_err(failed)? {
        if let Some(name) = LogFileName::parse(&entry.name)
            && name.state == FileState::Live
        {
            match name.kind {
                LogFileKind::Log => {
                    let path = folder.join(&entry.name);
                    let len = io::directory::metadata(&path).await.map_err(failed)?.len;
                    listing.segments.insert(name.offset.0, len);
                }
                LogFileKind::ProducerSnapshot => {
                    listing.snapshots.push(name.offset);
                    listing.has_derived = true;
                }
                _ => listing.has_derived = true,
            }
        }
        listing.names.push(entry.name);
    }
    Ok(listing)
}

/// Lists a folder at rest, once cleanings that a crash broke off are ended.
pub(crate) async fn list_settled(folder: &Path) -> Result<FolderListing> {
    let listing = list_folder(folder).await?;
    if !has_leftovers(&listing.names) {
        return Ok(listing);
    }
    settle_swaps(folder).await?;
    list_folder(folder).await
}

/// The whole of a small file; `None` where there is none.
pub(crate) async fn read_small(path: &Path) -> Result<Option<Vec<u8>>> {
    match io::directory::read_file(path, SMALL_FILE_BYTES_MAX).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LogError::io(format!("reading {}", path.display()), error)),
    }
}

/// What was derived from the batches of a log.
pub(crate) struct Derived {
    pub(crate) producers: ProducerStates,
    pub(crate) index: SegmentIndex,
    pub(crate) log_end: Offset,
    pub(crate) first_timestamp: Option<crate::base::time::TimestampMs>,
    /// What was wrong with the index files, if anything.
    pub(crate) index_fault: Option<IndexFault>,
    /// Batches seen after the snapshot.
    pub(crate) epochs: Vec<(crate::base::ids::LeaderEpoch, Offset)>,
}

/// Bytes before the end whose headers are read though a snapshot covers them: Kafka's snapshots
/// keep one batch a producer, and a producer may repeat any of its last five.
const REPEATABLE_BYTES: u64 = MIB as u64;

/// The state to start from: the latest snapshot far enough below the end, else nothing where the
/// segment is the log's first, else the latest there is.
async fn starting_state(
    segment: &Segment,
    listing: &FolderListing,
    index: Option<&SegmentIndex>,
    end: u64,
) -> (Offset, ProducerStates) {
    let (folder, base_offset) = (&segment.folder.path(), segment.base_offset);
    let mut before = index.cloned().map(|index| index.offsets);
    while let Some(offsets) = &mut before
        && let Some(last) = offsets.last()
        && u64::from(last.position) + REPEATABLE_BYTES > end
    {
        offsets.truncate_to(last.offset);
    }
    let far_enough = before.and_then(|offsets| offsets.last());
    let far_enough = far_enough.map_or(base_offset, |entry| entry.offset);
    if let Some(found) = latest_snapshot(folder, listing, far_enough).await {
        return found;
    }
    let latest = match base_offset {
        Offset(0) => None,
        _ => latest_snapshot(folder, listing, Offset(i64::MAX)).await,
    };
    latest.unwrap_or_default()
}

/// The latest snapshot at or below `offset` that can be read.
async fn latest_snapshot(
    folder: &Path,
    listing: &FolderListing,
    offset: Offset,
) -> Option<(Offset, ProducerStates)> {
    let mut offsets: Vec<Offset> = listing
        .snapshots
        .iter()
        .copied()
        .filter(|snapshot| *snapshot <= offset)
        .collect();
    offsets.sort_unstable();
    for at in offsets.into_iter().rev() {
        let Ok(Some(bytes)) = read_small(&Snapshot::path(folder, at)).await else {
            continue;
        };
        if let Ok(producers) = producer_snapshot::decode(&bytes) {
            return Some((at, producers));
        }
    }
    None
}

/// Reads the headers of the last segment from a snapshot near its end on. `end` bounds the bytes.
pub(crate) async fn derive(
    segment: &Segment,
    listing: &FolderListing,
    end: u64,
    index_interval_bytes: u64,
) -> Result<Derived> {
    let (folder, base_offset) = (&segment.folder.path(), segment.base_offset);
    let (mut index, index_fault) = match SegmentIndex::load(folder, base_offset).await {
        Ok(loaded) => (Some(loaded.index), None),
        Err(fault) => (None, Some(fault)),
    };
    let (at, producers) = starting_state(segment, listing, index.as_ref(), end).await;
    let trusted = at.max(base_offset);
    if let Some(index) = &mut index {
        index.truncate_to(trusted, end);
    }
    let mut derived = Derived {
        producers,
        index: index.unwrap_or_else(|| SegmentIndex::new(base_offset)),
        log_end: base_offset,
        first_timestamp: None,
        index_fault,
        epochs: Vec::new(),
    };
    let start = u64::from(derived.index.offsets.lookup(trusted).position);
    if end == 0 {
        return Ok(derived);
    }
    let file = segment.reader().await?;
    if let Ok(first) = Scanner::headers(&file, 0, end).next().await {
        derived.first_timestamp = Some(first.header.max_timestamp);
    }
    let mut scanner = Scanner::headers(&file, start, end);
    loop {
        match scanner.next().await {
            Ok(batch) => {
                derived
                    .index
                    .append(&batch.header, batch.position, index_interval_bytes);
                derived.log_end = batch.header.next_offset();
                if batch.header.base_offset >= at {
                    let whole = batch.header.attributes.is_control();
                    apply_batch(&mut derived.producers, &batch, whole.then_some(&file)).await;
                }
                derived
                    .epochs
                    .push((batch.header.leader_epoch, batch.header.base_offset));
            }
            Err(ScanEnd::Complete) => return Ok(derived),
            Err(ScanEnd::Invalid(what)) => {
                let (path, position) = (segment.path(), scanner.position());
                return Err(LogError::Damaged(format!(
                    "{} at byte {position}: {what}",
                    path.display()
                )));
            }
            Err(ScanEnd::Failed(error)) => return Err(segment.failed("reading", error)),
        }
    }
}

/// The part of the last block that is in the file, kept in memory until the block is full.
pub(crate) async fn read_head_block(segment: &Segment) -> Result<Bytes> {
    let size = segment.size.get();
    let from = floor_to_block(size);
    if size == from {
        return Ok(Bytes::new());
    }
    let file = segment.reader().await?;
    let (result, mut buffer) = file.read_at(from, AlignedBuffer::zeroed(BLOCK_BYTES)).await;
    let read = result.map_err(|error| segment.failed("reading", error))?;
    let length = (size - from) as usize;
    if read < length {
        return Err(LogError::Damaged(format!(
            "{} is too short",
            segment.path().display()
        )));
    }
    buffer.resize_within_capacity(length);
    Ok(Bytes::copy_from_slice(&buffer))
}

/// Opens a folder at rest. `log_start` is where the log is known to begin, at least.
pub(crate) async fn load(
    health: &Rc<Health>,
    folder: Rc<Path>,
    identity: LogIdentity,
    config: LogConfig,
    log_start: Offset,
) -> Result<LogParts> {
    let listing = list_settled(&folder).await?;
    remove_marked(&folder, &listing.names).await;
    let damage = load_damage(&folder).await?;
    if damage.is_none() && listing.names.iter().any(|name| name == NEXT_SEGMENT) {
        remove_next(&folder).await?;
    }
    if listing.segments.is_empty() && damage.is_none() {
        let what = format!("{} has lost its segment files", folder.display());
        return Err(LogError::Damaged(what));
    }
    let log_start = match listing.is_new() {
        true => Offset(0),
        false => log_start,
    };
    let (place, mut segments) = (FolderPlace::from(Rc::clone(&folder)), BTreeMap::new());
    let last = listing
        .segments
        .last_key_value()
        .map(|(base, size)| (*base, *size));
    let (last_base, last_size) = last.unwrap_or((log_start.0, 0));
    for (base, size) in listing.segments.range(..last_base) {
        let segment = Segment::new_finished(Offset(*base), place.clone(), health, *size);
        segments.insert(*base, segment);
    }
    let active = Segment::new(Offset(last_base), place.clone(), health, last_size);
    let served = match &damage {
        // Nothing behind the damage is looked at.
        Some(mark) if mark.offset.0 <= last_base => 0,
        Some(mark) if mark.file == file_name(&active) => mark.position,
        _ => last_size,
    };
    let mut derived = derive(&active, &listing, served, config.index_interval_bytes).await?;
    let is_indexed = listing.has_derived && active.size.get() > 0 && damage.is_none();
    let index_fault = derived.index_fault.take().filter(|_| is_indexed);
    let epochs = load_epochs(&folder, &derived).await?;
    *active.head_block.borrow_mut() = read_head_block(&active).await?;
    *active.index.borrow_mut() = Some(derived.index);
    active.first_timestamp.set(derived.first_timestamp);
    segments.insert(last_base, Rc::clone(&active));
    let first = segments.keys().next().copied().unwrap_or_default();
    Ok(LogParts {
        has_derived: listing.has_derived,
        cleaned: load_cleaned(&folder, &listing).await?,
        index_fault,
        identity,
        config,
        folder: place,
        active,
        epochs,
        producers: derived.producers,
        log_start: log_start.max(Offset(first)),
        log_end: derived.log_end.max(log_start),
        recovery_point: derived.log_end,
        damage,
        segments,
    })
}

/// The epochs of the file and of the batches behind it.
async fn load_epochs(folder: &Path, derived: &Derived) -> Result<EpochCache> {
    let mut epochs = match read_small(&folder.join(LEADER_EPOCH_CHECKPOINT)).await? {
        Some(bytes) => EpochCache::decode(&bytes).unwrap_or_default(),
        None => EpochCache::default(),
    };
    epochs.truncate_from_end(derived.log_end);
    for (leader_epoch, offset) in &derived.epochs {
        epochs.take_in(*leader_epoch, *offset);
    }
    Ok(epochs)
}

/// What cleanings have left.
async fn load_cleaned(folder: &Path, listing: &FolderListing) -> Result<CleanedMark> {
    let has_mark = listing.names.iter().any(|name| name == CLEANED_MARK);
    match has_mark {
        true => Ok(CleanedMark::read(folder).await?.unwrap_or_default()),
        false => Ok(CleanedMark::default()),
    }
}

fn file_name(segment: &Segment) -> String {
    LogFileName::live(segment.base_offset, LogFileKind::Log).to_string()
}

/// The mark of damage, if the folder has one. An unreadable mark is one too.
async fn load_damage(folder: &Path) -> Result<Option<DamageMark>> {
    let path = folder.join(DAMAGE_MARK);
    let Some(bytes) = read_small(&path).await? else {
        return Ok(None);
    };
    match DamageMark::decode(&bytes) {
        Ok(mark) => Ok(Some(mark)),
        Err(error) => Ok(Some(DamageMark {
            file: DAMAGE_MARK.to_owned(),
            position: 0,
            offset: Offset(0),
            durable_end: Offset(0),
            cause: format!("the mark of damage cannot be read: {error}"),
        })),
    }
}
