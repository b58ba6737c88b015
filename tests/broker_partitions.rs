//! Clients add partitions to topics.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::io::Write;
use std::time::Duration;

use broker::process::Process;
use broker::{Client, Harness, HarnessOptions, NODE, batch, requests};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::BrokerId;
use coreline::wire::messages::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsResponse,
    CreatePartitionsTopic,
};
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreateTopicsRequest, CreateTopicsResponse,
};
use coreline::wire::messages::fetch::{FetchRequest, FetchResponse};
use coreline::wire::messages::list_offsets::ListOffsetsResponse;
use coreline::wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use coreline::wire::messages::produce::ProduceResponse;
use coreline::wire::primitives::ARRAY_LEN_MAX;

/// How often the broker stops under clients that ask without a pause, and how many those are.
const STOPS: usize = 4;
/// See [`STOPS`].
const ASKING: usize = 8;

fn options() -> HarnessOptions {
    HarnessOptions {
        shards: 2,
        ..HarnessOptions::default()
    }
}

/// A topic, the count that it is to have, and the brokers of each new partition.
type Asked<'a> = (&'a str, i32, Option<&'a [i32]>);

fn request(topics: &[Asked<'_>], validate_only: bool) -> CreatePartitionsRequest {
    let assignment = |broker: &i32| CreatePartitionsAssignment {
        broker_ids: vec![BrokerId(*broker)],
    };
    let topic = |(name, count, brokers): &Asked<'_>| CreatePartitionsTopic {
        name: (*name).to_owned(),
        count: *count,
        assignments: brokers.map(|brokers| brokers.iter().map(assignment).collect()),
    };
    CreatePartitionsRequest {
        topics: topics.iter().map(topic).collect(),
        timeout_ms: 10_000,
        validate_only,
    }
}

fn grow(client: &mut Client, topics: &[Asked<'_>]) -> Vec<ErrorCode> {
    let response: CreatePartitionsResponse = client.ask(&request(topics, false), 3);
    response.results.iter().map(|one| one.error_code).collect()
}

/// The leaders of a topic's partitions, by their numbers.
fn leaders(client: &mut Client, topic: &str) -> Vec<BrokerId> {
    let request = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some(topic.to_owned()),
            ..MetadataRequestTopic::default()
        }]),
        ..MetadataRequest::default()
    };
    let response: MetadataResponse = client.ask(&request, 12);
    let topic = &response.topics[0];
    assert_eq!(topic.error_code, ErrorCode::NONE);
    for (partition, index) in topic.partitions.iter().zip(0..) {
        assert_eq!(partition.partition_index.0, index);
        assert_eq!(partition.error_code, ErrorCode::NONE);
    }
    topic.partitions.iter().map(|one| one.leader_id).collect()
}

fn append(client: &mut Client, topic: &str, index: i32) -> ErrorCode {
    let request = requests::produce(topic, -1, [(index, batch(1, 100))]);
    let response: ProduceResponse = client.ask(&request, 9);
    requests::errors_of(&response)[0]
}

fn end_of(client: &mut Client, topic: &str, index: i32) -> i64 {
    let request = requests::list_offsets(topic, index, -1);
    let response: ListOffsetsResponse = client.ask(&request, 7);
    let partition = &response.topics[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::NONE);
    partition.offset.0
}

#[test]
fn new_partitions_are_written_and_read_at_once_from_every_shard_and_after_a_restart() {
    let options = options();
    let mut harness = Harness::start(options.clone());
    harness.create_topic("t", 1);
    // Connections of both shards; the second has sent nothing yet.
    let mut clients: Vec<Client> = (0..6).map(|_| harness.connect()).collect();
    assert_eq!(append(&mut clients[0], "t", 0), ErrorCode::NONE);
    assert_eq!(
        append(&mut clients[0], "t", 1),
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
    let validated: CreatePartitionsResponse = clients[0].ask(&request(&[("t", 5, None)], true), 3);
    assert_eq!(validated.results[0].error_code, ErrorCode::NONE);
    assert_eq!(leaders(&mut clients[1], "t"), [NODE]);
    let told = grow(&mut clients[0], &[("t", 4, None)]);
    assert_eq!(told, [ErrorCode::NONE]);
    let told = grow(&mut clients[1], &[("t", 6, Some(&[1, 1]))]);
    assert_eq!(told, [ErrorCode::NONE]);
    for client in &mut clients {
        assert_eq!(leaders(client, "t"), [NODE; 6]);
        for index in 0..6 {
            assert_eq!(append(client, "t", index), ErrorCode::NONE);
        }
    }
    let read: FetchResponse = clients[5].ask(&requests::fetch("t", &[(5, 0)]), 12);
    assert!(requests::bytes_of(requests::answers(&read)[0]) > 600);
    harness.restart(&options);
    let mut client = harness.connect();
    assert_eq!(leaders(&mut client, "t"), [NODE; 6]);
    let ends: Vec<i64> = (0..6)
        .map(|index| end_of(&mut client, "t", index))
        .collect();
    assert_eq!(ends, [7, 6, 6, 6, 6, 6]);
}

/// At or below zero the time is over at once; what was asked for goes on.
#[test]
fn growth_that_takes_longer_than_its_request_allows_goes_on() {
    let mut harness = Harness::start(options());
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    for (count, timeout_ms) in [(2, 0), (4, -1)] {
        let mut request = request(&[("t", count, None)], false);
        request.timeout_ms = timeout_ms;
        let late: CreatePartitionsResponse = client.ask(&request, 3);
        assert_eq!(late.results[0].error_code, ErrorCode::REQUEST_TIMED_OUT);
        // The controller answers one after the other.
        let again = grow(&mut client, &[("t", count, None)]);
        assert_eq!(again, [ErrorCode::INVALID_PARTITIONS]);
        assert_eq!(leaders(&mut client, "t").len(), count as usize);
    }
}

#[test]
fn what_is_refused_leaves_the_topic_as_it_is() {
    let mut harness = Harness::start(options());
    harness.create_topic("t", 2);
    harness.create_topic("u", 1);
    let mut client = harness.connect();
    let asked = [
        ("t", 2, None),
        ("nope", 3, None),
        ("u", 3, Some(&[1, 7][..])),
    ];
    assert_eq!(
        grow(&mut client, &asked),
        [
            ErrorCode::INVALID_PARTITIONS,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode::INVALID_REPLICA_ASSIGNMENT
        ]
    );
    for count in [i32::MIN, -1, 0, 1] {
        let told = grow(&mut client, &[("t", count, None)]);
        assert_eq!(told, [ErrorCode::INVALID_PARTITIONS]);
    }
    for asked in [
        &[("t", i32::MAX, None)][..],
        &[("t", 9_000, None), ("u", 2_000, None)],
    ] {
        let told = grow(&mut client, asked);
        assert!(told.iter().all(|code| *code == ErrorCode::POLICY_VIOLATION));
    }
    assert_eq!(leaders(&mut client, "t"), [NODE; 2]);
    assert_eq!(leaders(&mut client, "u"), [NODE]);
}

#[test]
fn huge_requests_are_answered_and_change_nothing() {
    let mut harness = Harness::start(options());
    harness.create_topic("t", 1);
    let mut client = harness.connect();
    // As many of such small pieces as a decoded request may take.
    let same = vec![("t", 3, None); 15_000];
    assert_eq!(grow(&mut client, &same), [ErrorCode::INVALID_REQUEST]);
    let names: Vec<String> = (0..ARRAY_LEN_MAX)
        .map(|name| format!("n{name:032}"))
        .collect();
    let many: Vec<Asked<'_>> = names.iter().map(|name| (name.as_str(), 3, None)).collect();
    let told = grow(&mut client, &many);
    assert_eq!(told.len(), ARRAY_LEN_MAX);
    assert!(told.iter().all(|code| *code == ErrorCode::POLICY_VIOLATION));
    let brokers = vec![1; 30_000];
    let told = grow(&mut client, &[("t", 3, Some(&brokers))]);
    assert_eq!(told, [ErrorCode::INVALID_REPLICA_ASSIGNMENT]);
    assert_eq!(leaders(&mut client, "t"), [NODE]);
    assert_eq!(append(&mut client, "t", 0), ErrorCode::NONE);
}

#[test]
fn answered_partitions_and_their_records_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 1;
    for life in 0..4 {
        let process = Process::start(folder.path());
        let mut client = Client::connect(process.address);
        if life == 0 {
            let request = CreateTopicsRequest {
                topics: vec![CreatableTopic {
                    name: "t".to_owned(),
                    num_partitions: count,
                    replication_factor: 1,
                    ..CreatableTopic::default()
                }],
                timeout_ms: 10_000,
                ..CreateTopicsRequest::default()
            };
            let created: CreateTopicsResponse = client.ask(&request, 7);
            assert_eq!(created.topics[0].error_code, ErrorCode::NONE);
        }
        assert_eq!(leaders(&mut client, "t").len(), count as usize);
        for index in 1..count {
            assert_eq!(end_of(&mut client, "t", index), 1, "life {life}");
        }
        let before = count;
        for _ in 0..3 {
            count += 3;
            assert_eq!(grow(&mut client, &[("t", count, None)]), [ErrorCode::NONE]);
        }
        for index in before..count {
            assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
        }
        // One that is not answered yet when the broker dies may be there or not, but whole.
        if life == 3 {
            client.send(&request(&[("t", count + 40, None)], false), 3);
        }
        process.kill();
    }
    let process = Process::start(folder.path());
    let mut client = Client::connect(process.address);
    let found = leaders(&mut client, "t");
    let counts = [count as usize, count as usize + 40];
    assert!(counts.contains(&found.len()), "{} partitions", found.len());
    assert!(found.iter().all(|leader| *leader == NODE));
    for index in 0..found.len() as i32 {
        assert_eq!(append(&mut client, "t", index), ErrorCode::NONE);
    }
}

/// Shards stop one after the other; who still asks through another one is sent to look for the
/// partition again, never told that there is none.
#[test]
fn a_stop_does_not_make_topics_unknown() {
    let mut harness = Harness::start(options());
    harness.create_topic("stays", 8);
    let all: Vec<(i32, i64)> = (0..8).map(|partition| (partition, 0)).collect();
    let fetch = FetchRequest {
        max_wait_ms: 0,
        ..requests::fetch("stays", &all)
    };
    for life in 0..STOPS {
        let asking: Vec<_> = (0..ASKING)
            .map(|_| {
                let (mut client, fetch) = (harness.connect(), fetch.clone());
                std::thread::spawn(move || ask_until_closed(&mut client, &fetch))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        assert!(harness.stop().is_clean);
        for one in asking {
            let (answers, wrong) = one.join().unwrap();
            assert!(answers > 0, "life {life}");
            assert_eq!(wrong, [], "life {life}, answer {answers}");
        }
        harness.start_again(&options());
    }
}

/// How many answers came, and the codes in them that say more than "look again".
fn ask_until_closed(client: &mut Client, fetch: &FetchRequest) -> (usize, Vec<ErrorCode>) {
    let (mut answers, mut wrong) = (0, Vec::new());
    let bytes = client.encode(fetch, 11);
    while client.stream.write_all(&bytes).is_ok() {
        let Some(response) = client.try_receive::<FetchResponse>(11) else {
            break;
        };
        answers += 1;
        let codes = requests::answers(&response).into_iter();
        let codes = codes.map(|data| data.error_code);
        wrong.extend(
            codes.filter(|code| !code.is_none() && *code != ErrorCode::NOT_LEADER_OR_FOLLOWER),
        );
    }
    (answers, wrong)
}
