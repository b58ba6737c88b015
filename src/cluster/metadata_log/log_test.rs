use super::batch::BATCH_BYTES_MAX;
use super::*;
use crate::base::random::Random;
use crate::cluster::records::{ConfigRecord, NoOpRecord};
use crate::io::sim::{Fault, FaultEffect, OperationKind, SimDisk, SimDiskOptions, SimRuntime};

const SEGMENT: &str = "/data/__cluster_metadata-0/00000000000000000000.log";

pub(super) fn options() -> MetadataLogOptions {
    MetadataLogOptions {
        log_dir: PathBuf::from("/data"),
        cluster_id: "cluster".into(),
        node_id: BrokerId(1),
        directory_id: Uuid([9; 16]),
        controller: ControllerEndpoint::default(),
        settings: MetadataLogSettings::default(),
    }
}

pub(super) fn segments_of(segment_bytes_max: u64) -> MetadataLogSettings {
    MetadataLogSettings {
        segment_bytes_max,
        ..MetadataLogSettings::default()
    }
}

pub(super) fn disk(seed: u64) -> SimDisk {
    let disk = SimDisk::new(SimDiskOptions::default(), seed);
    live(&disk, seed, async {
        directory::create_all(Path::new("/data")).await.unwrap();
        directory::sync(Path::new("/")).await.unwrap();
    });
    disk
}

/// Runs one life of a process.
pub(super) fn live<T>(disk: &SimDisk, seed: u64, life: impl Future<Output = T>) -> Option<T> {
    SimRuntime::new(disk, seed).block_on(life).ok()
}

pub(super) async fn open_with(options: &MetadataLogOptions) -> Result<Opened, MetadataLogError> {
    MetadataLog::open(options, TimestampMs(1_000)).await
}

async fn open() -> Result<Opened, MetadataLogError> {
    open_with(&options()).await
}

pub(super) fn config(number: u64, value_len: usize) -> MetadataRecord {
    MetadataRecord::Config(ConfigRecord {
        resource_type: 2,
        resource_name: "t".into(),
        name: format!("n{number:06}"),
        value: Some("v".repeat(value_len)),
    })
}

pub(super) fn numbers(image: &Image) -> Vec<u64> {
    let names = image.topic_configs("t");
    names
        .keys()
        .map(|name| name[1..].parse().unwrap())
        .collect()
}

async fn append(opened: &mut Opened, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let records = [config(number, 10), MetadataRecord::NoOp(NoOpRecord {})];
        opened
            .log
            .append(&records, TimestampMs(2_000))
            .await
            .unwrap();
    }
}

#[test]
fn what_was_appended_is_there_at_the_next_start_in_a_higher_epoch() {
    let disk = disk(1);
    let first = live(&disk, 1, async {
        let mut opened = open().await.unwrap();
        assert!(!opened.bootstrap.is_empty());
        append(&mut opened, 0..5).await;
        (opened.log.epoch(), opened.log.next_offset())
    });
    let (epoch, next_offset) = first.unwrap();
    let opened = live(&disk, 2, open()).unwrap().unwrap();
    assert_eq!(numbers(&opened.image), [0, 1, 2, 3, 4]);
    assert_eq!(opened.log.epoch().0, epoch.0 + 1);
    // The control records of the new epoch came on top.
    assert_eq!(opened.log.next_offset(), next_offset.plus(3));
    assert_eq!(opened.image.end_offset(), opened.log.next_offset());
    let checkpoint = disk.contents("/data/__cluster_metadata-0/leader-epoch-checkpoint");
    let expected = format!("0\n2\n1 0\n2 {next_offset}\n");
    assert_eq!(checkpoint.unwrap(), expected.as_bytes());
}

/// Kills and power cuts at every kind of moment: what was acknowledged is there, in order, and
/// what is there was at least asked for.
#[test]
fn no_crash_loses_an_acknowledged_record() {
    let mut appended = 0;
    for seed in 0..120 {
        let disk = disk(seed);
        let mut random = Random::new(seed);
        let (mut acknowledged, mut asked) = (0, 0);
        for round in 0..6 {
            let acked = std::cell::Cell::new(acknowledged);
            let tried = std::cell::Cell::new(asked);
            disk.crash_after(random.below(120) + 1);
            let life = async {
                let mut opened = open().await.unwrap_or_else(|fault| panic!("{fault}"));
                let there = numbers(&opened.image);
                let count = there.len() as u64;
                assert_eq!(there, (0..count).collect::<Vec<_>>());
                let expected = acked.get()..=tried.get();
                assert!(
                    expected.contains(&count),
                    "seed {seed}: {count} of {expected:?}"
                );
                for number in count..count + 40 {
                    tried.set(number + 1);
                    let len = (number as usize * 131) % 3_000;
                    let records = [config(number, len)];
                    opened
                        .log
                        .append(&records, TimestampMs(2_000))
                        .await
                        .unwrap();
                    acked.set(number + 1);
                }
            };
            live(&disk, seed * 10 + round, life);
            (acknowledged, asked) = (acked.get(), tried.get());
            match random.below(2) {
                0 => disk.power_cut(seed + round),
                _ => disk.kill(seed + round),
            }
        }
        appended += asked;
    }
    assert!(appended > 500, "few appends came about: {appended}");
}

#[test]
fn damage_below_the_synced_point_is_named_with_file_and_position() {
    for (at_batch, flipped) in [(2u64, 30u64), (7, 0), (9, 70)] {
        let disk = disk(3);
        let starts = live(&disk, 1, async {
            let mut opened = open().await.unwrap();
            let mut starts = Vec::new();
            for number in 0..10 {
                starts.push(opened.log.position);
                append(&mut opened, number..number + 1).await;
            }
            opened.log.close().await.unwrap();
            starts
        });
        let start = starts.unwrap()[at_batch as usize];
        disk.flip_bit(SEGMENT, start + flipped, 3).unwrap();
        let fault = live(&disk, 2, open()).unwrap().unwrap_err();
        let MetadataLogError::Damaged { path, position, .. } = &fault else {
            panic!("{fault}");
        };
        assert_eq!(path, Path::new(SEGMENT));
        assert_eq!(*position, start, "batch {at_batch}");
        assert!(fault.to_string().contains(&format!("position {start}")));
    }
}

#[test]
fn damage_is_known_from_what_stands_behind_it_without_a_synced_point() {
    let disk = disk(4);
    let start = live(&disk, 1, async {
        let mut opened = open().await.unwrap();
        append(&mut opened, 0..3).await;
        let start = opened.log.position;
        append(&mut opened, 3..5).await;
        let hint = opened.log.folder.join(SYNCED_POINT_FILE);
        directory::remove_file(&hint).await.unwrap();
        start
    });
    let start = start.unwrap();
    disk.flip_bit(SEGMENT, start + 25, 0).unwrap();
    let fault = live(&disk, 2, open()).unwrap().unwrap_err();
    assert!(matches!(fault, MetadataLogError::Damaged { position, .. } if position == start));
}

#[test]
fn a_torn_end_is_cut() {
    let disk = disk(5);
    let end = live(&disk, 1, async {
        let mut opened = open().await.unwrap();
        append(&mut opened, 0..3).await;
        let end = opened.log.position;
        let mut garbage = AlignedBuffer::with_capacity(100);
        garbage.extend_from_slice(&[0x5a; 100]);
        let written = opened
            .log
            .file
            .write_at(end, garbage, Durability::Stable)
            .await;
        written.0.unwrap();
        end
    });
    live(&disk, 2, async move {
        let mut opened = open().await.unwrap();
        assert_eq!(opened.torn_bytes, 100);
        assert_eq!(numbers(&opened.image), [0, 1, 2]);
        assert!(opened.log.position > end.unwrap());
        append(&mut opened, 3..4).await;
    });
    let opened = live(&disk, 3, open()).unwrap().unwrap();
    assert_eq!(
        (numbers(&opened.image), opened.torn_bytes),
        (vec![0, 1, 2, 3], 0)
    );
}

fn fault(effect: FaultEffect) -> Fault {
    Fault {
        kind: OperationKind::Write,
        path_part: ".log".into(),
        skip: 0,
        count: 1,
        effect,
    }
}

#[test]
fn a_full_disk_refuses_one_change_and_another_failure_all() {
    for (effect, goes_on) in [(FaultEffect::Enospc, true), (FaultEffect::Eio, false)] {
        let disk = disk(6);
        live(&disk, 1, async {
            let mut opened = open().await.unwrap();
            append(&mut opened, 0..2).await;
            disk.arm(fault(effect));
            let refused = opened.log.append(&[config(2, 10)], TimestampMs(1)).await;
            assert!(matches!(refused, Err(MetadataLogError::Io { .. })));
            let next = opened.log.append(&[config(3, 10)], TimestampMs(1)).await;
            assert_eq!(next.is_ok(), goes_on, "{effect:?} {next:?}");
        });
        let opened = live(&disk, 2, open()).unwrap().unwrap();
        let there = numbers(&opened.image);
        assert!(there.starts_with(&[0, 1]));
        assert_eq!(there.contains(&3), goes_on);
        assert!(!goes_on || !there.contains(&2));
    }
}

#[test]
fn segments_follow_one_another_and_none_may_be_missing() {
    let disk = disk(7);
    let small = MetadataLogOptions {
        settings: segments_of(1_000),
        ..options()
    };
    live(&disk, 1, async {
        let mut opened = open_with(&small).await.unwrap();
        append(&mut opened, 0..40).await;
    });
    let segments: Vec<String> = (disk.list("/data/__cluster_metadata-0").unwrap().into_iter())
        .filter_map(|(name, _)| name.ends_with(".log").then_some(name))
        .collect();
    assert!(segments.len() > 3);
    for name in &segments {
        let path = format!("/data/__cluster_metadata-0/{name}");
        assert!(disk.contents(&path).unwrap().len() <= 1_000);
    }
    let there = live(&disk, 2, async {
        numbers(&open_with(&small).await.unwrap().image)
    });
    assert_eq!(there.unwrap(), (0..40).collect::<Vec<_>>());
    let lost = PathBuf::from(format!("/data/__cluster_metadata-0/{}", segments[1]));
    live(&disk, 3, async {
        directory::remove_file(&lost).await.unwrap()
    });
    let fault = live(&disk, 3, open_with(&small)).unwrap().unwrap_err();
    assert!(matches!(fault, MetadataLogError::Gap { .. }), "{fault}");
}

#[test]
fn a_change_too_large_for_a_batch_is_refused_and_the_log_goes_on() {
    let disk = disk(8);
    live(&disk, 1, async {
        let mut opened = open().await.unwrap();
        let records: Vec<MetadataRecord> = (0..300).map(|n| config(n, 30_000)).collect();
        assert!(records.len() * 30_000 > BATCH_BYTES_MAX);
        let refused = opened.log.append(&records, TimestampMs(1)).await;
        assert!(
            matches!(refused, Err(MetadataLogError::TooLarge { .. })),
            "{refused:?}"
        );
        append(&mut opened, 300..301).await;
    });
    let opened = live(&disk, 2, open()).unwrap().unwrap();
    assert_eq!(numbers(&opened.image), [300]);
}

/// Folders as Apache Kafka 4.4.0 left them: `kraft.version` 1 after its first start without a
/// topic, and `kraft.version` 0 with a topic after an orderly stop.
const KAFKA_FOLDERS: [[&[u8]; 3]; 2] = [
    [
        include_bytes!("../../../tests/fixtures/kafka_4_4_metadata/quorum-state"),
        include_bytes!(
            "../../../tests/fixtures/kafka_4_4_metadata/\
             00000000000000000000-0000000000.checkpoint"
        ),
        include_bytes!("../../../tests/fixtures/kafka_4_4_metadata/00000000000000000000.log"),
    ],
    [
        include_bytes!("../../../tests/fixtures/kafka_4_4_metadata_static/quorum-state"),
        include_bytes!(
            "../../../tests/fixtures/kafka_4_4_metadata_static/\
             00000000000000000000-0000000000.checkpoint"
        ),
        include_bytes!(
            "../../../tests/fixtures/kafka_4_4_metadata_static/00000000000000000000.log"
        ),
    ],
];

async fn put_kafkas_folder(files: &[&[u8]; 3]) {
    let folder = Path::new("/data/__cluster_metadata-0");
    directory::create_all(folder).await.unwrap();
    let names = [
        "quorum-state",
        "00000000000000000000-0000000000.checkpoint",
        "00000000000000000000.log",
    ];
    for (name, bytes) in names.iter().zip(files) {
        directory::write_file_durably(&folder.join(name), bytes)
            .await
            .unwrap();
    }
}

#[test]
fn a_log_that_kafka_wrote_is_read_and_carried_on() {
    for (kraft_version, files) in [(1, &KAFKA_FOLDERS[0]), (0, &KAFKA_FOLDERS[1])] {
        let disk = disk(9);
        live(&disk, 1, async {
            put_kafkas_folder(files).await;
            let mut opened = open().await.unwrap();
            assert_eq!(opened.log.epoch(), LeaderEpoch(2));
            assert_eq!(opened.image.features()["metadata.version"], 33);
            assert!(opened.image.brokers().contains_key(&BrokerId(1)));
            assert_eq!(opened.bootstrap.len(), 6);
            let topic = opened.image.topics().by_name("foo");
            assert_eq!(topic.is_some(), kraft_version == 0);
            if let Some(topic) = topic {
                assert_eq!(topic.partitions.len(), 2);
                assert_eq!(opened.image.topic_configs("foo")["retention.ms"], "1000");
            }
            append(&mut opened, 0..1).await;
        });
        let there = live(&disk, 2, async { numbers(&open().await.unwrap().image) });
        assert_eq!(there.unwrap(), [0]);
        let state = disk
            .contents("/data/__cluster_metadata-0/quorum-state")
            .unwrap();
        let version = format!("\"data_version\":{kraft_version}}}");
        assert!(String::from_utf8(state).unwrap().ends_with(&version));
    }
}

#[test]
fn the_log_of_another_voter_is_not_taken_over() {
    for files in &KAFKA_FOLDERS {
        let disk = disk(10);
        let other = MetadataLogOptions {
            node_id: BrokerId(2),
            ..options()
        };
        let refused = live(&disk, 1, async {
            put_kafkas_folder(files).await;
            open_with(&other).await.unwrap_err()
        });
        let refused = refused.unwrap();
        assert!(
            matches!(refused, MetadataLogError::Quorum { .. }),
            "{refused}"
        );
    }
}

#[test]
fn partitions_without_metadata_are_no_new_broker() {
    let disk = disk(77);
    live(&disk, 78, async {
        let partition = Path::new("/data/topic-0");
        directory::create_all(partition).await.unwrap();
        // A folder that is no partition's says nothing.
        open().await.unwrap();
        directory::remove_all(Path::new("/data/__cluster_metadata-0"))
            .await
            .unwrap();
        directory::write_file_durably(&partition.join("partition.metadata"), b"version: 0")
            .await
            .unwrap();
        let refused = open().await.err().unwrap().to_string();
        for part in ["__cluster_metadata-0", "is missing", "topic-0"] {
            assert!(refused.contains(part), "{part} in {refused}");
        }
    })
    .unwrap();
}
