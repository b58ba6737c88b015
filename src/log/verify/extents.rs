//! Bytes that went straight to a segment, held against the journal's records of them: these cover
//! what a batch's own checksum does not.

use super::report::{Problem, Report};
use super::view::SegmentView;
use crate::base::limits::MIB;
use crate::log::journal::cycle::checksum_of;
use crate::log::recovery::{LogPlan, PlannedRange};

/// A larger one is checked batch by batch only.
const EXTENT_BYTES_MAX: usize = 128 * MIB;

/// Checks those that are whole; one that a TRUNCATE cut is no longer what was recorded.
pub(super) async fn check(
    view: &SegmentView<'_>,
    ranges: &[PlannedRange],
    plan: &LogPlan,
    report: &mut Report,
) {
    for range in ranges {
        let header = &range.record.header;
        let length = header.length as usize;
        if !range.is_extent() || range.is_cut() || length > EXTENT_BYTES_MAX {
            continue;
        }
        // What is not durable may be torn; the walk tells that.
        if header.end_after > plan.durable_end {
            continue;
        }
        let bytes = view.read(range.start(), length).await;
        let is_whole = bytes.is_ok_and(|bytes| checksum_of(&bytes, true) == Some(header.checksum));
        if !is_whole {
            let what = "bytes written directly are not what the journal recorded";
            report.add(Problem::at(&view.path, range.start(), what));
        }
    }
}
