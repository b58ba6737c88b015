//! The topic of offsets is compacted: it stays small, and a coordinator that loads what is left
//! knows what it knew.

use std::path::Path;
use std::time::{Duration, Instant};

use coreline::base::error_code::ErrorCode;
use coreline::wire::messages::delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse};
use coreline::wire::messages::offset_commit::{OffsetCommitRequest, OffsetCommitResponse};

use crate::broker::Client;
use crate::broker::process::Process;
use crate::{all_of, commit, commit_request, fetched, find, join};

const PARTITIONS: i32 = 60;
/// Of one commit, together near 240 kB: some six of them fill a segment.
const METADATA_BYTES: usize = 4_000;
const SEGMENT_BYTES: u64 = 1 << 20;
const SETTINGS: [&str; 5] = [
    "offsets.topic.num.partitions=1",
    "offsets.topic.segment.bytes=1048576",
    "log.cleaner.backoff.ms=20",
    "log.cleaner.min.cleanable.ratio=0.01",
    "log.cleaner.delete.retention.ms=0",
];
/// Within this a loaded machine has cleaned.
const AT_LAST: Duration = Duration::from_secs(120);

fn commit_all(client: &mut Client, offset: i64) {
    let one = |index| {
        commit_request("g", &[("t", index, offset)])
            .topics
            .remove(0)
    };
    let mut request = OffsetCommitRequest {
        topics: (0..PARTITIONS).map(one).collect(),
        ..commit_request("g", &[])
    };
    for topic in &mut request.topics {
        topic.partitions[0].committed_metadata = Some("m".repeat(METADATA_BYTES));
    }
    let told: OffsetCommitResponse = client.ask(&request, 8);
    let mut partitions = told.topics.iter().flat_map(|topic| &topic.partitions);
    assert!(
        partitions.all(|one| one.error_code.is_none()),
        "commit {offset}"
    );
}

/// Bytes of the segments that take nothing more, and how many there are.
fn finished(folder: &Path) -> (u64, usize) {
    let files = std::fs::read_dir(folder.join("__consumer_offsets-0")).unwrap();
    let mut segments: Vec<(String, u64)> = files
        .filter_map(|file| {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            // One that is going is gone.
            let bytes = file.metadata().ok()?.len();
            name.ends_with(".log").then_some((name, bytes))
        })
        .collect();
    segments.sort();
    segments.pop();
    (
        segments.iter().map(|(_, bytes)| bytes).sum(),
        segments.len(),
    )
}

#[test]
fn the_topic_of_offsets_stays_small_and_groups_load_from_what_is_left() {
    // Cleaned while it grows, killed in the middle of it.
    let lives = match std::env::var_os("CORELINE_ACCEPT").is_some() {
        true => 20,
        false => 2,
    };
    let folder = tempfile::tempdir().unwrap();
    let mut committed = 0;
    for life in 0..lives {
        let process = Process::start_set(folder.path(), &SETTINGS);
        let mut client = Client::connect(process.address);
        if life == 0 {
            client.create_topic_with("t", PARTITIONS, &[]);
            find(&mut client);
            fetched(&mut client, "g");
            // A group that goes, and one that has had a member.
            assert_eq!(
                commit(&mut client, "gone", &[("t", 0, 5)]),
                [ErrorCode::NONE]
            );
            let request = DeleteGroupsRequest {
                groups_names: vec!["gone".to_owned()],
            };
            let told: DeleteGroupsResponse = client.ask(&request, 2);
            assert!(told.results[0].error_code.is_none());
            assert!(join(&mut client, "h", "").error_code.is_none());
        }
        // Nothing yet is -1.
        assert_eq!(fetched(&mut client, "g"), committed - 1);
        assert_eq!(fetched(&mut client, "gone"), -1);
        for _ in 0..20 + life {
            commit_all(&mut client, committed);
            committed += 1;
        }
        let begun = Instant::now();
        // Of every key one record, in each of a few segments; without a cleaner it is megabytes.
        while life % 2 == 0 && finished(folder.path()).0 > SEGMENT_BYTES {
            assert!(begun.elapsed() < AT_LAST, "{:?}", finished(folder.path()));
            std::thread::sleep(Duration::from_millis(20));
        }
        process.kill();
    }
    let process = Process::start_set(folder.path(), &SETTINGS);
    let mut client = Client::connect(process.address);
    assert_eq!(fetched(&mut client, "g"), committed - 1);
    assert_eq!(
        all_of(&mut client, "g"),
        vec![committed - 1; PARTITIONS as usize]
    );
    assert_eq!(fetched(&mut client, "gone"), -1);
}
