//! Clients ask for the log directory and the sizes of the logs in it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use broker::{Client, Harness, HarnessOptions, batch, requests};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{Offset, PartitionIndex};
use coreline::io::uring::{Fault, FaultHook, OperationKind, ShardFaults};
use coreline::wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
};
use coreline::wire::messages::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResponse, DescribeLogDirsResult,
};
use coreline::wire::messages::produce::ProduceResponse;
use coreline::wire::primitives::ARRAY_LEN_MAX;

const EIO: i32 = 5;

fn options() -> HarnessOptions {
    HarnessOptions {
        shards: 2,
        ..HarnessOptions::default()
    }
}

fn describe(client: &mut Client, topics: Option<&[(&str, &[i32])]>) -> DescribeLogDirsResult {
    let topic = |(name, partitions): &(&str, &[i32])| DescribableLogDirTopic {
        topic: (*name).to_owned(),
        partitions: partitions.iter().copied().map(PartitionIndex).collect(),
    };
    let request = DescribeLogDirsRequest {
        topics: topics.map(|topics| topics.iter().map(topic).collect()),
    };
    let response: DescribeLogDirsResponse = client.ask(&request, 4);
    assert_eq!(response.error_code, ErrorCode::NONE);
    let [result] = <[_; 1]>::try_from(response.results).unwrap();
    result
}

/// Topic, partition and size of each log.
fn sizes(result: &DescribeLogDirsResult) -> Vec<(&str, i32, i64)> {
    let mut sizes = Vec::new();
    for topic in &result.topics {
        for partition in &topic.partitions {
            assert_eq!((partition.offset_lag, partition.is_future_key), (0, false));
            let (index, size) = (partition.partition_index.0, partition.partition_size);
            sizes.push((topic.name.as_str(), index, size));
        }
    }
    sizes
}

fn append(client: &mut Client, topic: &str, index: i32, bytes: usize) -> i64 {
    let records = batch(1, bytes);
    let size = records.len();
    let request = requests::produce(topic, -1, [(index, records)]);
    let response: ProduceResponse = client.ask(&request, 9);
    assert_eq!(requests::errors_of(&response), [ErrorCode::NONE]);
    size as i64
}

#[test]
fn sizes_are_those_of_the_batches_on_every_shard_over_several_segments_and_after_a_restart() {
    let options = options();
    let mut harness = Harness::start(options.clone());
    harness.create_topic("b", 3);
    harness.create_topic_with("a", 1, &[("segment.bytes", "1048576")]);
    let mut client = harness.connect();
    let b = [0, 1].map(|index| append(&mut client, "b", index, 1_000 * (index as usize + 1)));
    let a: i64 = (0..5).map(|_| append(&mut client, "a", 0, 500_000)).sum();
    let all = [("a", 0, a), ("b", 0, b[0]), ("b", 1, b[1]), ("b", 2, 0)];
    for _ in 0..2 {
        let result = describe(&mut client, None);
        assert_eq!(result.error_code, ErrorCode::NONE);
        assert_eq!(sizes(&result), all);
        assert!(result.log_dir.starts_with('/') && !result.log_dir.ends_with('/'));
        assert!(std::path::Path::new(&result.log_dir).join("a-0").is_dir());
        assert!(0 < result.usable_bytes && result.usable_bytes <= result.total_bytes);
        harness.restart(&options);
        client = harness.connect();
    }
}

#[test]
fn a_directory_that_is_offline_is_told_so_without_partitions() {
    let fails = Arc::new(AtomicBool::new(false));
    let hooked = Arc::clone(&fails);
    let faults = ShardFaults::new(move |shard| {
        let fails = Arc::clone(&hooked);
        FaultHook::new(move |point| match point.kind {
            OperationKind::Write | OperationKind::Sync
                if shard.0 == 1 && fails.load(Ordering::SeqCst) =>
            {
                Fault::Fail(EIO)
            }
            _ => Fault::None,
        })
    });
    let mut harness = Harness::start(HarnessOptions {
        faults: Some(faults),
        ..options()
    });
    harness.create_topic("t", 4);
    let mut client = harness.connect();
    (0..4).for_each(|index| assert!(append(&mut client, "t", index, 100) > 0));
    assert_eq!(describe(&mut client, None).topics[0].partitions.len(), 4);
    fails.store(true, Ordering::SeqCst);
    let codes: Vec<ErrorCode> = (0..4)
        .map(|index| {
            let request = requests::produce("t", -1, [(index, batch(1, 100))]);
            let response: ProduceResponse = client.ask(&request, 9);
            requests::errors_of(&response)[0]
        })
        .collect();
    assert!(codes.contains(&ErrorCode::KAFKA_STORAGE_ERROR), "{codes:?}");
    for asked in [None, Some(&[("t", &[0, 1, 2, 3][..])][..]), Some(&[])] {
        let result = describe(&mut client, asked);
        assert_eq!(result.error_code, ErrorCode::KAFKA_STORAGE_ERROR);
        assert!(result.log_dir.starts_with('/') && result.topics.is_empty());
        assert_eq!((result.total_bytes, result.usable_bytes), (-1, -1));
    }
    // Its records go no further either, and nothing waits.
    let partition = |index| DeleteRecordsPartition {
        partition_index: PartitionIndex(index),
        offset: Offset(1),
    };
    let request = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: "t".to_owned(),
            partitions: (0..4).map(partition).collect(),
        }],
        timeout_ms: 10_000,
    };
    let began = Instant::now();
    loop {
        let response: DeleteRecordsResponse = client.ask(&request, 2);
        let partitions = &response.topics[0].partitions;
        let refused = |code| code == ErrorCode::KAFKA_STORAGE_ERROR;
        // The other shard hears a little later.
        if partitions.iter().all(|one| refused(one.error_code)) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{partitions:?}");
    }
    drop(client);
    assert!(!harness.stop().is_clean);
}

#[test]
fn only_what_is_named_and_known_is_told_once() {
    let mut harness = Harness::start(options());
    harness.create_topic("t", 3);
    harness.create_topic("u", 2);
    let mut client = harness.connect();
    let size = append(&mut client, "t", 1, 100);
    let asked: &[(&str, &[i32])] = &[
        ("t", &[1, 0, 1, 7, -1, i32::MAX]),
        ("nope", &[0]),
        ("", &[]),
        ("u", &[]),
        ("t", &[1]),
    ];
    let result = describe(&mut client, Some(asked));
    assert_eq!(sizes(&result), [("t", 0, 0), ("t", 1, size)]);
    assert!(describe(&mut client, Some(&[])).topics.is_empty());
    let many = vec![1; ARRAY_LEN_MAX];
    let result = describe(&mut client, Some(&[("t", &many)]));
    assert_eq!(sizes(&result), [("t", 1, size)]);
    let names: Vec<String> = (0..ARRAY_LEN_MAX)
        .map(|name| format!("n{name:032}"))
        .collect();
    let unknown: Vec<(&str, &[i32])> = names.iter().map(|name| (name.as_str(), &[][..])).collect();
    assert!(describe(&mut client, Some(&unknown)).topics.is_empty());
}
