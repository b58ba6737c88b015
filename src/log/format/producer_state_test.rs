use proptest::prelude::*;

use super::producer_snapshot;
use super::producer_snapshot_test::as_kafka_reads;
use super::producer_state::{ProducerCheck, ProducerStateError, ProducerStates};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{Offset, ProducerEpoch, ProducerId, Sequence};
use crate::base::time::TimestampMs;
use crate::log::config::AppendOrigin;
use crate::wire::record_batch::{
    BatchBuilder, BatchHeader, EndTransactionMarker, MarkerKind, NewRecord,
};

pub(super) const PRODUCER: ProducerId = ProducerId(7);

pub(super) struct Batch {
    pub(super) epoch: i16,
    pub(super) sequence: i32,
    pub(super) records: i32,
    pub(super) offset: i64,
    pub(super) is_transactional: bool,
}

pub(super) const DATA: Batch = Batch {
    epoch: 0,
    sequence: 0,
    records: 1,
    offset: 0,
    is_transactional: false,
};

pub(super) fn header(batch: &Batch) -> BatchHeader {
    let mut builder = BatchBuilder::new(Offset(batch.offset)).producer(
        PRODUCER,
        ProducerEpoch(batch.epoch),
        Sequence(batch.sequence),
    );
    if batch.is_transactional {
        builder = builder.transactional();
    }
    for _ in 0..batch.records {
        let timestamp = TimestampMs(1_000 + batch.offset);
        builder.append(NewRecord {
            timestamp,
            ..NewRecord::default()
        });
    }
    BatchHeader::parse(&builder.build().unwrap()).unwrap()
}

fn marker(kind: MarkerKind, epoch: i16, offset: i64) -> (BatchHeader, EndTransactionMarker) {
    let marker = EndTransactionMarker {
        kind,
        coordinator_epoch: 4,
    };
    let batch = marker
        .batch(PRODUCER, ProducerEpoch(epoch), TimestampMs(2_000))
        .unwrap();
    let mut header = BatchHeader::parse(&batch).unwrap();
    header.base_offset = Offset(offset);
    (header, marker)
}

fn check(states: &ProducerStates, batch: &Batch) -> Result<ProducerCheck, ErrorCode> {
    states
        .check(&header(batch), AppendOrigin::Client)
        .map_err(|error| error.error_code())
}

#[test]
fn retries_are_found_among_the_last_five_batches() {
    let mut states = ProducerStates::default();
    for number in 0..6i32 {
        let batch = Batch {
            sequence: number * 3,
            records: 3,
            offset: i64::from(number) * 3,
            ..DATA
        };
        assert_eq!(check(&states, &batch), Ok(ProducerCheck::Append));
        states.apply(&header(&batch));
    }
    for number in 1..6i32 {
        let retry = Batch {
            sequence: number * 3,
            records: 3,
            offset: 900,
            ..DATA
        };
        let Ok(ProducerCheck::Duplicate(original)) = check(&states, &retry) else {
            panic!("batch {number} is not found")
        };
        assert_eq!(original.first_offset(), Offset(i64::from(number) * 3));
        assert_eq!(original.last_offset, Offset(i64::from(number) * 3 + 2));
    }
    // The sixth batch back is forgotten, and part of a batch is no retry.
    let out_of_order = Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(check(&states, &Batch { records: 3, ..DATA }), out_of_order);
    assert_eq!(
        check(
            &states,
            &Batch {
                sequence: 15,
                records: 2,
                ..DATA
            }
        ),
        out_of_order
    );
    assert_eq!(
        check(
            &states,
            &Batch {
                sequence: 19,
                ..DATA
            }
        ),
        out_of_order
    );
    assert_eq!(
        check(
            &states,
            &Batch {
                sequence: 18,
                ..DATA
            }
        ),
        Ok(ProducerCheck::Append)
    );
}

#[test]
fn epochs_fence_and_begin_anew() {
    let mut states = ProducerStates::default();
    let unknown = Batch {
        epoch: 3,
        sequence: 55,
        ..DATA
    };
    assert_eq!(
        check(&states, &unknown),
        Ok(ProducerCheck::Append),
        "may begin anywhere"
    );
    states.apply(&header(&unknown));
    let old = Batch {
        epoch: 2,
        sequence: 56,
        ..DATA
    };
    assert_eq!(check(&states, &old), Err(ErrorCode::INVALID_PRODUCER_EPOCH));
    let new = Batch {
        epoch: 4,
        sequence: 56,
        ..DATA
    };
    assert_eq!(
        check(&states, &new),
        Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER)
    );
    let new = Batch {
        epoch: 4,
        sequence: 0,
        ..DATA
    };
    assert_eq!(check(&states, &new), Ok(ProducerCheck::Append));
    states.apply(&header(&new));
    // A replica copies what its leader took, a coordinator has no sequences.
    assert_eq!(
        states.check(&header(&old), AppendOrigin::Replica),
        Ok(ProducerCheck::Append)
    );
    let gap = Batch {
        epoch: 4,
        sequence: 9,
        ..DATA
    };
    assert_eq!(
        states.check(&header(&gap), AppendOrigin::Coordinator),
        Ok(ProducerCheck::Append)
    );
    assert!(
        states
            .check(&header(&old), AppendOrigin::Coordinator)
            .is_err()
    );
}

#[test]
fn sequences_wrap_to_zero() {
    let mut states = ProducerStates::default();
    let last = Batch {
        sequence: i32::MAX - 1,
        records: 2,
        ..DATA
    };
    states.apply(&header(&last));
    assert_eq!(
        check(&states, &Batch { offset: 2, ..DATA }),
        Ok(ProducerCheck::Append)
    );
    let one = Batch {
        sequence: 1,
        ..DATA
    };
    assert_eq!(
        check(&states, &one),
        Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER)
    );
    // A batch across the wrap is found again as a retry.
    let across = Batch {
        sequence: i32::MAX - 1,
        records: 4,
        offset: 10,
        ..DATA
    };
    let mut states = ProducerStates::default();
    states.apply(&header(&across));
    assert!(matches!(
        check(&states, &across),
        Ok(ProducerCheck::Duplicate(_))
    ));
    assert_eq!(
        check(
            &states,
            &Batch {
                sequence: 2,
                ..DATA
            }
        ),
        Ok(ProducerCheck::Append)
    );
}

#[test]
fn transactions_hold_the_stable_offset_until_their_marker_is_replicated() {
    let mut states = ProducerStates::default();
    let first = Batch {
        offset: 10,
        is_transactional: true,
        ..DATA
    };
    states.apply(&header(&first));
    assert_eq!(states.first_unstable_offset(), Some(Offset(10)));
    let outside = Batch {
        sequence: 1,
        offset: 11,
        ..DATA
    };
    assert_eq!(check(&states, &outside), Err(ErrorCode::INVALID_TXN_STATE));
    let second = Batch {
        sequence: 1,
        offset: 11,
        is_transactional: true,
        ..DATA
    };
    assert_eq!(check(&states, &second), Ok(ProducerCheck::Append));
    states.apply(&header(&second));

    let (header_of_marker, abort) = marker(MarkerKind::Abort, 0, 12);
    assert_eq!(states.check_marker(&header_of_marker, abort), Ok(()));
    let completed = states.apply_marker(&header_of_marker, abort).unwrap();
    assert_eq!(
        (completed.first_offset, completed.last_offset),
        (Offset(10), Offset(12))
    );
    let aborted = completed.index_entry().unwrap();
    assert_eq!(aborted.last_stable_offset, Offset(13));
    assert_eq!(
        states.first_unstable_offset(),
        Some(Offset(10)),
        "not yet replicated"
    );
    states.on_high_watermark(Offset(12));
    assert_eq!(
        states.first_unstable_offset(),
        Some(Offset(10)),
        "the marker itself is not below"
    );
    states.on_high_watermark(Offset(13));
    assert_eq!(states.first_unstable_offset(), None);
}

#[test]
fn markers_fence_older_coordinators_and_raise_the_epoch() {
    let mut states = ProducerStates::default();
    let (header_of_marker, abort) = marker(MarkerKind::Abort, 0, 12);
    states.apply_marker(&header_of_marker, abort);
    let zombie = EndTransactionMarker {
        coordinator_epoch: 3,
        ..abort
    };
    let fenced = states.check_marker(&header_of_marker, zombie).unwrap_err();
    assert_eq!(
        fenced,
        ProducerStateError::CoordinatorFenced {
            incoming: 3,
            current: 4
        }
    );
    // A marker without data leaves no transaction, but raises the epoch.
    let (empty, commit) = marker(MarkerKind::Commit, 1, 14);
    assert_eq!(states.apply_marker(&empty, commit), None);
    let old = Batch {
        sequence: 2,
        ..DATA
    };
    assert_eq!(check(&states, &old), Err(ErrorCode::INVALID_PRODUCER_EPOCH));
    assert_eq!(
        check(&states, &Batch { epoch: 1, ..DATA }),
        Ok(ProducerCheck::Append)
    );
    let gap = Batch {
        epoch: 1,
        sequence: 5,
        ..DATA
    };
    assert_eq!(
        check(&states, &gap),
        Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER)
    );
}

#[test]
fn idle_producers_expire_at_their_age_and_open_transactions_never() {
    let mut states = ProducerStates::default();
    states.apply(&header(&DATA));
    assert_eq!(states.expire(TimestampMs(1_000 + 499), 500), 0);
    assert_eq!(states.expire(TimestampMs(1_000 + 500), 500), 1);
    assert!(states.is_empty());
    states.apply(&header(&Batch {
        is_transactional: true,
        ..DATA
    }));
    assert_eq!(states.expire(TimestampMs(i64::MAX), 0), 0);
    assert_eq!(states.len(), 1);
}

/// All that one producer ever wrote, and the rules as they are told, not as they are coded.
#[derive(Default)]
struct History {
    epoch: Option<i16>,
    /// First and last sequence and first offset of each batch of this epoch.
    batches: Vec<(i32, i32, i64)>,
}

impl History {
    fn judge(&self, epoch: i16, first: i32, last: i32) -> Result<Option<i64>, ErrorCode> {
        let Some(current) = self.epoch else {
            return Ok(None);
        };
        let mut known = self.batches.iter().rev().take(5);
        let retried = known.find(|batch| (batch.0, batch.1) == (first, last));
        if let Some((_, _, offset)) = retried.filter(|_| epoch == current) {
            return Ok(Some(*offset));
        }
        if epoch < current {
            return Err(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        let expected = match self.batches.last() {
            Some((_, last, _)) if epoch == current => last.checked_add(1).unwrap_or(0),
            _ => 0,
        };
        if first == expected {
            Ok(None)
        } else {
            Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER)
        }
    }
}

proptest! {
    #[test]
    fn any_history_is_judged_as_the_rules_say(
        start in prop_oneof![Just(0i32), Just(i32::MAX - 6)],
        steps in proptest::collection::vec((0i16..3, -8i32..3, 1i32..4, any::<bool>()), 1..60),
    ) {
        let mut states = ProducerStates::default();
        let mut history = History::default();
        let mut offset = 0;
        for (epoch, shift, records, from_zero) in steps {
            let next = history.batches.last().map_or(start, |batch| batch.1.wrapping_add(1));
            let sequence = if from_zero { 0 } else { next.wrapping_add(shift.min(0)).max(0) };
            let batch = Batch { epoch, sequence, records, offset, ..DATA };
            let header = header(&batch);
            let last = header.last_sequence().0;
            let expected = history.judge(epoch, sequence, last);
            let found = match check(&states, &batch) {
                Ok(ProducerCheck::Append) => Ok(None),
                Ok(ProducerCheck::Duplicate(batch)) => Ok(Some(batch.first_offset().0)),
                Err(error) => Err(error),
            };
            prop_assert_eq!(&found, &expected, "{} {} {}", epoch, sequence, records);
            if found == Ok(None) {
                if history.epoch != Some(epoch) {
                    history.batches.clear();
                    history.epoch = Some(epoch);
                }
                history.batches.push((sequence, last, offset));
                states.apply(&header);
                offset += i64::from(records);
            }
            // A snapshot tells the same retries from new batches.
            let bytes = producer_snapshot::encode(&states);
            let reloaded = producer_snapshot::decode(&bytes).unwrap();
            prop_assert_eq!(reloaded.get(PRODUCER), states.get(PRODUCER));
            // Kafka, for which the last entry of a producer counts, sees its last batch.
            let of_kafka = as_kafka_reads(&bytes);
            let last = |states: &ProducerStates| {
                states.get(PRODUCER).and_then(|entry| entry.batches().last().copied())
            };
            prop_assert_eq!(of_kafka.get(PRODUCER).map(|entry| entry.batches().len()), Some(1));
            prop_assert_eq!(last(&of_kafka), last(&states));
        }
    }
}
