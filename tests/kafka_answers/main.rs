//! The same requests to Apache Kafka and to Coreline, and their answers compared field by field, in
//! the lowest and the highest version of every key that is served; with `CORELINE_ACCEPT=1` in all
//! versions. What may differ is taken out with its reason, in the functions named `even_…`.
//!
//! `cargo test --test kafka_answers -- --ignored` starts both brokers. Needs Java, and `KAFKA_HOME`
//! or what `scripts/kafka` downloads.

mod brokers;
mod changes;
mod clusters;
mod configs;
mod data;
mod features;
mod groups;
mod growth;
mod moves;
mod partitions;
#[path = "../broker/process.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod process;
mod quorum;
mod quotas;
mod records;
#[path = "../broker/requests.rs"]
#[allow(dead_code)]
mod requests;
mod session;
mod takeover;
mod topics;

use brokers::Broker;
use session::{Peer, Session};

/// Both brokers while they run, with their folder.
struct Brokers {
    session: Session,
    _running: [Broker; 2],
    _folder: tempfile::TempDir,
}

fn start() -> Brokers {
    start_with("")
}

/// Both with more settings.
fn start_with(more: &str) -> Brokers {
    start_both(more, &[])
}

/// Both with these log directories.
fn start_in(directories: &[&str]) -> Brokers {
    start_both("", directories)
}

fn start_both(more: &str, directories: &[&str]) -> Brokers {
    let folder = tempfile::tempdir().expect("a folder");
    let within = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).expect("a folder");
        path
    };
    let settings = |path: &std::path::Path| {
        let paths = directories.iter();
        let paths: Vec<String> = paths
            .map(|name| path.join(name).display().to_string())
            .collect();
        // The last of a setting counts.
        let named = format!("log.dirs={}\n{more}", paths.join(","));
        if paths.is_empty() {
            more.to_owned()
        } else {
            named
        }
    };
    let (theirs, ours) = (within("kafka"), within("coreline"));
    let kafka = Broker::kafka_with(&theirs, &settings(&theirs));
    let coreline = Broker::coreline_with(&ours, &settings(&ours));
    Brokers {
        session: Session {
            kafka: Peer::connect(true, kafka.port),
            coreline: Peer::connect(false, coreline.port),
            is_accept: std::env::var_os("CORELINE_ACCEPT").is_some(),
            compared: 0,
            faults: Vec::new(),
        },
        _running: [kafka, coreline],
        _folder: folder,
    }
}

fn judge(session: &Session, compared_min: usize) {
    let faults = session.faults.join("\n");
    let differ = session.faults.len();
    assert!(
        differ == 0,
        "{differ} of {} answers differ\n{faults}",
        session.compared
    );
    assert!(
        session.compared >= compared_min,
        "{} were compared",
        session.compared
    );
    eprintln!("{} answers compared", session.compared);
}

#[test]
#[ignore = "needs Apache Kafka; scripts/test runs it"]
fn administrative_keys_answer_as_apache_kafka_does() {
    let mut brokers = start();
    let session = &mut brokers.session;
    topics::compare(session);
    clusters::compare(session);
    configs::compare(session);
    quorum::compare(session);
    quotas::compare(session);
    features::compare(session);
    changes::compare_validation(session);
    changes::compare_changes(session);
    topics::compare_deletion(session);
    judge(session, 600);
}

#[test]
#[ignore = "needs Apache Kafka; scripts/test runs it"]
fn data_keys_answer_as_apache_kafka_does() {
    let mut brokers = start();
    data::compare(&mut brokers.session);
    records::compare(&mut brokers.session);
    growth::compare(&mut brokers.session);
    partitions::compare(&mut brokers.session);
    judge(&brokers.session, 320);
}

#[test]
#[ignore = "needs Apache Kafka; scripts/test runs it"]
fn keys_of_groups_answer_as_apache_kafka_does() {
    let mut brokers = start_with(groups::SETTINGS);
    groups::compare(&mut brokers.session);
    judge(&brokers.session, 150);
}

#[test]
#[ignore = "needs Apache Kafka; scripts/test runs it"]
fn moves_between_directories_answer_as_apache_kafka_does() {
    let mut brokers = start_in(&["data", "data-two"]);
    moves::compare(&mut brokers.session);
    judge(&brokers.session, 20);
}

#[test]
#[ignore = "needs Apache Kafka; scripts/test runs it"]
fn a_data_folder_goes_to_apache_kafka_and_back() {
    let folder = tempfile::tempdir().expect("a folder");
    takeover::there_and_back(folder.path());
}

#[test]
#[ignore = "needs Apache Kafka; scripts/test runs it"]
fn snapshots_of_metadata_go_to_apache_kafka_and_back() {
    let folder = tempfile::tempdir().expect("a folder");
    takeover::there_and_back_with_snapshots(folder.path());
}
