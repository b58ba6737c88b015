//! Rebuilding what was derived past the recovery point (JOURNAL §7.5): indexes, producers, epochs,
//! a snapshot at the end. Headers since the last snapshot are read, never whole segments.

use std::path::Path;
use std::rc::Rc;

use super::replay::Place;
use crate::base::ids::Offset;
use crate::base::limits::KIB;
use crate::io::{self, FlushGroup};
use crate::log::error::LogError;
use crate::log::format::epoch_cache::EpochCache;
use crate::log::format::file_names::LEADER_EPOCH_CHECKPOINT;
use crate::log::health::Health;
use crate::log::open::{FolderListing, derive, list_folder, read_small};
use crate::log::segment::Segment;
use crate::log::snapshots::Snapshot;

/// Index entries of a rebuilt index stand as far apart as Kafka's default.
const INDEX_INTERVAL_BYTES: u64 = 4 * KIB as u64;

/// Rebuilds the segments from `from` on, up to `end`; answers the log's end offset. Bytes are the
/// vouched ones: an invalid batch among them is [`LogError::Damaged`].
pub(super) async fn rebuild(
    folder: &Rc<Path>,
    from: Offset,
    end: Place,
    flushes: &FlushGroup,
) -> Result<Offset, LogError> {
    let health = Rc::new(Health::default());
    let mut listing = list_folder(folder).await?;
    let first = listing
        .segments
        .range(..=from.0)
        .next_back()
        .map_or(i64::MIN, |(base, _)| *base);
    let mut epochs = match read_small(&folder.join(LEADER_EPOCH_CHECKPOINT)).await? {
        Some(bytes) => EpochCache::decode(&bytes).unwrap_or_default(),
        None => EpochCache::default(),
    };
    let mut log_end = Offset(listing.segments.keys().next().copied().unwrap_or_default());
    let segments = std::mem::take(&mut listing.segments);
    for (base, size) in segments.range(first..) {
        if *base > end.0 {
            break;
        }
        let size = if *base == end.0 { end.1 } else { *size };
        let segment = Segment::new(Offset(*base), Rc::clone(folder), &health, size);
        remove_snapshots_past(&mut listing, size, &segment).await?;
        let mut derived = derive(&segment, &listing, size, INDEX_INTERVAL_BYTES).await?;
        log_end = derived.log_end;
        if let Some(fault) = derived.index_fault.take_if(|fault| !fault.is_missing) {
            // A kill between the renames of an index and its checksums leaves this: no damage.
            let path = fault.path.display();
            tracing::info!("{path} was being replaced when its broker ended: made again");
        }
        if *base < end.0 {
            derived.index.seal();
        }
        for (leader_epoch, offset) in derived.epochs {
            epochs.take_in(leader_epoch, offset);
        }
        // The epochs before the snapshot: a start that this one's crash leads to reads no batch
        // below that again, and would let an epoch begin too late.
        let mut first = derived.index.files(folder, segment.base_offset);
        first.push((folder.join(LEADER_EPOCH_CHECKPOINT), epochs.encode()));
        let snapshot = Snapshot::of(log_end, &derived.producers).file(folder);
        let written = flushes.write_files(vec![first, vec![snapshot]]).await;
        let failed = |error| LogError::io(format!("writing in {}", folder.display()), error);
        written.map_err(failed)?;
        listing.snapshots.push(log_end);
    }
    epochs.truncate_from_end(log_end);
    let path = folder.join(LEADER_EPOCH_CHECKPOINT);
    let written = flushes.write_file(&path, &epochs.encode()).await;
    written.map_err(|error| LogError::io(format!("writing {}", path.display()), error))?;
    Ok(log_end)
}

/// Snapshots of what is not in the log any more say nothing. Those past the segment's last batch
/// are unknown before the walk, so all past its base that lie past its end by bytes go; the walk
/// then starts at the latest of the others.
async fn remove_snapshots_past(
    listing: &mut FolderListing,
    size: u64,
    segment: &Segment,
) -> Result<(), LogError> {
    let base = segment.base_offset;
    if listing.snapshots.iter().all(|snapshot| *snapshot <= base) {
        return Ok(());
    }
    let end = last_offset_end(segment, size).await?.max(base);
    for snapshot in listing.snapshots.extract_if(.., |snapshot| *snapshot > end) {
        let path = Snapshot::path(&segment.folder.path(), snapshot);
        let removed = io::directory::remove_file(&path).await;
        removed.map_err(|error| LogError::io(format!("removing {}", path.display()), error))?;
    }
    Ok(())
}

/// The offset after a segment's last batch, by its index and the headers behind it.
async fn last_offset_end(segment: &Segment, size: u64) -> Result<Offset, LogError> {
    use crate::log::scan::Scanner;
    use crate::log::segment::{LoadedIndex, SegmentIndex};
    if size == 0 {
        return Ok(segment.base_offset);
    }
    let index = SegmentIndex::load(&segment.folder.path(), segment.base_offset).await;
    let start = index.map_or(0, |LoadedIndex { mut index, .. }| {
        index.truncate_to(Offset(i64::MAX), size);
        index
            .offsets
            .last()
            .map_or(0, |last| u64::from(last.position))
    });
    let file = segment.reader().await?;
    let mut scanner = Scanner::headers(&file, start, size);
    let mut end = segment.base_offset;
    while let Ok(batch) = scanner.next().await {
        end = batch.header.next_offset();
    }
    Ok(end)
}
