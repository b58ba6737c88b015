//! The first pass (JOURNAL §7.3): the records of a chain, in order, become one plan per log. Pure:
//! no file is touched, metadata plays no part.

use std::collections::BTreeMap;

use super::chain::{Chain, ChainStep, DamagedCycle, FoundRecord};
use crate::base::ids::Offset;
use crate::log::journal::record::{LogId, RecordHeader, RecordKind};
use crate::log::log_id_file::LogIdFile;

/// Segment and position: where a log ends, or what lies below is durable.
pub(crate) type Place = (i64, u64);

/// Bytes that a record vouches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRange {
    pub(crate) record: FoundRecord,
    /// Exclusive; less than the record's own where a TRUNCATE cut it.
    pub(crate) end: u64,
}

impl PlannedRange {
    /// Where it begins.
    pub(crate) fn start(&self) -> u64 {
        self.record.header.position
    }

    /// Whether the segment holds the bytes and the record only vouches for them.
    pub(crate) fn is_extent(&self) -> bool {
        self.record.header.kind == RecordKind::Extent
    }

    /// Whether a TRUNCATE cut it.
    pub(crate) fn is_cut(&self) -> bool {
        self.end < self.start() + u64::from(self.record.header.length)
    }
}

/// What a log must become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogPlan {
    /// By segment, in the order of the records.
    pub(crate) ranges: BTreeMap<i64, Vec<PlannedRange>>,
    /// All below is durable in segments.
    pub(crate) watermark: Place,
    /// What the records vouch for ends here.
    pub(crate) end: Place,
    /// The largest durable end that a record names.
    pub(crate) durable_end: Offset,
    pub(crate) log_start: Offset,
    pub(crate) recovery_point: Offset,
    pub(crate) is_deleted: bool,
    /// The log was emptied under this id: it starts anew there, without files.
    pub(crate) reset_to: Option<Offset>,
    /// A damaged cycle may have held more of the log from here on: the earliest such place.
    pub(crate) suspect: Option<Place>,
    /// Why, where it is not a damaged cycle.
    pub(crate) suspect_cause: Option<String>,
}

impl LogPlan {
    /// Where the log stood when it got its id.
    pub(crate) fn begin(id: &LogIdFile) -> Self {
        let place = (id.segment_base.0, id.position);
        Self {
            watermark: place,
            end: place,
            durable_end: id.log_end,
            log_start: id.log_start,
            recovery_point: id.recovery_point,
            ..Self::default()
        }
    }

    fn apply(&mut self, record: &FoundRecord) {
        let header = &record.header;
        let place = (header.segment_base.0, header.position);
        let record_end = (place.0, place.1 + u64::from(header.length));
        match header.kind {
            // A note of the durable end: no bytes.
            RecordKind::Data if header.length == 0 => {}
            RecordKind::Data | RecordKind::Extent => {
                self.clear_suspicion(record_end);
                self.end = self.end.max(record_end);
                if record_end > self.watermark {
                    let ranges = self.ranges.entry(place.0).or_default();
                    ranges.push(PlannedRange {
                        record: *record,
                        end: record_end.1,
                    });
                }
            }
            // A loss at the end of the segment before would not show: suspicion stays.
            RecordKind::Roll => self.end = self.end.max(place),
            RecordKind::Truncate => {
                self.cut(place);
                self.durable_end = self.durable_end.min(header.end_after);
                // The segment's indexes and the snapshots past its beginning went with the cut.
                self.recovery_point = self.recovery_point.min(header.segment_base);
                self.log_start = self.log_start.min(header.end_after);
                return;
            }
            RecordKind::LogStart => self.log_start = self.log_start.max(header.end_after),
            RecordKind::Reset => {
                *self = Self {
                    watermark: place,
                    end: place,
                    durable_end: header.end_after,
                    log_start: header.end_after,
                    recovery_point: header.end_after,
                    reset_to: Some(header.end_after),
                    ..Self::default()
                };
                return;
            }
            RecordKind::Delete => self.is_deleted = true,
            RecordKind::Watermark => self.raise_watermark(place, record),
        }
        self.durable_end = self.durable_end.max(header.durable_end);
    }

    /// Bytes past the suspect place are vouched for: whatever is missing before them shows as a
    /// hole.
    fn clear_suspicion(&mut self, record_end: Place) {
        let is_same = |suspect: Place| suspect.0 == record_end.0 && suspect < record_end;
        self.suspect = self.suspect.filter(|suspect| !is_same(*suspect));
    }

    fn raise_watermark(&mut self, place: Place, record: &FoundRecord) {
        if let Some((log_start, recovery_point)) = record.watermark {
            self.log_start = self.log_start.max(log_start);
            self.recovery_point = self.recovery_point.max(recovery_point);
        }
        if place < self.watermark {
            return;
        }
        self.watermark = place;
        self.end = self.end.max(place);
        self.ranges = self.ranges.split_off(&place.0);
        if let Some(ranges) = self.ranges.get_mut(&place.0) {
            ranges.retain(|range| range.end > place.1);
        }
        if self.suspect.is_some_and(|suspect| suspect <= place) {
            self.suspect = None;
        }
    }

    /// Takes back everything at or past `place`.
    pub(crate) fn cut(&mut self, place: Place) {
        self.ranges.split_off(&(place.0 + 1));
        if let Some(ranges) = self.ranges.get_mut(&place.0) {
            ranges.retain(|range| range.start() < place.1);
            ranges
                .iter_mut()
                .for_each(|range| range.end = range.end.min(place.1));
        }
        self.end = place;
        self.watermark = self.watermark.min(place);
        self.suspect = self.suspect.filter(|suspect| *suspect < place);
    }

    pub(super) fn suspect_from(&mut self, place: Place) {
        let place = place.max(self.watermark);
        self.suspect = Some(self.suspect.map_or(place, |known| known.min(place)));
    }

    /// The first place between watermark and end that no range covers.
    pub(crate) fn first_hole(&self) -> Option<Place> {
        for (base, ranges) in &self.ranges {
            let start = if *base == self.watermark.0 {
                self.watermark.1
            } else {
                0
            };
            let mut sorted: Vec<(u64, u64)> = ranges
                .iter()
                .map(|range| (range.start(), range.end))
                .collect();
            sorted.sort_unstable();
            let mut covered = start;
            for (from, to) in sorted {
                if from > covered {
                    return Some((*base, covered));
                }
                covered = covered.max(to);
            }
        }
        None
    }

    /// Where the bytes of a segment end.
    pub(crate) fn end_in(&self, base: i64) -> u64 {
        if base == self.end.0 {
            return self.end.1;
        }
        let ranges = self.ranges.get(&base);
        ranges
            .into_iter()
            .flatten()
            .map(|range| range.end)
            .max()
            .unwrap_or_default()
    }
}

/// What all chains say.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) plans: BTreeMap<LogId, LogPlan>,
    /// Ids that records name and no directory carries, without a DELETE or RESET.
    pub(crate) strangers: Vec<LogId>,
    /// Damaged cycles, in words.
    pub(crate) damaged: usize,
}

/// Applies one journal's chain to the plans of the logs whose ids are known.
pub(crate) fn replay(chain: &Chain, ids: &BTreeMap<LogId, LogIdFile>, replay: &mut Replay) {
    let mut journal_logs: Vec<LogId> = chain.named_logs().collect();
    journal_logs.sort_unstable();
    journal_logs.dedup();
    let mut strangers: BTreeMap<LogId, bool> = BTreeMap::new();
    for step in &chain.steps {
        match step {
            ChainStep::Cycle(records) => {
                for record in records {
                    let log_id = record.header.log_id;
                    match ids.get(&log_id) {
                        Some(id) => {
                            let plan = replay.plans.entry(log_id);
                            plan.or_insert_with(|| LogPlan::begin(id)).apply(record);
                        }
                        None => note_stranger(&mut strangers, &record.header),
                    }
                }
            }
            ChainStep::Damage(cycle) => {
                replay.damaged += 1;
                suspect(cycle, &journal_logs, ids, replay);
            }
        }
    }
    let unexplained = strangers
        .into_iter()
        .filter(|(_, is_explained)| !is_explained);
    replay
        .strangers
        .extend(unexplained.map(|(log_id, _)| log_id));
}

fn note_stranger(strangers: &mut BTreeMap<LogId, bool>, header: &RecordHeader) {
    let explains = matches!(header.kind, RecordKind::Delete | RecordKind::Reset);
    *strangers.entry(header.log_id).or_default() |= explains;
}

fn suspect(
    cycle: &DamagedCycle,
    journal_logs: &[LogId],
    ids: &BTreeMap<LogId, LogIdFile>,
    replay: &mut Replay,
) {
    for header in &cycle.readable {
        if let Some(id) = ids.get(&header.log_id) {
            let plan = replay
                .plans
                .entry(header.log_id)
                .or_insert_with(|| LogPlan::begin(id));
            plan.durable_end = plan.durable_end.max(header.durable_end);
            // A note or a WATERMARK that is lost takes no bytes with it.
            if header.length > 0 && header.kind != RecordKind::Watermark {
                plan.suspect_from((header.segment_base.0, header.position));
            }
        }
    }
    if cycle.concerns_all {
        for log_id in journal_logs {
            if let Some(id) = ids.get(log_id) {
                let plan = replay
                    .plans
                    .entry(*log_id)
                    .or_insert_with(|| LogPlan::begin(id));
                plan.suspect_from(plan.end);
            }
        }
    }
}

#[cfg(test)]
#[path = "replay_test.rs"]
mod replay_test;
