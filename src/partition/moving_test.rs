//! The moment in which a copy takes over, and when it must not.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::moving::NoSwitch;
use super::{Leadership, Partition, PartitionOptions, Waiter};
use crate::base::ids::{
    BrokerId, LeaderEpoch, Offset, PartitionIndex, ShardId, TopicPartition, Uuid,
};
use crate::base::limits::MIB;
use crate::base::time::TimestampMs;
use crate::io;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use crate::log::{
    AppendContext, CopyStep, Log, LogConfig, LogIdentity, RecoveryOptions, ShardLogs,
    ShardLogsOptions, copy_step, recover,
};
use crate::wire::record_batch::{BatchBuilder, NewRecord};

const TOPIC: Uuid = Uuid([9; 16]);

async fn start(directory: &str) -> Rc<ShardLogs> {
    let directory = PathBuf::from(directory);
    io::directory::create_all(&directory).await.unwrap();
    let incarnation = Uuid([1; 16]);
    let report = recover(RecoveryOptions {
        directory: directory.clone(),
        incarnation,
        shard_count: 1,
        journal_bytes: 2 * MIB as u64,
    })
    .await
    .unwrap();
    ShardLogs::open(ShardLogsOptions {
        directory,
        shard: ShardId(0),
        incarnation,
        journal_bytes: report.journal_bytes_per_shard,
        cache_bytes: 4 * MIB,
        random_seed: 1,
        metrics: Default::default(),
    })
    .await
    .unwrap()
}

async fn append(log: &Rc<Log>) {
    let mut builder = BatchBuilder::new(Offset(0));
    builder.append(NewRecord {
        timestamp: TimestampMs(1_800_000_000_000),
        key: None,
        value: Some(b"v"),
        headers: &[],
    });
    let context = AppendContext::client(LeaderEpoch(1), io::now(), Duration::from_secs(30));
    let appended = log.append(builder.build().unwrap(), context).await.unwrap();
    log.wait_durable(appended.last_offset.plus(1))
        .await
        .unwrap();
}

async fn copy_all(source: &Rc<Log>, future: &Rc<Log>) {
    while copy_step(source, future).await.unwrap() != CopyStep::CaughtUp {}
}

fn partition_of(log: &Rc<Log>) -> Rc<Partition> {
    let options = PartitionOptions {
        id: TopicPartition {
            topic_id: TOPIC,
            partition: PartitionIndex(0),
        },
        local: BrokerId(1),
        log: Rc::clone(log),
        min_insync_replicas: 1,
        wake: Rc::new(|_: &[Waiter]| ()),
        metrics: Default::default(),
    };
    let leadership = Leadership {
        leader: BrokerId(1),
        leader_epoch: LeaderEpoch(1),
        partition_epoch: 0,
        isr: vec![BrokerId(1)],
        replicas: vec![BrokerId(1)],
    };
    Partition::new(options, leadership)
}

/// A copy that ends before the log, or after it, is refused, and the log serves on.
#[test]
fn a_copy_takes_over_when_it_ends_where_the_log_does_and_nothing_changes() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    let moved = async {
        let (a, b) = (start("/a").await, start("/b").await);
        let identity = LogIdentity {
            topic: "t".to_owned(),
            topic_id: TOPIC,
            partition: PartitionIndex(0),
        };
        let source = a.create_log(identity, LogConfig::default()).await.unwrap();
        append(&source).await;
        let partition = partition_of(&source);
        let future = b.create_future(&source).await.unwrap();
        copy_all(&source, &future).await;
        let refusal = |future: &Rc<Log>| {
            let refused = partition.switch_to(Rc::clone(future)).err();
            assert!(partition.has_log(&source));
            refused
        };
        assert_eq!(refusal(&future), Some(NoSwitch::Open));
        append(&source).await;
        let deadline = io::now().after(Duration::from_secs(1));
        assert!(partition.close_to_changes(deadline).await);
        let elsewhere = |copy, log| {
            let (copy, log) = (Offset(copy), Offset(log));
            Some(NoSwitch::EndsElsewhere { copy, log })
        };
        assert_eq!(refusal(&future), elsewhere(1, 2));
        copy_all(&source, &future).await;
        append(&future).await;
        assert_eq!(refusal(&future), elsewhere(3, 2));
        partition.open_to_changes();
        assert!(partition.try_change().is_some(), "it serves on");
        append(&source).await;
        assert!(partition.close_to_changes(deadline).await);
        let given_up = partition.switch_to(Rc::clone(&future)).unwrap();
        assert!(Rc::ptr_eq(&given_up, &source) && partition.has_log(&future));
        assert!(partition.try_change().is_some(), "it is open again");
    };
    runtime.block_on(moved).unwrap();
}
