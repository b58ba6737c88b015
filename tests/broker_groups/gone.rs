//! Offsets for topics that are deleted.

use std::path::Path;

use super::*;
use coreline::wire::messages::delete_topics::{DeleteTopicsRequest, DeleteTopicsResponse};

/// On several coordinators.
const GROUPS: usize = 6;

fn delete(client: &mut Client, names: &[&str]) {
    let request = DeleteTopicsRequest {
        topic_names: names.iter().map(|name| (*name).to_owned()).collect(),
        timeout_ms: 10_000,
        ..DeleteTopicsRequest::default()
    };
    let deleted: DeleteTopicsResponse = client.ask(&request, 5);
    let mut responses = deleted.responses.iter();
    assert!(responses.all(|one| one.error_code.is_none()), "{deleted:?}");
}

/// Topic and offset of everything that the groups have committed, once all are loaded.
fn all_of(client: &mut Client, groups: &[String]) -> Vec<(String, i64)> {
    let request = requests::fetch_all_offsets(groups);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let told: OffsetFetchResponse = client.ask(&request, 8);
        if told.groups.iter().all(|group| group.error_code.is_none()) {
            let topics = told.groups.iter().flat_map(|group| &group.topics);
            let offsets = topics.flat_map(|topic| {
                let partitions = topic.partitions.iter();
                partitions.map(|one| (topic.name.clone(), one.committed_offset.0))
            });
            return offsets.collect();
        }
        assert!(Instant::now() < deadline, "they are never loaded: {told:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, into) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap().is_dir() {
            true => copy(&path, &into),
            false => drop(std::fs::copy(&path, &into).unwrap()),
        }
    }
}

/// Metadata that knows of the deletion beside logs without a tombstone: what a kill leaves that
/// came between the two. A topic made again under the name must not be read from the old one's offsets.
#[test]
fn offsets_for_a_deleted_topic_are_for_no_other_though_no_tombstone_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let [logs, before] = ["logs", "before"].map(|name| folder.path().join(name));
    let metadata = folder.path().join("metadata").display().to_string();
    let metadata = format!("metadata.log.dir={metadata}");
    let settings = [
        metadata.as_str(),
        "coreline.journal.bytes=8388608",
        "offsets.topic.num.partitions=4",
    ];
    let start = || {
        let process = Process::start_set(&logs, &settings);
        let client = Client::connect(process.address);
        (process, client)
    };
    let (process, mut client) = start();
    for name in ["t", "u", "kept"] {
        client.create_topic_with(name, 1, &[]);
    }
    find(&mut client);
    let groups: Vec<String> = (0..GROUPS).map(|number| format!("g{number}")).collect();
    for group in &groups {
        fetched(&mut client, group);
        let offsets = [("t", 0, 7), ("u", 0, 7), ("kept", 0, 7)];
        let codes = commit(&mut client, group, &offsets);
        assert_eq!(codes, [ErrorCode::NONE; 3]);
    }
    process.kill();
    copy(&logs, &before);
    let (process, mut client) = start();
    assert_eq!(all_of(&mut client, &groups).len(), 3 * GROUPS);
    delete(&mut client, &["t", "u"]);
    client.create_topic_with("t", 1, &[]);
    process.kill();
    std::fs::remove_dir_all(&logs).unwrap();
    std::fs::rename(&before, &logs).unwrap();
    let (process, mut client) = start();
    let kept = vec![("kept".to_owned(), 7); GROUPS];
    assert_eq!(all_of(&mut client, &groups), kept);
    // What is committed for the new one stays, and the tombstones do for the others.
    assert_eq!(
        commit(&mut client, &groups[0], &[("t", 0, 1)]),
        [ErrorCode::NONE]
    );
    client.create_topic_with("u", 1, &[]);
    process.kill();
    let (process, mut client) = start();
    assert_eq!(all_of(&mut client, &groups).len(), GROUPS + 1);
    assert_eq!(fetched(&mut client, &groups[0]), 1);
    process.kill();
}
