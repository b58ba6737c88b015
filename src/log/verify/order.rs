//! What a batch's own checksum does not cover, its offset and its leader epoch, is held against the
//! batches around it and against the log's epochs.

use std::path::Path;

use super::report::{Problem, Report};
use crate::base::ids::{LeaderEpoch, Offset};
use crate::log::format::epoch_cache::EpochCache;
use crate::wire::record_batch::BatchHeader;

/// The order of one log's batches.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The offset that comes next; `None` where that is not known.
    next: Option<Offset>,
    leader_epoch: LeaderEpoch,
    /// What the log's file of epochs says.
    pub(super) epochs: EpochCache,
    /// Below this offset the file knows all epochs; past it the next start adds what is missing.
    epochs_until: Offset,
    /// Compaction has left gaps below.
    gaps_below: Offset,
    /// What lies below is not of the log any more: no epochs are kept of it.
    log_start: Offset,
    /// One contradiction to the file is enough.
    is_epoch_told: bool,
}

impl Order {
    /// Nothing read yet; the fields are as named.
    pub(super) fn new(epochs_until: Offset, gaps_below: Offset, log_start: Offset) -> Self {
        Self {
            epochs_until,
            gaps_below,
            log_start,
            ..Self::default()
        }
    }

    /// The offset that comes next in a segment that begins at `base`.
    pub(super) fn next_offset(&self, base: Offset) -> Offset {
        self.next.map_or(base, |next| next.max(base))
    }

    /// The end of what was read.
    pub(super) fn end(&self) -> Option<Offset> {
        self.next
    }

    /// Something was not read: whatever comes next is right.
    pub(super) fn forget(&mut self) {
        self.next = None;
    }

    fn is_wrong(&self, base: Offset, next: Offset) -> bool {
        base < next || (base > next && base > self.gaps_below)
    }

    /// A segment begins.
    pub(super) fn segment(&mut self, base: Offset, path: &Path, report: &mut Report) {
        if let Some(next) = self.next.filter(|next| self.is_wrong(base, *next)) {
            let what = format!("it begins at offset {base}, where {next} should come next");
            report.add(Problem::at(path, 0, what));
        }
        self.next = Some(base);
    }

    /// A batch comes by.
    pub(super) fn batch(
        &mut self,
        header: &BatchHeader,
        position: u64,
        path: &Path,
        report: &mut Report,
    ) {
        let base = header.base_offset;
        let wrong = self.next.filter(|next| self.is_wrong(base, *next));
        if let Some(next) = wrong {
            let what = format!("a batch begins at offset {base}, where {next} should come next");
            report.add(Problem::at(path, position, what));
        }
        // A wrong offset must not make the ones behind it wrong.
        self.next = wrong.is_none().then(|| header.next_offset());
        if header.next_offset() > self.log_start {
            self.epoch((header.leader_epoch, base), (position, path), report);
        }
    }

    /// An epoch that goes back, or is older than the file knows, is wrong. A newer one than the
    /// file knows at that offset is the file's fault, or a flip that the next batch shows.
    fn epoch(
        &mut self,
        (epoch, base): (LeaderEpoch, Offset),
        (position, path): (u64, &Path),
        report: &mut Report,
    ) {
        if epoch == LeaderEpoch::NONE {
            return;
        }
        let before = std::mem::replace(&mut self.leader_epoch, epoch);
        if epoch < before {
            let what = format!("offset {base} has leader epoch {epoch} after {before}");
            report.add(Problem::at(path, position, what));
            return;
        }
        let known = self.epochs.epoch_for_offset(base);
        let is_told = std::mem::replace(&mut self.is_epoch_told, true);
        match known {
            _ if is_told => {}
            Some(known) if epoch < known => {
                let what = format!(
                    "offset {base} has leader epoch {epoch}, leader-epoch-checkpoint says {known}"
                );
                report.add(Problem::at(path, position, what));
            }
            Some(known) if epoch > known && base < self.epochs_until => {
                let what = format!(
                    "offset {base} has leader epoch {epoch}, leader-epoch-checkpoint says {known}"
                );
                report.add(Problem::at(path, position, what));
            }
            None if self.epochs.entries().is_empty() && base < self.epochs_until => {
                let what = format!("leader-epoch-checkpoint does not know leader epoch {epoch}");
                report.add(Problem::at(path, position, what));
            }
            _ => self.is_epoch_told = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Problems with a batch of offset 0 in epoch 1 that the file of epochs does not know.
    fn problems(log_start: i64) -> usize {
        let mut order = Order::new(Offset(i64::MAX), Offset(-1), Offset(log_start));
        let mut report = Report::new("t-0");
        let batch = crate::log::log_test::batch(100, 1);
        let mut header = BatchHeader::parse(&batch).unwrap();
        (header.base_offset, header.leader_epoch) = (Offset(0), LeaderEpoch(1));
        order.batch(&header, 0, Path::new("0.log"), &mut report);
        report.problems.len()
    }

    #[test]
    fn epochs_are_asked_for_from_the_log_start_on() {
        assert_eq!(problems(-1), 1);
        assert_eq!(problems(0), 1);
        assert_eq!(problems(1), 0, "the batch was deleted");
    }
}
