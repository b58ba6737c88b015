use super::*;
use crate::cluster::records::{ConfigRecord, NoOpRecord};

fn config(len: usize) -> MetadataRecord {
    MetadataRecord::Config(ConfigRecord {
        resource_type: 2,
        resource_name: "t".into(),
        name: "n".into(),
        value: Some("v".repeat(len)),
    })
}

fn built(base: i64, records: &[MetadataRecord]) -> Bytes {
    let batch = build(Offset(base), LeaderEpoch(2), TimestampMs(5), records);
    batch.unwrap().freeze()
}

#[test]
fn a_batch_comes_apart_as_it_was_put_together() {
    let records = [config(3), MetadataRecord::NoOp(NoOpRecord {})];
    let batch = built(7, &records);
    let Scan::Batch(header) = scan(&batch) else {
        panic!("no batch");
    };
    assert_eq!((header.base_offset, header.leader_epoch.0), (Offset(7), 2));
    assert_eq!(header.next_offset(), Offset(9));
    let seen: Vec<(i64, MetadataRecord)> = (entries(&header, &batch).unwrap().unwrap().into_iter())
        .map(|entry| match entry {
            Entry::Data(offset, record) => (offset.0, record),
            other => panic!("{other:?}"),
        })
        .collect();
    let [first, second] = records;
    assert_eq!(seen, [(7, first), (8, second)]);
}

#[test]
fn a_part_of_a_batch_asks_for_more_and_a_wrong_byte_is_bad() {
    let batch = built(0, &[config(50)]);
    for len in 0..batch.len() {
        assert!(matches!(scan(&batch[..len]), Scan::More(need) if need > len));
    }
    for at in 16..batch.len() {
        let mut bytes = batch.to_vec();
        bytes[at] ^= 0x10;
        assert!(matches!(scan(&bytes), Scan::Bad(_)), "byte {at}");
    }
    let mut long = batch.to_vec();
    let claimed = BATCH_BYTES_MAX as i32 - 12 + 1;
    long[8..12].copy_from_slice(&claimed.to_be_bytes());
    assert!(matches!(scan(&long), Scan::Bad(_)));
    long[8..12].copy_from_slice(&(claimed - 1).to_be_bytes());
    assert!(matches!(scan(&long), Scan::More(BATCH_BYTES_MAX)));
}

#[test]
fn a_change_that_fills_a_batch_fits_and_one_byte_more_does_not() {
    let build = |records: &[MetadataRecord]| {
        build(Offset(0), LeaderEpoch(1), TimestampMs(1), records).map(|batch| batch.len())
    };
    let mut records = vec![config(30_000); 279];
    let room = BATCH_BYTES_MAX - build(&records).unwrap();
    // What a record takes besides a value of this length.
    // The offset's delta takes a byte more from 64 on.
    let around = build(&[config(10_000)]).unwrap() - build(&[]).unwrap() - 10_000 + 1;
    assert!(room < 32_000 && room > around + 8_192);
    records.push(config(room - around));
    assert_eq!(build(&records).unwrap(), BATCH_BYTES_MAX);
    records.pop();
    records.push(config(room - around + 1));
    assert!(matches!(
        build(&records),
        Err(MetadataLogError::TooLarge { bytes, .. }) if bytes == BATCH_BYTES_MAX + 1
    ));
}

#[test]
fn a_batch_is_found_behind_damage() {
    let mut bytes = vec![0xff; 77];
    assert!(!holds_a_batch_past(&bytes, Offset(0)));
    bytes.extend_from_slice(&built(9, &[config(1)]));
    assert!(holds_a_batch_past(&bytes, Offset(5)));
    // Left from an earlier life of these blocks: below what comes next.
    assert!(!holds_a_batch_past(&bytes, Offset(10)));
    bytes.pop();
    assert!(!holds_a_batch_past(&bytes, Offset(5)));
}
