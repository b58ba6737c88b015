use super::*;
use crate::wire::primitives::DECODED_BYTES_FLOOR;

fn request(names: impl Iterator<Item = String>) -> MetadataRequest {
    let topic = |name| MetadataRequestTopic {
        name: Some(name),
        ..MetadataRequestTopic::default()
    };
    MetadataRequest {
        topics: Some(names.map(topic).collect()),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    }
}

fn through(request: &MetadataRequest, version: i16) -> Result<MetadataRequest, DecodeError> {
    let mut writer = Writer::default();
    request.encode(&mut writer, version).unwrap();
    let reader = Reader::new(writer.into_bytes());
    MetadataRequest::decode(&mut without_repeated_topics(reader, version)?, version)
}

fn names(request: &MetadataRequest) -> Vec<&str> {
    let topics = request.topics.iter().flatten();
    topics.filter_map(|topic| topic.name.as_deref()).collect()
}

/// The bytes of so many topics, when decoded, are just what any request may take.
fn count_at_floor(name_bytes: usize) -> usize {
    DECODED_BYTES_FLOOR / (size_of::<MetadataRequestTopic>() + name_bytes + 2)
}

/// With the ids of later versions a topic takes so much on the wire that all of them fit.
#[test]
fn repeated_topics_are_taken_once_and_in_order_in_every_version() {
    for version in MetadataRequest::VERSIONS {
        let repeated = (0..50_000).map(|index| format!("t{}", (index % 3) * 7 % 5));
        let asked = MetadataRequest {
            allow_auto_topic_creation: version < 4,
            ..request(repeated)
        };
        let read = through(&asked, version).unwrap();
        let names = names(&read);
        let len = if version < IDS_FROM { 3 } else { 50_000 };
        assert_eq!(names.len(), len, "version {version}");
        assert_eq!(names[..3], ["t0", "t2", "t4"]);
        assert_eq!(read.allow_auto_topic_creation, version < 4);
    }
}

#[test]
fn what_fits_is_left_as_it_came() {
    let few = || (0..6).map(|index| format!("t{}", index % 2));
    let read = through(&request(few()), 9).unwrap();
    assert_eq!(names(&read), few().collect::<Vec<_>>());
    let many = count_at_floor(8);
    let all = |count: usize| (0..count).map(|_| "same-one".to_owned());
    let read = through(&request(all(many)), 4).unwrap();
    assert_eq!(names(&read).len(), many);
    let read = through(&request(all(many + many / 8)), 4).unwrap();
    assert_eq!(names(&read), ["same-one"]);
    let none = MetadataRequest {
        topics: None,
        ..MetadataRequest::default()
    };
    assert_eq!(through(&none, 9), Ok(none));
}

#[test]
fn different_topics_keep_their_limit() {
    let different = |count: usize| (0..count).map(|index| format!("{index:08}"));
    let fits = count_at_floor(8);
    assert_eq!(
        names(&through(&request(different(fits)), 9).unwrap()).len(),
        fits
    );
    let past = through(&request(different(fits + fits / 4)), 9);
    assert_eq!(past, Err(DecodeError::DecodedTooLarge));
}

#[test]
fn what_ends_too_early_is_an_error_wherever_that_is() {
    let repeated = (0..50_000).map(|_| "t".to_owned());
    let mut writer = Writer::default();
    request(repeated).encode(&mut writer, 9).unwrap();
    let whole = writer.into_bytes();
    for len in (0..whole.len()).step_by(997) {
        let cut = Reader::new(whole.slice(..len));
        let read = without_repeated_topics(cut, 9)
            .and_then(|mut reader| MetadataRequest::decode(&mut reader, 9));
        assert!(read.is_err(), "{len}");
    }
}
