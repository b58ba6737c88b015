//! Files that Apache Kafka 4.4 wrote and closed (`data/`): we read each of them, and from the log
//! alone we build what stands beside it, to the byte.
//!
//! `txn-0` has `index.interval.bytes=256`, one transaction that was aborted because its producer was
//! killed, and many that were committed; `sequences-0` has four idempotent producers with retries,
//! gaps and new epochs.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use coreline::base::ids::{BrokerEpoch, BrokerId, LeaderEpoch, Offset, PartitionIndex};
use coreline::base::time::TimestampMs;
use coreline::log::format::epoch_cache::EpochCache;
use coreline::log::format::file_names::{self, LogFileKind, LogFileName};
use coreline::log::format::meta_properties::MetaProperties;
use coreline::log::format::offset_index::OffsetIndex;
use coreline::log::format::producer_snapshot::PRODUCER_ENTRY_BYTES;
use coreline::log::format::producer_state::{ProducerEntry, ProducerStates};
use coreline::log::format::time_index::TimeIndex;
use coreline::log::format::transaction_index::TransactionIndex;
use coreline::log::format::{
    checkpoint_files, clean_shutdown, partition_metadata, producer_snapshot,
};
use coreline::wire::record::RecordIter;
use coreline::wire::record_batch::{
    BatchHeader, BatchSlice, EndTransactionMarker, HEADER_BYTES, split_batches, verify_crc,
};

fn read(name: &str) -> Vec<u8> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kafka_files/data");
    let path = PathBuf::from(root).join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_live(folder: &str, offset: i64, kind: LogFileKind) -> Vec<u8> {
    read(&format!(
        "{folder}/{}",
        LogFileName::live(Offset(offset), kind)
    ))
}

/// What a leader keeps beside a log, built from its batches by Kafka's rules.
struct Built {
    offsets: OffsetIndex,
    times: TimeIndex,
    transactions: TransactionIndex,
    epochs: EpochCache,
    producers: ProducerStates,
    end: Offset,
}

fn build(log: Vec<u8>, index_interval_bytes: usize) -> Built {
    let mut built = Built {
        offsets: OffsetIndex::new(Offset(0)),
        times: TimeIndex::new(Offset(0)),
        transactions: TransactionIndex::default(),
        epochs: EpochCache::default(),
        producers: ProducerStates::default(),
        end: Offset(0),
    };
    let (mut position, mut since_entry) = (0, 0);
    let mut largest = (TimestampMs::NONE, Offset(-1));
    for batch in split_batches(Bytes::from(log)) {
        let BatchSlice { header, bytes } = batch.expect("whole batches");
        verify_crc(&bytes).expect("a good checksum");
        if header.max_timestamp > largest.0 {
            largest = (header.max_timestamp, header.last_offset());
        }
        if since_entry > index_interval_bytes {
            assert!(built.offsets.append(header.last_offset(), position));
            built.times.maybe_append(largest.0, largest.1);
            since_entry = 0;
        }
        since_entry += bytes.len();
        position += bytes.len() as u32;
        built.epochs.assign(header.leader_epoch, header.base_offset);
        note_producer(&mut built, &header, &bytes);
        built.end = header.next_offset();
        // Every batch is replicated at once: there is one replica.
        built.producers.on_high_watermark(built.end);
    }
    built.times.maybe_append(largest.0, largest.1);
    built
}

fn note_producer(built: &mut Built, header: &BatchHeader, bytes: &[u8]) {
    if !header.attributes.is_control() {
        built.producers.apply(header);
        return;
    }
    let mut records = RecordIter::new(&bytes[HEADER_BYTES..], header.record_count);
    let record = records.next().expect("a marker").expect("a record");
    let (key, value) = (record.key.expect("a key"), record.value.expect("a value"));
    let marker = EndTransactionMarker::parse(key, value).expect("a marker");
    let completed = built.producers.apply_marker(header, marker);
    if let Some(aborted) = completed.and_then(|completed| completed.index_entry()) {
        assert!(built.transactions.append(aborted));
    }
}

#[test]
fn indexes_are_built_to_the_byte_from_kafkas_log() {
    for (folder, interval) in [("txn-0", 256), ("sequences-0", 4096)] {
        let built = build(read_live(folder, 0, LogFileKind::Log), interval);
        let offsets = read_live(folder, 0, LogFileKind::OffsetIndex);
        assert_eq!(built.offsets.encode(), offsets, "{folder}");
        assert_eq!(OffsetIndex::decode(Offset(0), &offsets), Ok(built.offsets));
        let times = read_live(folder, 0, LogFileKind::TimeIndex);
        assert_eq!(built.times.encode(), times, "{folder}");
        assert_eq!(TimeIndex::decode(Offset(0), &times), Ok(built.times));
        let epochs = read(&format!("{folder}/{}", file_names::LEADER_EPOCH_CHECKPOINT));
        assert_eq!(built.epochs.encode(), epochs, "{folder}");
        assert_eq!(EpochCache::decode(&epochs), Ok(built.epochs));
    }
}

#[test]
fn the_transaction_index_is_built_to_the_byte_from_kafkas_log() {
    let built = build(read_live("txn-0", 0, LogFileKind::Log), 256);
    let transactions = read_live("txn-0", 0, LogFileKind::TransactionIndex);
    assert_eq!(
        built.transactions.entries().len(),
        1,
        "one transaction was aborted"
    );
    assert_eq!(built.transactions.encode(), transactions);
    let decoded = TransactionIndex::decode(Offset(0), &transactions);
    assert_eq!(decoded, Ok(built.transactions));
    assert_eq!(built.producers.first_unstable_offset(), None);
}

/// The newest batch of each producer, which is all that a snapshot keeps.
fn newest(states: &ProducerStates) -> Vec<String> {
    let line = |(id, entry): (_, &ProducerEntry)| {
        let batch = entry.batches().last();
        let (epoch, coordinator) = (entry.producer_epoch, entry.coordinator_epoch);
        let transaction = entry.transaction_first_offset;
        format!(
            "{id:?} {epoch} {coordinator} {:?} {transaction:?} {batch:?}",
            entry.last_timestamp
        )
    };
    let mut lines: Vec<String> = states.producers().map(line).collect();
    lines.sort();
    lines
}

/// A snapshot's entries, sorted.
fn entries_of(snapshot: &[u8]) -> Vec<&[u8]> {
    let mut entries: Vec<&[u8]> = snapshot[10..].chunks(PRODUCER_ENTRY_BYTES).collect();
    entries.sort_unstable();
    entries
}

#[test]
fn producer_snapshots_say_what_kafkas_log_gives() {
    for folder in ["txn-0", "sequences-0"] {
        let built = build(read_live(folder, 0, LogFileKind::Log), 4096);
        let bytes = read_live(folder, built.end.0, LogFileKind::ProducerSnapshot);
        let decoded = producer_snapshot::decode(&bytes).expect("Kafka's snapshot");
        assert!(!decoded.is_empty());
        assert_eq!(newest(&decoded), newest(&built.producers), "{folder}");
        // Kafka writes producers in the order of its hash map, we in that of their ids.
        let ours = producer_snapshot::encode(&decoded);
        assert_eq!(entries_of(&ours), entries_of(&bytes), "{folder}");
        if decoded.len() == 1 {
            assert_eq!(ours, bytes, "{folder}");
        }
    }
}

#[test]
fn the_files_of_the_directory_are_read() {
    let properties = MetaProperties::decode(&read(file_names::META_PROPERTIES)).expect("ids");
    assert_eq!(properties.node_id, BrokerId(1));
    assert!(properties.directory_id.is_some());
    let again = MetaProperties::decode(&properties.encode());
    assert_eq!(again, Ok(properties));

    let shutdown = read(file_names::CLEAN_SHUTDOWN);
    assert_eq!(clean_shutdown::decode(&shutdown), Ok(Some(BrokerEpoch(12))));
    assert_eq!(clean_shutdown::encode(BrokerEpoch(12)), shutdown);

    let recovery = checkpoint_files::decode(&read(file_names::RECOVERY_POINT_CHECKPOINT));
    let recovery = recovery.expect("recovery points");
    let watermarks = checkpoint_files::decode(&read(file_names::HIGH_WATERMARK_CHECKPOINT));
    let watermarks = watermarks.expect("high watermarks");
    let txn = ("txn".to_owned(), PartitionIndex(0));
    assert_eq!(recovery.get(&txn), Some(&Offset(106)));
    assert_eq!(watermarks.get(&txn), Some(&Offset(106)));
    let starts = checkpoint_files::decode(&read(file_names::LOG_START_CHECKPOINT));
    assert_eq!(starts.expect("log starts").get(&txn), None);
    // Kafka creates the files empty and may leave them so.
    let cleaner = checkpoint_files::decode(&read(file_names::CLEANER_CHECKPOINT));
    assert_eq!(cleaner, Ok(checkpoint_files::PartitionOffsets::new()));

    for folder in ["txn-0", "sequences-0"] {
        let metadata = read(&format!("{folder}/{}", file_names::PARTITION_METADATA));
        let topic_id = partition_metadata::decode(&metadata).expect("a topic id");
        assert_eq!(partition_metadata::encode(topic_id), metadata);
    }
    let log = split_batches(Bytes::from(read_live("txn-0", 0, LogFileKind::Log)));
    let epochs: Vec<LeaderEpoch> = log
        .map(|batch| batch.expect("a batch").header.leader_epoch)
        .collect();
    assert!(epochs.iter().all(|epoch| *epoch == LeaderEpoch(0)));
}
