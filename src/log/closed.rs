//! What a clean shutdown left against what is there at the next start: a segment that is gone or
//! has another size is damage, wherever it stands in its log.

use std::collections::BTreeMap;
use std::path::Path;

use super::config::LogIdentity;
use super::error::LogError;
use super::format::closed_segments::{ClosedKey, ClosedSegments, SegmentSizes};
use super::format::damage_mark::DamageMark;
use super::format::file_names::{CLOSED_SEGMENTS, LogFileKind, LogFileName};
use super::journal::Result;
use super::open::read_small;
use super::recovery::open_locked;
use super::scan::Scanner;
use super::segment::segment_path;
use crate::base::ids::Offset;
use crate::io;

/// Every log's segments, by name; recovery has removed the file where it does not count.
pub(crate) async fn read_closed(directory: &Path) -> Result<BTreeMap<ClosedKey, SegmentSizes>> {
    let bytes = read_small(&directory.join(CLOSED_SEGMENTS)).await?;
    let read = bytes.and_then(|bytes| ClosedSegments::decode(&bytes).ok());
    Ok(read.map(|read| read.logs).unwrap_or_default())
}

/// Writes the file durably.
pub(crate) async fn write_closed(directory: &Path, closed: &ClosedSegments) -> Result<()> {
    let path = directory.join(CLOSED_SEGMENTS);
    let written = io::directory::write_file_durably(&path, &closed.encode()).await;
    written.map_err(|error| LogError::io(format!("writing {}", path.display()), error))
}

/// How a log is named in the file.
pub(crate) fn key_of(identity: &LogIdentity) -> ClosedKey {
    let LogIdentity {
        topic,
        topic_id,
        partition,
    } = identity.clone();
    (topic, topic_id, partition)
}

/// The first segment that is not as it was closed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    base: Offset,
    closed_bytes: u64,
    /// `None`: the file is gone.
    bytes: Option<u64>,
    /// Where the segment's records ended: the next one's beginning.
    end: Option<Offset>,
}

impl Difference {
    /// The first of a log; one that was empty and is gone tells nothing. Pure.
    pub(crate) fn find(closed: &SegmentSizes, found: &BTreeMap<i64, u64>) -> Option<Self> {
        let place = closed.iter().position(|(base, closed_bytes)| {
            let bytes = found.get(&base.0).copied().unwrap_or_default();
            bytes != *closed_bytes
        })?;
        let (base, closed_bytes) = *closed.get(place)?;
        Some(Self {
            base,
            closed_bytes,
            bytes: found.get(&base.0).copied(),
            end: closed.get(place + 1).map(|(next, _)| *next),
        })
    }

    /// The segment's base offset.
    pub(crate) fn base(&self) -> Offset {
        self.base
    }

    /// What an operator reads.
    pub(crate) fn cause(&self) -> String {
        let closed = self.closed_bytes;
        match self.bytes {
            None => format!("the file of {closed} bytes is missing"),
            Some(bytes) => {
                format!("the file has {bytes} bytes and had {closed} when it was closed")
            }
        }
    }

    /// The mark that belongs here: below it all is as it was closed.
    pub(crate) async fn mark(&self, folder: &Path, durable_end: Offset) -> Result<DamageMark> {
        let (position, offset) = match self.bytes {
            None => (0, self.base),
            Some(bytes) if bytes < self.closed_bytes => self.whole_prefix(folder, bytes).await?,
            // All of its records are there; what follows them is nobody's.
            Some(_) => (self.closed_bytes, self.end.unwrap_or(durable_end)),
        };
        Ok(DamageMark {
            file: LogFileName::live(self.base, LogFileKind::Log).to_string(),
            position,
            offset,
            durable_end: durable_end.max(offset),
            cause: self.cause(),
        })
    }

    /// Where the whole batches of the segment end.
    async fn whole_prefix(&self, folder: &Path, bytes: u64) -> Result<(u64, Offset)> {
        let path = segment_path(folder, self.base, LogFileKind::Log);
        let file = open_locked(&path).await?;
        let mut scanner = Scanner::whole(&file, 0, bytes);
        let mut offset = self.base;
        while let Ok(batch) = scanner.next().await {
            offset = batch.header.next_offset();
        }
        Ok((scanner.position(), offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_segment_that_differs_is_found() {
        let closed = vec![(Offset(0), 100), (Offset(10), 50), (Offset(20), 0)];
        let find = |found: &[(i64, u64)]| {
            let found = found.iter().copied().collect();
            Difference::find(&closed, &found)
                .map(|difference| (difference.base.0, difference.bytes))
        };
        assert_eq!(find(&[(0, 100), (10, 50), (20, 0)]), None);
        assert_eq!(find(&[(0, 100), (10, 50)]), None, "it held nothing");
        assert_eq!(find(&[(0, 100), (20, 0)]), Some((10, None)));
        assert_eq!(find(&[(0, 99), (20, 0)]), Some((0, Some(99))));
        assert_eq!(find(&[(0, 100), (10, 50), (20, 1)]), Some((20, Some(1))));
        assert_eq!(find(&[]), Some((0, None)));
        // Records appended since by nobody we know stand in segments of their own.
        assert_eq!(find(&[(0, 100), (10, 50), (20, 0), (30, 7)]), None);
    }
}
