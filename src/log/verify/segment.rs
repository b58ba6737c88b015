//! One segment: every batch, and the indexes against them.

use std::path::{Path, PathBuf};

use super::indexes::IndexChecks;
use super::order::Order;
use super::report::{Problem, Report};
use super::view::SegmentView;
use super::walk::{Step, Walk};
use crate::base::ids::Offset;
use crate::io;
use crate::log::format::file_names::LogFileKind;
use crate::log::format::index_sums::{FileSum, INDEX_SUMS_BYTES, IndexSums};
use crate::log::segment::segment_path;

/// Largest index that is read (`segment.index.bytes` is an i32).
const INDEX_BYTES_MAX: usize = i32::MAX as usize;
const INDEX_KINDS: [LogFileKind; 3] = [
    LogFileKind::OffsetIndex,
    LogFileKind::TimeIndex,
    LogFileKind::TransactionIndex,
];

/// How the bytes behind the last whole batch are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// They were whole once.
    Damage,
    /// Nobody was told that they are: the next start cuts them.
    Tear,
    /// A torn append, unless something whole follows: that would not have been written before it.
    TearAtEndOnly,
}

/// Where a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// At the segment's end, perhaps over damage.
    Whole,
    /// At a tear: nothing behind it counts.
    Torn,
}

/// What is known of a segment before it is read.
pub(super) struct SegmentCheck<'v, 'a> {
    pub(super) folder: &'v Path,
    pub(super) base: Offset,
    pub(super) view: &'v SegmentView<'a>,
    /// Whether its indexes are those of its bytes; else the next start makes them.
    pub(super) has_indexes: bool,
    /// Whether they must be there.
    pub(super) needs_indexes: bool,
}

impl SegmentCheck<'_, '_> {
    /// Reads it from its first byte to its last. `judge` tells what bytes are that are no batch, by
    /// their position and the offset that should be there.
    pub(super) async fn run(
        &self,
        order: &mut Order,
        report: &mut Report,
        judge: &dyn Fn(u64, Offset) -> Judgement,
    ) -> Ended {
        let paths = INDEX_KINDS.map(|kind| segment_path(self.folder, self.base, kind));
        let mut indexes = IndexChecks::default();
        let places = match self.has_indexes {
            true => self.read_indexes(&paths, &mut indexes, report).await,
            false => Vec::new(),
        };
        report.segments += 1;
        let mut walk = Walk::new(self.view);
        let mut is_whole = true;
        let ended = loop {
            let what = match walk.next().await {
                Ok(Step::End) => break Ended::Whole,
                Ok(Step::Batch(batch)) => {
                    report.batches += 1;
                    report.records += batch.records;
                    report.bytes += batch.header.total_bytes() as u64;
                    indexes.batch(&batch.header, batch.position);
                    order.batch(&batch.header, batch.position, &self.view.path, report);
                    continue;
                }
                Ok(Step::Invalid(what)) => what,
                Err(error) => format!("it cannot be read: {error}"),
            };
            is_whole = false;
            let next = order.next_offset(self.base);
            let judged = judge(walk.position, next);
            let found = walk.find_next(places.iter().copied()).await.ok().flatten();
            let bad = walk.position;
            let is_tear = match judged {
                Judgement::Damage => false,
                Judgement::Tear => true,
                Judgement::TearAtEndOnly => found.is_none(),
            };
            if is_tear {
                let left = self.view.end - bad;
                let path = self.view.path.display();
                report.notes.push(format!(
                    "{path} at byte {bad}, offset {next}: {what}. A torn append, which nobody was \
                     told of: the next start cuts {left} bytes"
                ));
                break Ended::Torn;
            }
            let until = found.unwrap_or(self.view.end);
            let what = format!("offset {next}: {what} ({} bytes unread)", until - bad);
            report.add(Problem::at(&self.view.path, bad, what));
            order.forget();
            walk.position = until;
        };
        let [offsets, times, transactions] = &paths;
        report.notes.extend(indexes.note(offsets));
        let found = indexes.end(is_whole, [offsets, times, transactions]);
        found.into_iter().for_each(|problem| report.add(problem));
        ended
    }

    /// Reads the files of the indexes; answers the positions that the offset index names.
    async fn read_indexes(
        &self,
        paths: &[PathBuf; 3],
        indexes: &mut IndexChecks,
        report: &mut Report,
    ) -> Vec<u64> {
        let mut files = [None, None, None];
        for ((path, file), kind) in paths.iter().zip(&mut files).zip(INDEX_KINDS) {
            match io::directory::read_file(path, INDEX_BYTES_MAX).await {
                Ok(bytes) => *file = Some(bytes),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    let is_needed = self.needs_indexes && self.view.end > 0;
                    if is_needed && kind != LogFileKind::TransactionIndex {
                        let what = "it is missing; the broker makes it anew when it needs it";
                        report.add(Problem::of(path, what));
                    }
                }
                Err(error) => {
                    let what = format!("it cannot be read: {error}");
                    report.add(Problem::of(path, what));
                }
            }
        }
        let [offsets, times, transactions] = &files;
        let files = [offsets, times, transactions].map(|file| file.as_deref());
        let is_noted = self.check_sums(paths, files, report).await;
        indexes.decode(self.base, files, is_noted)
    }

    /// Holds the indexes against the checksums that Coreline notes beside them; Apache Kafka has
    /// none, and those of a segment that it has carried on are outdated. Answers whether there are
    /// any that count.
    async fn check_sums(
        &self,
        paths: &[PathBuf; 3],
        files: [Option<&[u8]>; 3],
        report: &mut Report,
    ) -> bool {
        let path = segment_path(self.folder, self.base, LogFileKind::IndexSums);
        let noted = match io::directory::read_file(&path, INDEX_SUMS_BYTES).await {
            Ok(bytes) => IndexSums::decode(&bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return false,
            Err(error) => {
                report.add(Problem::of(&path, format!("it cannot be read: {error}")));
                return false;
            }
        };
        let noted = match noted {
            Ok(noted) => noted,
            Err(error) => {
                report.add(Problem::format(&path, &error));
                return false;
            }
        };
        let ([offset_path, time_path, _], [offsets, times, _]) = (paths, files);
        let both = [(noted.offsets, offsets), (noted.times, times)];
        let goes_on = |(noted, bytes): &(FileSum, Option<&[u8]>)| {
            bytes.is_some_and(|bytes| noted.is_continued_by(bytes))
        };
        if both.iter().any(goes_on) {
            return false;
        }
        for (path, noted, bytes) in [
            (offset_path, noted.offsets, offsets),
            (time_path, noted.times, times),
        ] {
            if bytes.is_some_and(|bytes| FileSum::of(bytes) != noted) {
                let what = "it is not what was written: its checksum stands beside it";
                report.add(Problem::of(path, what));
            }
        }
        true
    }
}
