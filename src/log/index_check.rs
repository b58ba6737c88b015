//! Indexes of closed segments: checked before they are used, made again where they are missing or
//! wrong.
//!
//! Their checksums stand in a file of ours beside them ([`super::format::index_sums`]), so that one
//! read of the two files tells whether they are what was written. Only what Apache Kafka or an
//! earlier version wrote has none: such indexes are used as Kafka uses them, once their ends agree
//! with the segment's, until they were compared with the whole segment, which happens once, in the
//! background. Every segment is looked at soon after its log was opened, one at a time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::time::Duration;

use super::context::ShardContext;
use super::error::LogError;
use super::index_walk::IndexWalk;
use super::journal::Result;
use super::partition_log::{Log, LogStatus};
use super::scan::{ScanEnd, Scanner};
use super::segment::{IndexFault, LoadedIndex, Segment, SegmentIndex};
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::io::flush_group::NewFile;
use crate::io::{self, TaskClass};

/// Between two segments in the background, at least: a check takes as long a rest as it took.
const REST_MIN: Duration = Duration::from_millis(1);

/// The logs whose indexes are to be looked at in the background.
#[derive(Default)]
pub(crate) struct IndexChecks {
    queue: RefCell<VecDeque<Weak<Log>>>,
    is_under_way: Cell<bool>,
}

/// What a walk over a segment found.
struct Walked {
    /// What the indexes should be.
    made: SegmentIndex,
    /// Those that were there lead right.
    is_right: bool,
    /// Where the walk ended before the segment's end, and why.
    broken: Option<(u64, String)>,
}

impl Log {
    /// Reads a closed segment's indexes at first use; makes them again if need be.
    ///
    /// # Errors
    /// [`LogError`] where that cannot be done: a read may then begin at the segment's start, but
    /// which times it holds is not known.
    pub(crate) async fn load_index(&self, segment: &Rc<Segment>) -> Result<()> {
        if segment.index.borrow().is_none() {
            let _turn = segment.indexing_turn().await;
            if segment.index.borrow().is_none() && segment.is_finished.get() {
                let index = self.checked_index(segment).await;
                if segment.is_gone() {
                    return Ok(());
                }
                let index = index?;
                let mut held = segment.index.borrow_mut();
                held.get_or_insert(index)
                    .charge_to(self.shard.cache.indexes());
                drop(held);
                self.shard.index_loaded(segment);
            }
        }
        self.index_failure(segment)
    }

    fn index_failure(&self, segment: &Rc<Segment>) -> Result<()> {
        match &*segment.indexing.failure.borrow() {
            Some(what) => Err(LogError::Damaged(what.clone())),
            None => Ok(()),
        }
    }

    /// The largest timestamp of a segment, without keeping what is read.
    pub(crate) async fn max_timestamp_of(&self, segment: &Rc<Segment>) -> Result<TimestampMs> {
        let known = || {
            segment
                .index
                .borrow()
                .as_ref()
                .map(|index| index.max_timestamp)
        };
        if let Some(largest) = known().or(segment.largest_timestamp.get()) {
            self.index_failure(segment)?;
            return Ok(largest);
        }
        let _turn = segment.indexing_turn().await;
        let largest = self.checked_index(segment).await?.max_timestamp;
        self.index_failure(segment)?;
        segment.largest_timestamp.set(Some(largest));
        Ok(largest)
    }

    /// The indexes from their files, else from the segment. The caller has the turn.
    async fn checked_index(&self, segment: &Rc<Segment>) -> Result<SegmentIndex> {
        match SegmentIndex::load(&segment.folder.path(), segment.base_offset).await {
            Ok(loaded) => match self.fault_of(segment, &loaded).await? {
                None => {
                    segment.indexing.is_proven.set(loaded.is_vouched);
                    Ok(loaded.index)
                }
                Some(fault) => self.make_again(segment, &fault, Some(&loaded.index)).await,
            },
            Err(fault) => self.make_again(segment, &fault, None).await,
        }
    }

    async fn fault_of(
        &self,
        segment: &Rc<Segment>,
        loaded: &LoadedIndex,
    ) -> Result<Option<IndexFault>> {
        let size = segment.size.get();
        let fault = loaded
            .index
            .fault(&segment.folder.path(), size, self.end_of(segment));
        if fault.is_some() || loaded.is_vouched {
            return Ok(fault);
        }
        // What stands behind the last entry is little.
        let last = loaded.index.offsets.last();
        let start = last.map_or(0, |last| u64::from(last.position));
        let file = self.open_reader(segment).await?;
        let mut scanner = Scanner::headers(&file, start, size);
        let mut largest = TimestampMs::NONE;
        loop {
            match scanner.next().await {
                Ok(batch) => {
                    let is_first = batch.position == start;
                    let is_past = last.is_some_and(|last| batch.header.base_offset > last.offset);
                    if is_first && is_past {
                        return Ok(Some(loaded.index.leads_astray(&segment.folder.path())));
                    }
                    largest = largest.max(batch.header.max_timestamp);
                }
                Err(ScanEnd::Complete) => break,
                Err(ScanEnd::Invalid(_)) => {
                    return Ok(Some(loaded.index.leads_astray(&segment.folder.path())));
                }
                Err(ScanEnd::Failed(error)) => return Err(segment.failed("reading", error)),
            }
        }
        let is_short = largest > loaded.index.max_timestamp;
        Ok(is_short.then(|| loaded.index.ends_early(&segment.folder.path())))
    }

    /// The first offset that is not the segment's.
    fn end_of(&self, segment: &Rc<Segment>) -> Offset {
        let segments = self.segments.borrow();
        let next = segments.range(segment.base_offset.0 + 1..).next();
        next.map_or(Offset(i64::MAX), |(base, _)| Offset(*base))
    }

    /// Makes the indexes from the segment, and their files. Where the segment is damaged, what
    /// lies past the damage is left as it was found, and no file is written.
    async fn make_again(
        &self,
        segment: &Rc<Segment>,
        fault: &IndexFault,
        found: Option<&SegmentIndex>,
    ) -> Result<SegmentIndex> {
        if segment.is_gone() {
            return Ok(SegmentIndex::new(segment.base_offset));
        }
        let mut walked = self.walk(segment, None).await?;
        if segment.is_gone() {
            return Ok(walked.made);
        }
        segment.largest_timestamp.set(None);
        let Some((position, what)) = walked.broken else {
            tracing::warn!("{fault}: made again from its segment");
            segment.indexing.is_proven.set(true);
            let files = walked
                .made
                .files(&segment.folder.path(), segment.base_offset);
            self.put_indexes(files).await;
            return Ok(walked.made);
        };
        if self.damage.borrow().is_none() {
            let path = segment.path();
            let what = format!("{} is damaged at byte {position}: {what}", path.display());
            tracing::error!("{fault} and cannot be made again: {what}");
            *segment.indexing.failure.borrow_mut() = Some(what);
        }
        segment.indexing.is_proven.set(true);
        let mut place = 0;
        while let Some(entry) = found.and_then(|found| found.offsets.entry(place)) {
            if u64::from(entry.position) > position {
                walked.made.offsets.append(entry.offset, entry.position);
            }
            place += 1;
        }
        Ok(walked.made)
    }

    async fn walk(&self, segment: &Rc<Segment>, found: Option<&SegmentIndex>) -> Result<Walked> {
        let interval = self.config().index_interval_bytes;
        let mut walk = IndexWalk::new(segment.base_offset, interval, found);
        let mut broken = None;
        let size = segment.size.get();
        if size > 0 {
            let file = self.open_reader(segment).await?;
            let mut scanner = Scanner::headers(&file, 0, size);
            while !segment.is_gone() {
                match scanner.next().await {
                    Ok(batch) => walk.batch(&batch.header, batch.position),
                    Err(ScanEnd::Complete) => break,
                    Err(ScanEnd::Invalid(what)) => {
                        broken = Some((scanner.position(), what));
                        break;
                    }
                    Err(ScanEnd::Failed(error)) => return Err(segment.failed("reading", error)),
                }
            }
        }
        let (made, is_right) = walk.end();
        Ok(Walked {
            made,
            is_right,
            broken,
        })
    }

    /// Without the files the next use makes the indexes again.
    async fn put_indexes(&self, files: Vec<NewFile>) {
        if self.damage.borrow().is_some() || self.status.get() != LogStatus::Open {
            return;
        }
        if let Err(error) = self.put_in_place(vec![files]).await {
            tracing::warn!("{error}: the indexes stay in memory");
        }
    }

    /// Compares indexes that nothing vouches for with the whole segment, once; puts right ones in
    /// the place of wrong ones.
    pub(crate) async fn prove_index(&self, segment: &Rc<Segment>) -> Result<()> {
        let _turn = segment.indexing_turn().await;
        if segment.indexing.is_proven.get() || !segment.is_finished.get() || segment.is_gone() {
            return Ok(());
        }
        let loaded = match SegmentIndex::load(&segment.folder.path(), segment.base_offset).await {
            Ok(loaded) => loaded,
            Err(fault) => return self.settle_index(segment, &fault, None).await,
        };
        if let Some(fault) = self.fault_of(segment, &loaded).await? {
            return self
                .settle_index(segment, &fault, Some(&loaded.index))
                .await;
        }
        if loaded.is_vouched {
            segment.indexing.is_proven.set(true);
            return Ok(());
        }
        let walked = self.walk(segment, Some(&loaded.index)).await?;
        if walked.is_right && walked.broken.is_none() {
            segment.indexing.is_proven.set(true);
            if !segment.is_gone() {
                let sums = (self.sums_path(segment), loaded.sums.encode());
                self.put_indexes(vec![sums]).await;
            }
            return Ok(());
        }
        let fault = loaded.index.leads_astray(&segment.folder.path());
        self.settle_index(segment, &fault, Some(&loaded.index))
            .await
    }

    /// Makes wrong indexes again, also in memory.
    async fn settle_index(
        &self,
        segment: &Rc<Segment>,
        fault: &IndexFault,
        found: Option<&SegmentIndex>,
    ) -> Result<()> {
        let mut index = self.make_again(segment, fault, found).await?;
        let mut held = segment.index.borrow_mut();
        if held.is_some() && segment.is_finished.get() && !segment.is_gone() {
            index.charge_to(self.shard.cache.indexes());
            *held = Some(index);
        }
        Ok(())
    }

    fn sums_path(&self, segment: &Rc<Segment>) -> PathBuf {
        super::segment::sums_path(&segment.folder.path(), segment.base_offset)
    }

    /// Has the indexes of all closed segments looked at in the background.
    pub(crate) fn check_indexes(self: &Rc<Self>) {
        let is_closed = |segment: &Rc<Segment>| segment.is_finished.get();
        if self.damage.borrow().is_some() || !self.segments.borrow().values().any(is_closed) {
            return;
        }
        let checks = &self.shard.index_checks;
        checks.queue.borrow_mut().push_back(Rc::downgrade(self));
        if !checks.is_under_way.replace(true) {
            let shard = Rc::clone(&self.shard);
            io::spawn(
                TaskClass::Background,
                async move { check_all(&shard).await },
            );
        }
    }

    async fn check_closed_segments(&self) {
        let segments: Vec<Rc<Segment>> = self.segments.borrow().values().cloned().collect();
        for segment in segments {
            if !segment.is_finished.get() || segment.is_gone() {
                continue;
            }
            let begun = io::now();
            let checked = self.prove_index(&segment).await;
            if self.is_closed() || self.shard.is_closing.get() || self.shard.health.check().is_err()
            {
                return;
            }
            if let Err(error) = checked
                && !segment.is_gone()
            {
                tracing::warn!(
                    "checking the indexes of {}: {error}",
                    segment.path().display()
                );
            }
            io::sleep(io::now().since(begun).max(REST_MIN)).await;
        }
    }
}

async fn check_all(shard: &ShardContext) {
    let next = || shard.index_checks.queue.borrow_mut().pop_front();
    while let Some(log) = next() {
        if let Some(log) = log.upgrade() {
            log.check_closed_segments().await;
        }
    }
    shard.index_checks.is_under_way.set(false);
}

#[cfg(all(test, feature = "sim"))]
#[path = "index_check_test.rs"]
mod index_check_test;
