//! Settings of what goes to the disk, and when: each changed, and its effect seen from outside.

use std::time::{Duration, Instant};

use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{Offset, PartitionIndex};
use coreline::wire::messages::alter_replica_log_dirs::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic, AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
};
use coreline::wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
};
use coreline::wire::messages::describe_log_dirs::{
    DescribeLogDirsRequest, DescribeLogDirsResponse,
};
use coreline::wire::messages::produce::ProduceResponse;
use coreline::wire::record_batch::recompute_crc;

use crate::broker::requests::{errors_of, produce};
use crate::broker::{Client, batch};
use crate::starts::{Process, STARTS_WITHIN, create};

fn append(client: &mut Client, batch: bytes::BytesMut) -> ErrorCode {
    let response: ProduceResponse = client.ask(&produce("t", 1, [(0, batch)]), 9);
    errors_of(&response)[0]
}

#[test]
fn compressed_batches_are_decoded_unless_they_are_trusted() {
    let outcome = |settings: &[&str]| {
        let process = Process::start(settings);
        let mut client = process.connect();
        create(&mut client, "t", 1, 1);
        // Says that it is zstd, and is not.
        let mut nonsense = batch(1, 100);
        nonsense[22] |= 4;
        recompute_crc(&mut nonsense);
        append(&mut client, nonsense)
    };
    assert_ne!(outcome(&[]), ErrorCode::NONE);
    assert_eq!(
        outcome(&["coreline.validate.compressed=false"]),
        ErrorCode::NONE
    );
}

/// Lines of a checkpoint file for the topic's partition.
fn has_line(process: &Process, file: &str) -> bool {
    let path = process.data().join(file);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().any(|line| line.starts_with("t 0 "))
}

#[test]
fn checkpoints_are_written_in_their_intervals() {
    let files = [
        (
            "log.flush.offset.checkpoint.interval.ms",
            "recovery-point-offset-checkpoint",
        ),
        (
            "log.flush.start.offset.checkpoint.interval.ms",
            "log-start-offset-checkpoint",
        ),
        (
            "replica.high.watermark.checkpoint.interval.ms",
            "replication-offset-checkpoint",
        ),
    ];
    for (often, written) in files {
        let settings = files.map(|(name, _)| {
            let interval = if name == often { 50 } else { 3_600_000 };
            format!("{name}={interval}")
        });
        let process = Process::start(&settings.each_ref().map(String::as_str));
        let mut client = process.connect();
        create(&mut client, "t", 1, 1);
        assert_eq!(append(&mut client, batch(2, 100)), ErrorCode::NONE);
        // A log that starts at 0 has no line.
        let request = DeleteRecordsRequest {
            topics: vec![DeleteRecordsTopic {
                name: "t".to_owned(),
                partitions: vec![DeleteRecordsPartition {
                    partition_index: PartitionIndex(0),
                    offset: Offset(1),
                }],
            }],
            timeout_ms: 10_000,
        };
        let deleted: DeleteRecordsResponse = client.ask(&request, 2);
        assert_eq!(deleted.topics[0].partitions[0].error_code, ErrorCode::NONE);
        let begun = Instant::now();
        while !has_line(&process, written) {
            assert!(begun.elapsed() < STARTS_WITHIN, "{often}");
            std::thread::sleep(Duration::from_millis(20));
        }
        for (name, file) in files {
            assert!(name == often || !has_line(&process, file), "{name}");
        }
    }
}

/// In a while without a limit: that of a batch before it may be under way.
const FLUSHES_MAX: f64 = 1.0;

/// Flushes while batches come one after the other for a while: the fewest of many whiles.
fn fewest_flushes(process: &Process, client: &mut Client, whiles: u8) -> f64 {
    const WHILE: Duration = Duration::from_millis(60);
    // A slow disk takes few in that time, and is asked for as few flushes.
    const BATCHES_MIN: usize = 20;
    let mut fewest = f64::MAX;
    for _ in 0..whiles {
        let before = process.metric("coreline_flushes_total").0;
        let began = Instant::now();
        let mut batches = 0;
        while began.elapsed() < WHILE || batches < BATCHES_MIN {
            assert_eq!(append(client, batch(1, 100)), ErrorCode::NONE);
            batches += 1;
        }
        fewest = fewest.min(process.metric("coreline_flushes_total").0 - before);
        if fewest <= FLUSHES_MAX {
            break;
        }
    }
    fewest
}

/// Without a limit nothing is flushed as long as batches keep coming: a shard that rests for 10 ms
/// flushes by itself, and so may this one where the machine takes that long for a batch. Seen
/// through a loss of power in `log::flush_test`.
#[test]
fn a_busy_shard_flushes_in_time() {
    use crate::changes::{BROKER, TOPIC, alter, take_away};
    let process = Process::start(&["coreline.write.caching=true"]);
    let mut client = process.connect();
    create(&mut client, "t", 1, 1);
    let mut changing = process.connect();
    for (kind, name, limit) in [
        (TOPIC, "t", "flush.ms"),
        (BROKER, "", "log.flush.interval.ms"),
    ] {
        let without = fewest_flushes(&process, &mut client, 60);
        assert!(without <= FLUSHES_MAX, "{without} without {limit}");
        alter(&mut changing, kind, name, &[(limit, "5")]);
        let with = fewest_flushes(&process, &mut client, 4);
        assert!(with > FLUSHES_MAX, "{with} with {limit}");
        take_away(&mut changing, kind, name, &[limit]);
    }
}

/// Whether the topic's log is a copy on its way somewhere.
fn is_moving(client: &mut Client) -> bool {
    let request = DescribeLogDirsRequest { topics: None };
    let response: DescribeLogDirsResponse = client.ask(&request, 4);
    let topics = response.results.iter().flat_map(|result| &result.topics);
    let mut partitions = topics.flat_map(|topic| &topic.partitions);
    partitions.any(|partition| partition.is_future_key)
}

#[test]
fn moves_copy_so_many_bytes_a_second() {
    use crate::changes::{BROKER, alter};
    const RATE: &str = "replica.alter.log.dirs.io.max.bytes.per.second";
    let slow = format!("{RATE}=300000");
    let process = Process::start(&["log.dirs=first,second", &slow]);
    let mut client = process.connect();
    create(&mut client, "t", 1, 1);
    for _ in 0..6 {
        assert_eq!(append(&mut client, batch(1, 200_000)), ErrorCode::NONE);
    }
    let move_to = |client: &mut Client, name: &str| {
        let request = AlterReplicaLogDirsRequest {
            dirs: vec![AlterReplicaLogDir {
                path: process.folder.path().join(name).display().to_string(),
                topics: vec![AlterReplicaLogDirTopic {
                    name: "t".to_owned(),
                    partitions: vec![PartitionIndex(0)],
                }],
            }],
        };
        let response: AlterReplicaLogDirsResponse = client.ask(&request, 2);
        assert_eq!(
            response.results[0].partitions[0].error_code,
            ErrorCode::NONE
        );
    };
    let took = |client: &mut Client| {
        let began = Instant::now();
        while is_moving(client) {
            assert!(began.elapsed() < STARTS_WITHIN);
            std::thread::sleep(Duration::from_millis(5));
        }
        began.elapsed()
    };
    // 1.2 MB, of which the last step need not be paid for before the end.
    move_to(&mut client, "second");
    let slowly = took(&mut client);
    assert!(slowly > Duration::from_secs(2), "{slowly:?}");
    move_to(&mut client, "first");
    alter(&mut client, BROKER, "", &[(RATE, "1000000000")]);
    assert!(took(&mut client) < slowly, "another rate holds at once");
}
