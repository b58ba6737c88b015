//! The replay map against small chains.

use super::*;
use crate::base::ids::Uuid;

const ID: LogId = [3; 16];

fn id_file() -> LogIdFile {
    LogIdFile {
        incarnation: Uuid::ZERO,
        shard: crate::base::ids::ShardId(0),
        log_id: ID,
        segment_base: Offset(0),
        position: 100,
        log_end: Offset(10),
        log_start: Offset(0),
        recovery_point: Offset(10),
    }
}

fn record(kind: RecordKind, base: i64, position: u64, length: u32) -> FoundRecord {
    let mut header = RecordHeader::new(kind, ID, Offset(base), position);
    header.length = length;
    FoundRecord {
        header,
        file: 0,
        inline_at: 0,
        watermark: None,
    }
}

fn plan_of(steps: Vec<ChainStep>) -> LogPlan {
    let chain = Chain {
        steps,
        last_sequence: 1,
        is_end_lost: false,
        has_tear: false,
    };
    let mut all = Replay::default();
    replay(&chain, &BTreeMap::from([(ID, id_file())]), &mut all);
    all.plans
        .remove(&ID)
        .unwrap_or_else(|| LogPlan::begin(&id_file()))
}

fn cycle(records: &[FoundRecord]) -> ChainStep {
    ChainStep::Cycle(records.to_vec())
}

fn lost(readable: Vec<RecordHeader>) -> ChainStep {
    let concerns_all = readable.is_empty();
    ChainStep::Damage(DamagedCycle {
        place: None,
        sequence: 5,
        readable,
        concerns_all,
    })
}

#[test]
fn ends_are_the_maximum_over_positions() {
    let plan = plan_of(vec![
        cycle(&[
            record(RecordKind::Data, 0, 100, 50),
            record(RecordKind::Data, 0, 150, 50),
        ]),
        // A copied-forward block never shortens the log.
        cycle(&[record(RecordKind::Data, 0, 0, 120)]),
    ]);
    assert_eq!(plan.end, (0, 200));
    assert_eq!(plan.first_hole(), None);
    assert_eq!(plan.end_in(0), 200);
}

#[test]
fn a_truncation_takes_back_ranges_and_the_durable_end() {
    let mut late = record(RecordKind::Data, 0, 150, 50);
    late.header.durable_end = Offset(40);
    let mut truncate = record(RecordKind::Truncate, 0, 120, 0);
    truncate.header.end_after = Offset(12);
    let plan = plan_of(vec![cycle(&[
        record(RecordKind::Data, 0, 100, 50),
        late,
        record(RecordKind::Roll, 90, 0, 0),
        record(RecordKind::Data, 90, 0, 10),
        truncate,
    ])]);
    assert_eq!(plan.end, (0, 120));
    assert_eq!(plan.durable_end, Offset(12));
    // The id says 10, which is in the segment that was cut: its indexes are gone.
    assert_eq!(plan.recovery_point, Offset(0));
    assert_eq!(plan.ranges.len(), 1);
    assert_eq!(plan.ranges[&0].len(), 1);
    assert!(plan.ranges[&0][0].is_cut());
}

#[test]
fn what_lies_below_the_watermark_is_skipped() {
    let mut watermark = record(RecordKind::Watermark, 90, 4_096, 16);
    watermark.watermark = Some((Offset(7), Offset(90)));
    let plan = plan_of(vec![cycle(&[
        record(RecordKind::Data, 0, 100, 50),
        record(RecordKind::Roll, 90, 0, 0),
        record(RecordKind::Data, 90, 0, 4_000),
        record(RecordKind::Data, 90, 4_000, 200),
        watermark,
    ])]);
    assert_eq!(plan.watermark, (90, 4_096));
    assert_eq!(
        (plan.log_start, plan.recovery_point),
        (Offset(7), Offset(90))
    );
    assert_eq!(plan.ranges[&90].len(), 1);
    assert_eq!(plan.end, (90, 4_200));
    assert_eq!(plan.first_hole(), None);
}

#[test]
fn a_hole_shows() {
    let plan = plan_of(vec![cycle(&[record(RecordKind::Data, 0, 150, 50)])]);
    assert_eq!(plan.first_hole(), Some((0, 100)));
}

#[test]
fn damage_concerns_logs_that_nothing_later_proves_whole() {
    let data = record(RecordKind::Data, 0, 100, 50);
    assert_eq!(
        plan_of(vec![cycle(&[data]), lost(vec![])]).suspect,
        Some((0, 150))
    );
    let follows = record(RecordKind::Data, 0, 150, 50);
    assert_eq!(
        plan_of(vec![cycle(&[data]), lost(vec![]), cycle(&[follows])]).suspect,
        None
    );
    // A readable header names what is lost.
    let steps = vec![cycle(&[data]), lost(vec![follows.header])];
    assert_eq!(plan_of(steps).suspect, Some((0, 150)));
    let later = record(RecordKind::Data, 0, 200, 50);
    let plan = plan_of(vec![
        cycle(&[data]),
        lost(vec![follows.header]),
        cycle(&[later]),
    ]);
    assert_eq!(plan.suspect, None);
    assert_eq!(plan.first_hole(), Some((0, 150)));
}

#[test]
fn ids_without_a_directory_need_a_delete() {
    let run = |records: &[FoundRecord]| {
        let chain = Chain {
            steps: vec![cycle(records)],
            last_sequence: 1,
            is_end_lost: false,
            has_tear: false,
        };
        let mut all = Replay::default();
        replay(&chain, &BTreeMap::new(), &mut all);
        all.strangers
    };
    let data = record(RecordKind::Data, 0, 100, 50);
    assert_eq!(run(&[data]), vec![ID]);
    assert!(run(&[data, record(RecordKind::Delete, 0, 150, 0)]).is_empty());
}
