//! Offsets for topics that are deleted.

use super::*;
use coreline::wire::messages::delete_topics::{DeleteTopicsRequest, DeleteTopicsResponse};

/// On several coordinators.
const GROUPS: usize = 6;

/// A topic made again under the name must not be read from them. Mostly the tombstones are durable
/// before DeleteTopics is answered, so that this tells of the outcome; a kill between the two, where
/// loading has to forget them, is not forced here.
#[test]
fn offsets_for_a_topic_deleted_before_a_kill_are_gone_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path());
    let mut client = Client::connect(process.address);
    client.create_topic_with("t", 1, &[]);
    client.create_topic_with("kept", 1, &[]);
    find(&mut client);
    let groups: Vec<String> = (0..GROUPS).map(|number| format!("g{number}")).collect();
    for group in &groups {
        fetched(&mut client, group);
        let codes = commit(&mut client, group, &[("t", 0, 7), ("kept", 0, 7)]);
        assert_eq!(codes, [ErrorCode::NONE; 2]);
    }
    let request = DeleteTopicsRequest {
        topic_names: vec!["t".to_owned()],
        timeout_ms: 10_000,
        ..DeleteTopicsRequest::default()
    };
    let deleted: DeleteTopicsResponse = client.ask(&request, 5);
    assert!(deleted.responses[0].error_code.is_none());
    process.kill();
    let process = Process::start(folder.path());
    let mut client = Client::connect(process.address);
    let all = |group: &String| OffsetFetchRequestGroup {
        group_id: group.clone(),
        topics: None,
        ..OffsetFetchRequestGroup::default()
    };
    let request = OffsetFetchRequest {
        groups: groups.iter().map(all).collect(),
        ..OffsetFetchRequest::default()
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    let names = loop {
        let told: OffsetFetchResponse = client.ask(&request, 8);
        let is_loaded = told.groups.iter().all(|group| group.error_code.is_none());
        let topics = told.groups.iter().flat_map(|group| &group.topics);
        let names: Vec<String> = topics.map(|topic| topic.name.clone()).collect();
        if (is_loaded && names.len() == GROUPS) || Instant::now() > deadline {
            break names;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(
        names.iter().all(|name| name == "kept"),
        "offsets for t are left"
    );
    assert_eq!(names.len(), GROUPS);
    client.create_topic_with("t", 1, &[]);
    assert_eq!(fetched(&mut client, &groups[0]), -1);
}
