use super::*;
use crate::base::limits::PARTITIONS_PER_REQUEST_MAX;
use crate::server::api::metadata::metadata_test::image;
use crate::wire::messages::describe_topic_partitions::TopicRequest;

fn ask(names: &[&str], limit: i32, cursor: Option<(&str, i32)>) -> DescribeTopicPartitionsResponse {
    let topic = |name: &&str| TopicRequest {
        name: (*name).to_owned(),
    };
    let request = DescribeTopicPartitionsRequest {
        topics: names.iter().map(topic).collect(),
        response_partition_limit: limit,
        cursor: cursor.map(|(topic_name, index)| Cursor {
            topic_name: topic_name.to_owned(),
            partition_index: PartitionIndex(index),
        }),
    };
    respond(&image(), &request, 2_000, "PLAINTEXT")
}

/// Each topic with its code and its partitions.
type Topics = Vec<(String, i16, Vec<i32>)>;

/// Each topic, and the cursor.
fn seen(response: &DescribeTopicPartitionsResponse) -> (Topics, Option<(String, i32)>) {
    let topics = response.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|one| one.partition_index.0);
        let name = topic.name.clone().unwrap();
        (name, topic.error_code.0, partitions.collect())
    });
    let cursor = response.next_cursor.as_ref();
    let cursor = cursor.map(|cursor| (cursor.topic_name.clone(), cursor.partition_index.0));
    (topics.collect(), cursor)
}

fn topics(expected: &[(&str, i16, &[i32])]) -> Topics {
    let own = |(name, code, partitions): &(&str, i16, &[i32])| {
        ((*name).to_owned(), *code, partitions.to_vec())
    };
    expected.iter().map(own).collect()
}

fn at(name: &str, index: i32) -> Option<(String, i32)> {
    Some((name.to_owned(), index))
}

#[test]
fn topics_come_sorted_and_once() {
    let (seen, next) = seen(&ask(&["b", "a", "nope", "b c", "b"], 2_000, None));
    let expected: &[(&str, i16, &[i32])] = &[
        ("a", 0, &[0]),
        ("b", 0, &[0, 1]),
        ("b c", 17, &[]),
        ("nope", 3, &[]),
    ];
    assert_eq!((seen, next), (topics(expected), None));
    let all = ask(&[], 2_000, None);
    assert_eq!(all.topics.len(), 2);
    let partition = &all.topics[0].partitions[0];
    assert_eq!(partition.eligible_leader_replicas, Some(Vec::new()));
    assert_eq!(partition.last_known_elr, Some(Vec::new()));
}

/// Pages as Apache Kafka 4.4.0 cut them for topics of the same shape.
#[test]
fn pages_end_where_kafkas_do() {
    let page = |names: &[&str], limit, cursor| seen(&ask(names, limit, cursor));
    for limit in [1, 0, -1] {
        assert_eq!(
            page(&["b", "a"], limit, None),
            (topics(&[("a", 0, &[0])]), at("b", 0))
        );
    }
    let two = topics(&[("a", 0, &[0]), ("b", 0, &[0])]);
    assert_eq!(page(&["b", "a"], 2, None), (two, at("b", 1)));
    let rest = topics(&[("b", 0, &[1]), ("nope", 3, &[])]);
    assert_eq!(page(&["nope", "b", "a"], 2, Some(("b", 1))), (rest, None));
    // A full page ends before an unknown topic too.
    assert_eq!(
        page(&["a", "b0"], 1, None),
        (topics(&[("a", 0, &[0])]), at("b0", 0))
    );
    assert_eq!(
        page(&["b"], 9, Some(("b", 9))),
        (topics(&[("b", 0, &[])]), None)
    );
    assert_eq!(
        page(&[], 9, Some(("aa", 0))),
        (topics(&[("b", 0, &[0, 1])]), None)
    );
}

#[test]
fn a_cursor_outside_the_request_is_refused() {
    for cursor in [("c", 0), ("b", -1)] {
        let response = ask(&["b", "a"], 9, Some(cursor));
        assert!((response.topics.iter()).all(|one| one.error_code.0 == 42));
        assert_eq!(response.topics.len(), 2);
        assert_eq!(response.topics[0].topic_authorized_operations, i32::MIN);
    }
}

/// Following the cursors gives every partition once, whatever the size of a page.
#[test]
fn pages_add_up_to_all() {
    for limit in 1..5 {
        let mut found = Vec::new();
        let mut cursor: Option<(String, i32)> = None;
        for _ in 0..PARTITIONS_PER_REQUEST_MAX {
            let from = cursor.as_ref().map(|(name, index)| (name.as_str(), *index));
            let (topics, next) = seen(&ask(&[], limit, from));
            for (name, _, partitions) in topics {
                found.extend(partitions.into_iter().map(|index| (name.clone(), index)));
            }
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        let all = [
            ("a".to_owned(), 0),
            ("b".to_owned(), 0),
            ("b".to_owned(), 1),
        ];
        assert_eq!(found, all, "limit {limit}");
    }
}
