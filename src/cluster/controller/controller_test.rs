use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::*;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{BrokerId, LeaderEpoch, PartitionIndex, TopicId, TopicPartition};
use crate::base::random::Random;
use crate::cluster::identity::load_or_create;
use crate::cluster::quotas::mutations::Asker;
use crate::io::sim::{Fault, FaultEffect, OperationKind, SimDisk, SimDiskOptions, SimRuntime};
use crate::io::{TaskClass, directory, spawn};
use crate::wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use crate::wire::messages::delete_topics::DeleteTopicsRequest;

fn config() -> Arc<BrokerConfig> {
    Arc::new(BrokerConfig {
        node_id: BrokerId(1),
        log_dirs: vec![PathBuf::from("/data")],
        num_partitions: 2,
        ..BrokerConfig::default()
    })
}

fn asker() -> Asker {
    Asker::anonymous(Some("test"), true)
}

fn disk() -> SimDisk {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let made = SimRuntime::new(&disk, 1).block_on(directory::create_all("/data".as_ref()));
    made.unwrap().unwrap();
    disk
}

type Seen = Rc<RefCell<Vec<Arc<Image>>>>;

/// One life: a controller that serves, and a client that asks it.
fn live<T: 'static>(
    disk: &SimDisk,
    seed: u64,
    client: impl AsyncFnOnce(ControlHandle, Seen) -> T,
) -> T {
    live_after(disk, seed, false, client)
}

fn live_after<T: 'static>(
    disk: &SimDisk,
    seed: u64,
    is_closed: bool,
    client: impl AsyncFnOnce(ControlHandle, Seen) -> T,
) -> T {
    let life = async {
        let mut random = Random::new(seed);
        let loaded = load_or_create(&config().log_dirs, BrokerId(1), &mut random).await;
        let identity = loaded.unwrap_or_else(|fault| panic!("{fault}"));
        let opened = Controller::open(config(), &identity, seed, TimestampMs(1)).await;
        let mut controller = opened.unwrap_or_else(|fault| panic!("{fault}"));
        let id = identity.directory_ids[Path::new("/data")];
        let image = controller.image();
        let partitions = image.topics().iter().flat_map(|topic| {
            let of = |partition: &PartitionIndex| TopicPartition {
                topic_id: topic.id,
                partition: *partition,
            };
            topic.partitions.keys().map(of).collect::<Vec<_>>()
        });
        let local = LocalDirectories {
            online: vec![id],
            are_all_online: true,
            found: partitions.map(|partition| (partition, id)).collect(),
            closed: is_closed.then_some(id).into_iter().collect(),
        };
        let begun = controller.begin(&local, TimestampMs(1)).await;
        begun.unwrap_or_else(|fault| panic!("{fault}"));
        let seen: Seen = Rc::new(RefCell::new(vec![controller.image()]));
        let log = Rc::clone(&seen);
        let publish: Publish = Box::new(move |image| {
            log.borrow_mut().push(image);
            Box::pin(async {})
        });
        let handle = controller.handle();
        let served = spawn(TaskClass::Background, controller.serve(publish));
        let outcome = client(handle.clone(), seen).await;
        handle.stop().await;
        let _ = served.await;
        outcome
    };
    SimRuntime::new(disk, seed).block_on(life).unwrap()
}

fn topics(names: &[&str]) -> CreateTopicsRequest {
    let topic = |name: &&str| CreatableTopic {
        name: (*name).to_owned(),
        num_partitions: -1,
        replication_factor: -1,
        ..CreatableTopic::default()
    };
    CreateTopicsRequest {
        topics: names.iter().map(topic).collect(),
        ..CreateTopicsRequest::default()
    }
}

fn id_of(image: &Image, name: &str) -> TopicId {
    image.topics().by_name(name).unwrap().id
}

#[test]
fn topics_survive_a_restart_with_their_ids_and_get_a_new_leader_epoch() {
    let disk = disk();
    let created = live(&disk, 1, async |control, seen| {
        let response = control
            .create_topics(topics(&["a", "b"]), asker())
            .await
            .unwrap();
        assert!(
            response
                .topics
                .iter()
                .all(|topic| topic.error_code.is_none())
        );
        // Shards had the topics before the client had its answer.
        let image = seen.borrow().last().unwrap().clone();
        assert_eq!(id_of(&image, "a"), response.topics[0].topic_id);
        image
    });
    live(&disk, 2, async |control, seen| {
        let first = seen.borrow()[0].clone();
        assert_eq!(first.cluster_id(), created.cluster_id());
        assert_eq!(id_of(&first, "a"), id_of(&created, "a"));
        let topic = first.topics().by_name("b").unwrap();
        let partition = topic.partition(PartitionIndex(1)).unwrap();
        assert_eq!(partition.leader_epoch, LeaderEpoch(1));
        let again = control
            .create_topics(topics(&["a"]), asker())
            .await
            .unwrap();
        assert_eq!(again.topics[0].error_code, ErrorCode::TOPIC_ALREADY_EXISTS);
        let request = DeleteTopicsRequest {
            topic_names: vec!["a".into()],
            ..DeleteTopicsRequest::default()
        };
        let deleted = control.delete_topics(request, 5, asker()).await.unwrap();
        assert!(deleted.responses[0].error_code.is_none());
        let again = control
            .create_topics(topics(&["a"]), asker())
            .await
            .unwrap();
        assert_ne!(again.topics[0].topic_id, id_of(&created, "a"));
    });
    live(&disk, 3, async |_, seen| {
        let first = seen.borrow()[0].clone();
        assert_ne!(id_of(&first, "a"), id_of(&created, "a"));
        assert_eq!(id_of(&first, "b"), id_of(&created, "b"));
    });
}

#[test]
fn after_an_orderly_stop_leaders_keep_their_epochs_and_the_log_grows_by_no_partition() {
    let disk = disk();
    live(&disk, 1, async |control, _| {
        let mut request = topics(&["a"]);
        request.topics[0].num_partitions = 500;
        control.create_topics(request, asker()).await.unwrap();
    });
    let bytes = || {
        let folder = "/data/__cluster_metadata-0";
        let files = disk.list(folder).unwrap().into_iter();
        let segments = files.filter(|(name, _)| name.ends_with(".log"));
        let contents = segments.map(|(name, _)| disk.contents(&format!("{folder}/{name}")));
        contents.map(|bytes| bytes.unwrap().len()).sum::<usize>()
    };
    let epochs = |seed, is_closed| {
        let before = bytes();
        let epochs = live_after(&disk, seed, is_closed, async |_, seen| {
            let topic = seen.borrow()[0].topics().by_name("a").unwrap().clone();
            let epochs = topic.partitions.values().map(|one| one.leader_epoch.0);
            (epochs.clone().min().unwrap(), epochs.max().unwrap())
        });
        (epochs, bytes() - before)
    };
    let (kept, few) = epochs(2, true);
    let (raised, many) = epochs(3, false);
    assert_eq!((kept, raised), ((0, 0), (1, 1)));
    assert!(few < 1_000 && many > 10_000, "{few} {many}");
}

#[test]
fn each_start_is_a_registration_of_its_own() {
    let disk = disk();
    let register = |seed| {
        live(&disk, seed, async |_, seen| {
            let image = seen.borrow()[0].clone();
            image.broker(BrokerId(1)).unwrap().clone()
        })
    };
    let (first, second) = (register(1), register(2));
    assert!(!first.fenced && !second.fenced);
    assert_ne!(first.incarnation_id, second.incarnation_id);
    assert!(first.epoch < second.epoch);
    assert_eq!(first.directories, second.directories);
}

#[test]
fn producer_ids_are_never_given_out_twice() {
    let disk = disk();
    let mut last = -1;
    for (seed, asked) in [(1, 3), (2, 1_001), (3, 1)] {
        let ids = live(&disk, seed, async |control, _| {
            let mut ids = Vec::new();
            for _ in 0..asked {
                ids.push(control.next_producer_id().await.unwrap().0);
            }
            ids
        });
        for id in ids {
            assert!(id > last, "{id} after {last}");
            last = id;
        }
    }
    // A block a start, and one more for the thousand and first.
    assert_eq!(last, 3_000);
}

#[test]
fn a_change_that_is_not_durable_is_refused_and_shown_to_nobody() {
    let disk = disk();
    live(&disk, 1, async |control, seen| {
        disk.arm(Fault {
            kind: OperationKind::Write,
            path_part: ".log".into(),
            skip: 0,
            count: 1,
            effect: FaultEffect::Enospc,
        });
        let refused = control
            .create_topics(topics(&["a"]), asker())
            .await
            .unwrap_err();
        assert_eq!(refused.code(), ErrorCode::KAFKA_STORAGE_ERROR);
        assert_eq!(seen.borrow().len(), 1);
        let later = control
            .create_topics(topics(&["a"]), asker())
            .await
            .unwrap();
        assert!(later.topics[0].error_code.is_none());
    });
}

#[test]
fn a_stopped_controller_refuses() {
    let disk = disk();
    let refused = live(&disk, 1, async |control, _| {
        control.stop().await;
        control
            .create_topics(topics(&["a"]), asker())
            .await
            .unwrap_err()
    });
    assert_eq!(refused, ControlError::Stopped);
}

/// What was asked for goes on when the asker's time is over; at or below zero it is over at once.
#[test]
fn a_change_that_takes_longer_than_its_request_allows_goes_on() {
    let disk = disk();
    live(&disk, 1, async |control, _| {
        for (name, timeout_ms) in [("a", 0), ("b", -1)] {
            let asked = control.create_topics(topics(&[name]), asker());
            let late = ControlHandle::within(timeout_ms, asked).await.unwrap_err();
            assert_eq!(late.code(), ErrorCode::REQUEST_TIMED_OUT);
            let again = control.create_topics(topics(&[name]), asker());
            let again = ControlHandle::within(60_000, again).await.unwrap();
            assert_eq!(again.topics[0].error_code, ErrorCode::TOPIC_ALREADY_EXISTS);
        }
        let request = || DeleteTopicsRequest {
            topic_names: vec!["a".into()],
            ..DeleteTopicsRequest::default()
        };
        let asked = control.delete_topics(request(), 5, asker());
        let late = ControlHandle::within(0, asked).await.unwrap_err();
        assert_eq!(late.code(), ErrorCode::REQUEST_TIMED_OUT);
        let again = control.delete_topics(request(), 5, asker()).await.unwrap();
        let code = again.responses[0].error_code;
        assert_eq!(code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    });
}
