//! Rebuilding what was derived past the recovery point (JOURNAL §7.5): indexes, producers, epochs,
//! a snapshot at the end. Headers since the last snapshot are read, never whole segments.
//!
//! Where little was appended since the files of the last segment were written, they stay as they
//! are: a log that is opened reads the same headers again and derives the same. To make such files
//! anew was what a start after kill -9 spent most of its time with.

use std::path::Path;
use std::rc::Rc;

use super::replay::Place;
use crate::base::ids::Offset;
use crate::base::limits::{KIB, MIB};
use crate::io::{self, FlushGroup};
use crate::log::error::LogError;
use crate::log::format::epoch_cache::EpochCache;
use crate::log::format::file_names::LEADER_EPOCH_CHECKPOINT;
use crate::log::health::Health;
use crate::log::open::{Derived, FolderListing, derive, list_folder, read_small};
use crate::log::segment::Segment;
use crate::log::snapshots::Snapshot;

/// Index entries of a rebuilt index stand as far apart as Kafka's default.
const INDEX_INTERVAL_BYTES: u64 = 4 * KIB as u64;

/// Bytes behind a snapshot that are walked again at each start rather than have files made anew.
const WALKED_AGAIN_BYTES_MAX: u64 = MIB as u64;

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
    let mut has_written = false;
    for (base, size) in segments.range(first..) {
        if *base > end.0 {
            break;
        }
        let size = if *base == end.0 { end.1 } else { *size };
        let segment = Segment::new(Offset(*base), Rc::clone(folder), &health, size);
        let has_removed = remove_snapshots_past(&mut listing, size, &segment).await?;
        let mut derived = derive(&segment, &listing, size, INDEX_INTERVAL_BYTES).await?;
        log_end = derived.log_end;
        if *base < end.0 {
            derived.index.seal();
        }
        for (leader_epoch, offset) in std::mem::take(&mut derived.epochs) {
            epochs.assign(leader_epoch, offset);
        }
        if *base == end.0 && !has_removed && is_walked_again(&derived, size) {
            continue;
        }
        has_written = true;
        let first = derived.index.files(folder, segment.base_offset);
        let snapshot = Snapshot::of(log_end, &derived.producers).file(folder);
        let written = flushes.write_files(vec![first, vec![snapshot]]).await;
        let failed = |error| LogError::io(format!("writing in {}", folder.display()), error);
        written.map_err(failed)?;
        listing.snapshots.push(log_end);
    }
    // Epochs behind the end would stand in the file's way later.
    if !epochs.truncate_from_end(log_end) && !has_written {
        return Ok(log_end);
    }
    let path = folder.join(LEADER_EPOCH_CHECKPOINT);
    let written = flushes.write_file(&path, &epochs.encode()).await;
    written.map_err(|error| LogError::io(format!("writing {}", path.display()), error))?;
    Ok(log_end)
}

/// Whether the last segment's files may stay as they are. Pure.
fn is_walked_again(derived: &Derived, size: u64) -> bool {
    derived.has_files && size.saturating_sub(derived.walked_from) <= WALKED_AGAIN_BYTES_MAX
}

/// Snapshots of what is not in the log any more say nothing. Those past the segment's last batch
/// are unknown before the walk, so all past its base that lie past its end by bytes go; the walk
/// then starts at the latest of the others. True when there was one.
async fn remove_snapshots_past(
    listing: &mut FolderListing,
    size: u64,
    segment: &Segment,
) -> Result<bool, LogError> {
    let base = segment.base_offset;
    if listing.snapshots.iter().all(|snapshot| *snapshot <= base) {
        return Ok(false);
    }
    let end = last_offset_end(segment, size).await?.max(base);
    let mut has_removed = false;
    for snapshot in listing.snapshots.extract_if(.., |snapshot| *snapshot > end) {
        let path = Snapshot::path(&segment.folder, snapshot);
        let removed = io::directory::remove_file(&path).await;
        removed.map_err(|error| LogError::io(format!("removing {}", path.display()), error))?;
        has_removed = true;
    }
    Ok(has_removed)
}

/// The offset after a segment's last batch, by its index and the headers behind it.
async fn last_offset_end(segment: &Segment, size: u64) -> Result<Offset, LogError> {
    use crate::log::scan::Scanner;
    use crate::log::segment::SegmentIndex;
    if size == 0 {
        return Ok(segment.base_offset);
    }
    let index = SegmentIndex::load(&segment.folder, segment.base_offset).await;
    let start = index.map_or(0, |mut index| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::segment::SegmentIndex;

    #[test]
    fn files_stay_up_to_a_limit_and_only_where_they_are_all_there() {
        let derived = |walked_from, has_files| Derived {
            producers: Default::default(),
            index: SegmentIndex::new(Offset(0)),
            log_end: Offset(0),
            first_timestamp: None,
            epochs: Vec::new(),
            walked_from,
            has_files,
        };
        let limit = 1024 * 1024;
        assert!(is_walked_again(&derived(0, true), limit));
        assert!(!is_walked_again(&derived(0, true), limit + 1));
        assert!(is_walked_again(&derived(1, true), limit + 1));
        assert!(!is_walked_again(&derived(0, false), 0));
    }
}
