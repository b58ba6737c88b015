use super::*;
use crate::base::ids::{BrokerId, Uuid};
use crate::cluster::records::TopicRecord;

fn image(names: &[&str]) -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    for (number, name) in names.iter().enumerate() {
        let topic = TopicRecord {
            name: (*name).into(),
            topic_id: id(number),
        };
        image.apply(&MetadataRecord::Topic(topic)).unwrap();
    }
    image
}

fn id(number: usize) -> Uuid {
    Uuid([number as u8 + 1; 16])
}

fn state(name: Option<&str>, topic_id: Uuid) -> DeleteTopicState {
    DeleteTopicState {
        name: name.map(str::to_owned),
        topic_id,
    }
}

fn decide(image: &Image, topics: Vec<DeleteTopicState>) -> Decision<DeleteTopicsResponse> {
    let request = DeleteTopicsRequest {
        topics,
        ..DeleteTopicsRequest::default()
    };
    delete_topics(image, &request, 6, true, &mut Permits::unlimited())
}

/// Codes and messages as Apache Kafka 4.4.0 answered them.
#[test]
fn each_topic_is_removed_or_refused_by_itself() {
    let image = image(&["a", "b", "c", "d"]);
    let zero = TopicId::ZERO;
    let decision = decide(
        &image,
        vec![
            state(Some("a"), zero),
            state(None, id(1)),
            state(Some("nope"), zero),
            state(None, Uuid([99; 16])),
            state(Some("c"), id(2)),
            state(None, zero),
            state(Some("c"), zero),
            state(Some("c"), zero),
            state(Some("d"), zero),
            state(None, id(3)),
            state(None, Uuid([98; 16])),
            state(None, Uuid([98; 16])),
        ],
    );
    let removed: Vec<Uuid> = (decision.records.iter())
        .map(|record| match record {
            MetadataRecord::RemoveTopic(record) => record.topic_id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(removed, [id(0), id(1)]);
    let seen: Vec<(Option<&str>, i16, Option<&str>)> = (decision.response.responses.iter())
        .map(|result| {
            let message = result.error_message.as_deref();
            (result.name.as_deref(), result.error_code.0, message)
        })
        .collect();
    let unknown = Some("This server does not host this topic-partition.");
    let both = Some("You may not specify both topic name and topic id.");
    let doubled = Some("The provided topic name maps to an ID that was already supplied.");
    let expected = [
        (Some("a"), 0, None),
        (Some("b"), 0, None),
        (Some("nope"), 3, unknown),
        (None, 100, Some("This server does not host this topic ID.")),
        (Some("c"), 42, both),
        (None, 42, Some("Neither topic name nor id were specified.")),
        (Some("c"), 42, Some("Duplicate topic name.")),
        (Some("d"), 42, doubled),
        (None, 42, Some("Duplicate topic id.")),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn older_versions_name_topics_in_a_list_of_their_own() {
    let image = image(&["a"]);
    let request = DeleteTopicsRequest {
        topic_names: vec!["a".into(), "nope".into()],
        ..DeleteTopicsRequest::default()
    };
    let codes = |version, is_enabled| {
        let decision = delete_topics(
            &image,
            &request,
            version,
            is_enabled,
            &mut Permits::unlimited(),
        );
        let responses = decision.response.responses;
        let codes: Vec<i16> = responses.iter().map(|one| one.error_code.0).collect();
        (codes, decision.records.len())
    };
    assert_eq!(codes(1, true), (vec![0, 3], 1));
    assert_eq!(codes(2, false), (vec![42, 42], 0));
    assert_eq!(codes(3, false), (vec![73, 73], 0));
}

#[test]
fn one_request_removes_one_batch_at_most() {
    let names: Vec<String> = (0..=RECORDS_PER_OPERATION_MAX)
        .map(|n| format!("t{n}"))
        .collect();
    let mut image = Image::new("cluster", BrokerId(1));
    for (number, name) in names.iter().enumerate() {
        let topic = TopicRecord {
            name: name.clone(),
            topic_id: Uuid((number as u128 + 100).to_be_bytes()),
        };
        image.apply(&MetadataRecord::Topic(topic)).unwrap();
    }
    let request = |count: usize| DeleteTopicsRequest {
        topic_names: names[..count].to_vec(),
        ..DeleteTopicsRequest::default()
    };
    let limit = RECORDS_PER_OPERATION_MAX;
    let at = delete_topics(&image, &request(limit), 5, true, &mut Permits::unlimited());
    assert_eq!(at.records.len(), limit);
    let past = delete_topics(
        &image,
        &request(limit + 1),
        5,
        true,
        &mut Permits::unlimited(),
    );
    assert!(past.records.is_empty());
    assert_eq!(past.response.responses[0].error_code.0, 44);
}
