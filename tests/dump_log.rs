//! Apache's DumpLogSegments reads what our formats write, without one complaint: batches of every
//! codec, transactions with their markers, indexes, producer snapshots.
//!
//! Needs Kafka's tools: `KAFKA_HOME=… cargo test --test dump_log -- --ignored`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::BytesMut;
use coreline::base::ids::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Uuid};
use coreline::base::time::TimestampMs;
use coreline::log::format::epoch_cache::EpochCache;
use coreline::log::format::file_names::{
    LEADER_EPOCH_CHECKPOINT, LogFileKind, LogFileName, PARTITION_METADATA,
};
use coreline::log::format::offset_index::OffsetIndex;
use coreline::log::format::partition_metadata;
use coreline::log::format::producer_snapshot;
use coreline::log::format::producer_state::ProducerStates;
use coreline::log::format::time_index::TimeIndex;
use coreline::log::format::transaction_index::TransactionIndex;
use coreline::wire::compression::Codec;
use coreline::wire::record_batch::{
    BatchBuilder, BatchHeader, EndTransactionMarker, MarkerKind, NewRecord, recompute_crc,
    set_log_append_time, stamp_base_offset, stamp_leader_epoch,
};

const INDEX_INTERVAL_BYTES: usize = 4096;

/// A segment as a leader builds it: bytes and what stands beside them.
struct Segment {
    base: Offset,
    end: Offset,
    log: Vec<u8>,
    since_entry: usize,
    largest: (TimestampMs, Offset),
    offsets: OffsetIndex,
    times: TimeIndex,
    transactions: TransactionIndex,
    producers: ProducerStates,
}

impl Segment {
    fn new(base: Offset) -> Self {
        Self {
            base,
            end: base,
            log: Vec::new(),
            since_entry: 0,
            largest: (TimestampMs::NONE, base),
            offsets: OffsetIndex::new(base),
            times: TimeIndex::new(base),
            transactions: TransactionIndex::default(),
            producers: ProducerStates::default(),
        }
    }

    fn append(&mut self, mut batch: BytesMut, leader_epoch: LeaderEpoch) -> BatchHeader {
        stamp_base_offset(&mut batch, self.end);
        stamp_leader_epoch(&mut batch, leader_epoch);
        let header = BatchHeader::parse(&batch).expect("a batch");
        if header.max_timestamp > self.largest.0 {
            self.largest = (header.max_timestamp, header.last_offset());
        }
        if self.since_entry > INDEX_INTERVAL_BYTES {
            assert!(
                self.offsets
                    .append(header.last_offset(), self.log.len() as u32)
            );
            self.times.maybe_append(self.largest.0, self.largest.1);
            self.since_entry = 0;
        }
        self.since_entry += batch.len();
        self.log.extend_from_slice(&batch);
        self.end = header.next_offset();
        header
    }

    fn data(&mut self, batch: BytesMut, leader_epoch: LeaderEpoch) {
        let header = self.append(batch, leader_epoch);
        self.producers.apply(&header);
    }

    fn marker(&mut self, kind: MarkerKind, producer_id: ProducerId) {
        let marker = EndTransactionMarker {
            kind,
            coordinator_epoch: 3,
        };
        let batch = marker.batch(producer_id, ProducerEpoch(0), TimestampMs(2_000));
        let header = self.append(batch.expect("a marker"), LeaderEpoch(1));
        let completed = self.producers.apply_marker(&header, marker);
        if let Some(aborted) = completed.and_then(|completed| completed.index_entry()) {
            assert!(self.transactions.append(aborted));
        }
    }

    fn write(&mut self, folder: &Path) -> Vec<PathBuf> {
        self.times.maybe_append(self.largest.0, self.largest.1);
        let mut paths = Vec::new();
        let mut put = |offset, kind, bytes: &[u8]| {
            let path = folder.join(LogFileName::live(offset, kind).to_string());
            fs::write(&path, bytes).expect("a temporary file is written");
            paths.push(path);
        };
        put(self.base, LogFileKind::Log, &self.log);
        put(self.base, LogFileKind::OffsetIndex, &self.offsets.encode());
        put(self.base, LogFileKind::TimeIndex, &self.times.encode());
        put(
            self.base,
            LogFileKind::TransactionIndex,
            &self.transactions.encode(),
        );
        let snapshot = producer_snapshot::encode(&self.producers);
        put(self.end, LogFileKind::ProducerSnapshot, &snapshot);
        paths
    }
}

fn records(builder: &mut BatchBuilder, first: i64, count: i64) {
    for number in 0..count {
        let value = vec![b'a' + (number % 20) as u8; 300];
        builder.append(NewRecord {
            timestamp: TimestampMs(1_000 + first + (number * 7) % 5),
            key: (number % 3 != 0).then_some(&b"key"[..]),
            value: (number % 4 != 0).then_some(&value[..]),
            headers: &[(b"h", None), (b"h", Some(b"again"))],
        });
    }
}

fn build() -> (Segment, Segment) {
    let mut first = Segment::new(Offset(0));
    for round in 0..12 {
        for codec in Codec::ALL {
            let mut builder = BatchBuilder::default().compressed(codec, None);
            records(&mut builder, round * 10, 20);
            first.data(builder.build().expect("it builds"), LeaderEpoch(0));
        }
    }
    let mut second = Segment::new(first.end);
    for round in 0..6 {
        for (number, producer) in [(0i64, ProducerId(11)), (1, ProducerId(12))] {
            let sequence = Sequence(round as i32 * 5);
            let builder = BatchBuilder::default().producer(producer, ProducerEpoch(0), sequence);
            let mut builder = builder.transactional();
            records(&mut builder, 500 + round * 10 + number, 5);
            second.data(builder.build().expect("it builds"), LeaderEpoch(1));
        }
        second.marker(MarkerKind::Abort, ProducerId(11));
        second.marker(MarkerKind::Commit, ProducerId(12));
    }
    let mut stamped = BatchBuilder::default().compressed(Codec::Zstd, None);
    records(&mut stamped, 0, 9);
    let mut stamped = stamped.build().expect("it builds");
    set_log_append_time(&mut stamped, TimestampMs(9_000));
    recompute_crc(&mut stamped);
    second.data(stamped, LeaderEpoch(1));
    (first, second)
}

fn dump(folder: &Path, files: &[PathBuf], options: &[&str]) -> String {
    let home = std::env::var("KAFKA_HOME").expect("KAFKA_HOME names Kafka's tools");
    let tool = Path::new(&home).join("bin/kafka-dump-log.sh");
    let names: Vec<String> = files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let output = Command::new(&tool)
        .args(options)
        .arg("--files")
        .arg(names.join(","))
        .env("KAFKA_HEAP_OPTS", "-Xmx256m")
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", tool.display()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{options:?}: {text}\n{errors}");
    for complaint in [
        "Mismatch",
        "invalid bytes",
        "Exception",
        "isvalid: false",
        "out of order",
    ] {
        let said = text.contains(complaint) || errors.contains(complaint);
        assert!(
            !said,
            "{options:?} complains of {complaint}: {text}\n{errors}"
        );
    }
    text
}

#[test]
#[ignore = "needs Kafka's tools at KAFKA_HOME"]
fn apaches_tool_reads_our_files_without_a_complaint() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut first, mut second) = build();
    let mut epochs = EpochCache::default();
    epochs.assign(LeaderEpoch(0), first.base);
    epochs.assign(LeaderEpoch(1), second.base);
    fs::write(folder.path().join(LEADER_EPOCH_CHECKPOINT), epochs.encode()).expect("written");
    let metadata = partition_metadata::encode(Uuid([5; 16]));
    fs::write(folder.path().join(PARTITION_METADATA), metadata).expect("written");
    let mut files = first.write(folder.path());
    files.extend(second.write(folder.path()));
    assert!(
        first.offsets.len() > 5,
        "the index has entries to be checked"
    );

    let of_kind = |endings: &[&str]| -> Vec<PathBuf> {
        let wanted = |path: &&PathBuf| {
            endings
                .iter()
                .any(|ending| path.to_string_lossy().ends_with(ending))
        };
        files.iter().filter(wanted).cloned().collect()
    };
    let logs = dump(
        folder.path(),
        &of_kind(&[".log"]),
        &["--deep-iteration", "--print-data-log"],
    );
    let batches = logs.matches("baseOffset: ").count();
    assert_eq!(batches, 12 * 5 + 6 * 4 + 1, "{logs}");
    for codec in Codec::ALL {
        assert!(
            logs.contains(&format!("compresscodec: {}", codec.name())),
            "{codec:?}"
        );
    }
    assert_eq!(
        logs.matches("endTxnMarker: COMMIT coordinatorEpoch: 3")
            .count(),
        6
    );
    assert_eq!(
        logs.matches("endTxnMarker: ABORT coordinatorEpoch: 3")
            .count(),
        6
    );
    assert_eq!(
        logs.matches("headerKeys: [h,h]").count(),
        12 * 5 * 20 + 6 * 2 * 5 + 9
    );

    let indexes = of_kind(&[".log", ".index", ".timeindex"]);
    dump(folder.path(), &indexes, &["--deep-iteration"]);
    let checked = dump(
        folder.path(),
        &of_kind(&[".index"]),
        &["--index-sanity-check"],
    );
    assert_eq!(
        checked.matches("passed sanity check").count(),
        2,
        "{checked}"
    );
    let checked = dump(
        folder.path(),
        &of_kind(&[".timeindex"]),
        &["--index-sanity-check"],
    );
    assert_eq!(
        checked.matches("passed sanity check").count(),
        2,
        "{checked}"
    );
    dump(
        folder.path(),
        &of_kind(&[".index", ".timeindex"]),
        &["--verify-index-only"],
    );

    let transactions = dump(folder.path(), &of_kind(&[".txnindex"]), &[]);
    assert_eq!(
        transactions.matches("producerId: 11").count(),
        6,
        "{transactions}"
    );
    let snapshots = dump(folder.path(), &of_kind(&[".snapshot"]), &[]);
    assert!(
        snapshots.contains("producerId: 12 producerEpoch: 0 coordinatorEpoch: 3"),
        "{snapshots}"
    );
    assert!(snapshots.contains("lastSequence: 29"), "{snapshots}");
}
