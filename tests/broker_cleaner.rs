//! What a cleaning takes of the machine while it goes through a log of many segments.

mod broker;

use std::path::Path;
use std::time::{Duration, Instant};

use broker::process::Process;
use broker::requests::{self, errors_of};
use broker::{Client, batch};
use coreline::base::error_code::ErrorCode;
use coreline::wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};
use coreline::wire::messages::produce::ProduceResponse;

/// Kind of a resource.
const TOPIC: i8 = 2;

const SEGMENTS: usize = 100;
/// A pass has one segment open to read and one to write; what it replaced is closed soon.
const OPEN_MAX: usize = 40;

/// The lengths of the segments' files.
fn segments(folder: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let logs = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "log"));
    logs.filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .collect()
}

/// How many files of the folder the process has open, those without a name included.
fn open_files(process: &Process, folder: &Path) -> usize {
    let descriptors = format!("/proc/{}/fd", process.id());
    let entries = std::fs::read_dir(descriptors).unwrap().flatten();
    let files = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    files.filter(|file| file.starts_with(folder)).count()
}

fn compact(client: &mut Client) {
    let request = IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: "t".to_owned(),
            configs: vec![AlterableConfig {
                name: "cleanup.policy".to_owned(),
                config_operation: 0,
                value: Some("compact".to_owned()),
            }],
        }],
        validate_only: false,
    };
    let response: IncrementalAlterConfigsResponse = client.ask(&request, 1);
    assert_eq!(response.responses[0].error_code, ErrorCode::NONE);
}

#[test]
fn a_cleaning_has_few_files_open_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let settings = [
        "log.cleaner.backoff.ms=50",
        "log.cleaner.min.cleanable.ratio=0.01",
        "log.segment.delete.delay.ms=0",
    ];
    let process = Process::start_set(folder.path(), &settings);
    let mut client = Client::connect(process.address);
    // Its offset index has room for one batch.
    let small = [("index.interval.bytes", "0"), ("segment.index.bytes", "8")];
    client.create_topic_with("t", 1, &small);
    for _ in 0..SEGMENTS {
        let request = requests::produce("t", -1, [(0, batch(1, 1_000))]);
        let response: ProduceResponse = client.ask(&request, 9);
        assert_eq!(errors_of(&response), [ErrorCode::NONE]);
    }
    let partition = folder.path().canonicalize().unwrap().join("t-0");
    let began = Instant::now();
    let wait = || {
        assert!(
            began.elapsed() < Duration::from_secs(180),
            "it does not go on"
        );
        std::thread::sleep(Duration::from_millis(2));
    };
    // Closed segments are finished in the background.
    while open_files(&process, &partition) > OPEN_MAX / 2 {
        wait();
    }
    compact(&mut client);
    let mut most = 0;
    // Of the one key the last record alone stays.
    let is_whole = |bytes: &&u64| **bytes > 1_000;
    while segments(&partition).iter().filter(is_whole).count() > 2 {
        most = most.max(open_files(&process, &partition));
        assert!(most <= OPEN_MAX, "{most} files are open");
        wait();
    }
    assert!(most > 0);
}
