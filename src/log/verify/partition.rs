//! One partition's folder: its segments in order, and what stands beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

use super::order::Order;
use super::report::{Problem, Report};
use super::segment::{Ended, Judgement, SegmentCheck};
use super::small_files;
use super::view::SegmentView;
use crate::base::ids::Offset;
use crate::io::{self, File};
use crate::log::cleaner::{Ending, Leftovers, has_leftovers, swap_path};
use crate::log::error::LogError;
use crate::log::format::file_names::{LOG_START_CHECKPOINT, LogFileKind, NEXT_SEGMENT};
use crate::log::open::{FolderListing, list_folder};
use crate::log::recovery::{Access, LogPlan, open_under_lock};
use crate::log::segment::segment_path;

/// How the last owner left a log.
#[derive(Clone, Copy, Debug)]
pub enum Left<'a> {
    /// In order: every byte counts. Where it ended, if that is known.
    Closed(Option<Offset>),
    /// In order, or by a crash of which the log was no part: it ends at this offset or later.
    AtRest(Offset),
    /// Not in order, as Apache Kafka leaves it: below this offset everything was flushed.
    Killed(Offset),
    /// Not in order, and a journal holds what is missing.
    Journalled(&'a Journalled<'a>),
}

/// What the journal says of a log.
#[derive(Debug)]
pub struct Journalled<'a> {
    pub(super) plan: LogPlan,
    /// The files that its records lie in.
    pub(super) ring: &'a [File],
}

/// What is known of a folder before it is read.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// How it was left.
    pub left: Left<'a>,
    /// Compaction may have left gaps below.
    pub gaps_below: Offset,
    /// Where the log starts, as far as that is written down.
    pub log_start: Offset,
    /// Indexes are kept beside the segments.
    pub has_indexes: bool,
}

impl Expected<'_> {
    /// Below this offset everything that is derived from the batches is there.
    fn derived_until(&self) -> Offset {
        match self.left {
            Left::Closed(_) | Left::AtRest(_) => Offset(i64::MAX),
            Left::Killed(recovery_point) => recovery_point,
            Left::Journalled(journalled) => journalled.plan.recovery_point,
        }
    }

    /// Below this offset the file of epochs knows them all: a start after a crash leaves what it
    /// walks again as it was.
    fn epochs_until(&self) -> Offset {
        match self.left {
            Left::Closed(_) => Offset(i64::MAX),
            _ => Offset(0),
        }
    }

    fn plan(&self) -> Option<&LogPlan> {
        match self.left {
            Left::Journalled(journalled) => Some(&journalled.plan),
            _ => None,
        }
    }

    fn judge(&self, (base, position): (i64, u64), offset: Offset) -> Judgement {
        match self.left {
            Left::Closed(_) | Left::AtRest(_) => Judgement::Damage,
            Left::Killed(recovery_point) if offset < recovery_point => Judgement::Damage,
            Left::Killed(_) => Judgement::TearAtEndOnly,
            Left::Journalled(Journalled { plan, .. }) => {
                let is_durable = (base, position) < plan.watermark || offset < plan.durable_end;
                match is_durable {
                    true => Judgement::Damage,
                    false => Judgement::Tear,
                }
            }
        }
    }
}

/// Reads a folder. Nothing in it is changed.
///
/// # Errors
/// Only where the folder itself cannot be listed.
pub async fn check_folder(name: &str, expected: &Expected<'_>) -> Result<Report, LogError> {
    let mut report = Report::new(name);
    let mut listing = list_folder(expected.folder).await?;
    let swapped = settled(expected.folder, &mut listing, &mut report).await?;
    let mut order = Order::new(
        expected.epochs_until(),
        expected.gaps_below,
        expected.log_start,
    );
    order.epochs = small_files::check(expected, &listing, &mut report).await;
    if let Some(plan) = expected.plan() {
        note_losses(expected.folder, plan, &mut report);
        if plan.reset_to.is_some() || plan.is_deleted {
            let what =
                "the journal says that the log was emptied; the next start removes its files";
            report.notes.push(format!("{name}: {what}"));
            return Ok(report);
        }
    }
    let segments = segments_of(expected, &listing, &mut report);
    let bases: Vec<i64> = segments.keys().copied().collect();
    for (place, (base, end)) in segments.iter().enumerate() {
        let next = bases.get(place + 1).map(|next| Offset(*next));
        let at = (Offset(*base), *end, next);
        let is_swapped = swapped.contains(base);
        if check_segment(expected, at, is_swapped, (&mut order, &mut report)).await == Ended::Torn {
            break;
        }
    }
    check_end(expected, &order, &mut report);
    small_files::check_snapshots(expected, &listing, order.end(), &mut report).await;
    Ok(report)
}

/// A cleaning that a crash broke off: the listing becomes what the next start makes of the folder.
/// Answers the segments that have not got their names.
async fn settled(
    folder: &Path,
    listing: &mut FolderListing,
    report: &mut Report,
) -> Result<BTreeSet<i64>, LogError> {
    let mut swapped = BTreeSet::new();
    if !has_leftovers(&listing.names) {
        return Ok(swapped);
    }
    let found = Leftovers::find(folder, &listing.names).await?;
    for (base, ending) in found.whole {
        let path = segment_path(folder, base, LogFileKind::Log);
        let what = match ending {
            Ending::Back(what) => {
                report.add(Problem::of(path, what));
                continue;
            }
            Ending::Forward(end) => {
                let (base, end) = (base.0, end.0);
                listing
                    .segments
                    .retain(|old, _| *old <= base || *old >= end);
                end
            }
        };
        let swap = swap_path(folder, base);
        let failed = |error| LogError::io(format!("looking at {}", swap.display()), error);
        let metadata = io::directory::metadata(&swap).await.map_err(failed)?;
        listing.segments.insert(base.0, metadata.len);
        swapped.insert(base.0);
        report.notes.push(format!(
            "{}: the next start puts it in the place of the segments from {base} up to {what}, as \
             the cleaner was about to",
            swap.display()
        ));
    }
    Ok(swapped)
}

/// What the journal itself has lost of the log.
fn note_losses(folder: &Path, plan: &LogPlan, report: &mut Report) {
    let path = |base| segment_path(folder, Offset(base), LogFileKind::Log);
    if let Some((base, position)) = plan.suspect {
        let what = plan.suspect_cause.clone();
        let what =
            what.unwrap_or_else(|| "a damaged journal cycle held what followed here".to_owned());
        report.add(Problem::at(path(base), position, what));
    }
    if let Some((base, position)) = plan.first_hole() {
        let what = "no record of the journal vouches for these bytes";
        report.add(Problem::at(path(base), position, what));
    }
}

/// The segments with the bytes that count of each.
fn segments_of(
    expected: &Expected<'_>,
    listing: &FolderListing,
    report: &mut Report,
) -> BTreeMap<i64, u64> {
    let mut segments = listing.segments.clone();
    let Some(plan) = expected.plan() else {
        return segments;
    };
    let ends_in = |base: i64| match base == plan.watermark.0 {
        true => plan.end_in(base).max(plan.watermark.1),
        false => plan.end_in(base),
    };
    let unvouched = segments.split_off(&plan.end.0.saturating_add(1));
    for base in unvouched.keys() {
        let path = segment_path(expected.folder, Offset(*base), LogFileKind::Log);
        let what = "no record of the journal names it: the next start removes it";
        report.notes.push(format!("{}: {what}", path.display()));
    }
    for (base, end) in segments.range_mut(plan.watermark.0..) {
        *end = ends_in(*base);
    }
    let named = plan
        .ranges
        .keys()
        .copied()
        .chain([plan.watermark.0, plan.end.0]);
    for base in named.filter(|base| *base <= plan.end.0) {
        segments.entry(base).or_insert_with(|| ends_in(base));
    }
    segments
}

/// The file of a segment, or of one that was rolled to and has not got its name.
async fn open(
    expected: &Expected<'_>,
    base: Offset,
    is_swapped: bool,
) -> Result<(std::path::PathBuf, File), LogError> {
    let path = match is_swapped {
        true => swap_path(expected.folder, base),
        false => segment_path(expected.folder, base, LogFileKind::Log),
    };
    let opened = open_under_lock(&path, Access::Look).await;
    let is_last = expected
        .plan()
        .is_some_and(|plan| plan.end.0 == base.0 && plan.watermark <= (base.0, 0));
    match opened {
        Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound && is_last => {
            let unnamed = expected.folder.join(NEXT_SEGMENT);
            let file = open_under_lock(&unnamed, Access::Look).await?;
            Ok((unnamed, file))
        }
        opened => opened.map(|file| (path, file)),
    }
}

async fn check_segment(
    expected: &Expected<'_>,
    (base, end, next): (Offset, u64, Option<Offset>),
    is_swapped: bool,
    (order, report): (&mut Order, &mut Report),
) -> Ended {
    let (path, file) = match open(expected, base, is_swapped).await {
        Ok(opened) => opened,
        Err(error) => {
            let path = segment_path(expected.folder, base, LogFileKind::Log);
            let is_missing = error.is_missing_file();
            let what = match is_missing {
                true => "the segment is missing".to_owned(),
                false => error.to_string(),
            };
            // An empty one that nobody has written to yet is no loss.
            if !(is_missing && end == 0) {
                report.add(Problem::of(path, what));
                order.forget();
            }
            return Ended::Whole;
        }
    };
    order.segment(base, &path, report);
    let mut view = SegmentView::new((path, file), end);
    if let Left::Journalled(Journalled { plan, ring }) = expected.left
        && let Some(ranges) = plan.ranges.get(&base.0)
    {
        view = view.over(ranges, ring);
        super::extents::check(&view, ranges, plan, report).await;
    }
    // The indexes of one without a name may be under either of its names.
    let until = expected.derived_until();
    let is_below = next.is_some_and(|next| next <= until) || until == Offset(i64::MAX);
    let is_derived = is_below && !is_swapped;
    let check = SegmentCheck {
        folder: expected.folder,
        base,
        view: &view,
        has_indexes: is_derived,
        needs_indexes: is_derived && expected.has_indexes,
    };
    let judge = |position, offset| expected.judge((base.0, position), offset);
    check.run(order, report, &judge).await
}

/// Where the log ends against where it is known to.
fn check_end(expected: &Expected<'_>, order: &Order, report: &mut Report) {
    let Some(end) = order.end() else { return };
    if let Left::Closed(Some(known)) = expected.left
        && expected.log_start > known.max(end)
    {
        let start = expected.log_start;
        let what = format!(
            "the log ends at offset {end}, and begins at {start} by {LOG_START_CHECKPOINT}"
        );
        report.add(Problem::of(expected.folder, what));
    }
    let (least, most) = match expected.left {
        Left::Closed(Some(known)) => (known, known),
        Left::Closed(None) => return,
        Left::AtRest(known) | Left::Killed(known) => (known, Offset(i64::MAX)),
        Left::Journalled(journalled) => (journalled.plan.durable_end, Offset(i64::MAX)),
    };
    // Checkpoints name no topic's id: of a topic that was deleted and made again a crash may leave
    // the old one's.
    if end < least && end == Offset(0) && matches!(expected.left, Left::AtRest(_)) {
        let folder = expected.folder.display();
        report.notes.push(format!(
            "{folder} is empty, though recovery-point-offset-checkpoint names offset {least}: of \
             an earlier topic of that name, or lost"
        ));
    } else if end < least {
        let what = format!("the log ends at offset {end}, and reached to {least}");
        report.add(Problem::of(expected.folder, what));
    } else if end > most {
        let what = format!("the log ends at offset {end}, past {most}, where it was closed");
        report.add(Problem::of(expected.folder, what));
    }
}
