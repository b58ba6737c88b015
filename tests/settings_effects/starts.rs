//! Settings that hold from a start on: each changed, and its effect seen from outside.
//!
//! Over 500 lines, as cases that need nothing of each other share one kind of process and its questions.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use coreline::base::error_code::ErrorCode;
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreateTopicsRequest, CreateTopicsResponse,
};
use coreline::wire::messages::delete_topics::{
    DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use coreline::wire::messages::describe_topic_partitions::{
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicRequest,
};
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use coreline::wire::messages::produce::ProduceResponse;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::broker::requests::{answers, bytes_of, errors_of, fetch, produce};
use crate::broker::{Client, batch};

/// How long a loaded machine may take for a start.
pub const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// A broker in a process of its own.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
    pub admin: SocketAddr,
    pub folder: tempfile::TempDir,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub use crate::broker::process::free_address as free;

/// A command with settings as overrides; later ones win.
fn command(settings: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coreline"));
    for setting in settings {
        command.arg("--override").arg(setting);
    }
    command
}

impl Process {
    pub fn start(settings: &[&str]) -> Self {
        Self::start_at(free(), settings)
    }

    /// Waits for it there; settings may name another listener beside that one.
    pub fn start_at(address: SocketAddr, settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let admin = free();
        let data = folder.path().join("data");
        let mut all = vec![
            format!("listeners=PLAINTEXT://{address}"),
            format!("coreline.admin.listener={admin}"),
            format!("log.dir={}", data.display()),
            "coreline.cores=1".to_owned(),
            "coreline.memory=268435456".to_owned(),
        ];
        all.extend(settings.iter().map(|text| (*text).to_owned()));
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = command(&all)
            .current_dir(folder.path())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut process = Self {
            child,
            address,
            admin,
            folder,
        };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = process.child.try_wait().unwrap();
            assert!(ended.is_none(), "{settings:?}: {}", process.log());
            assert!(started.elapsed() < STARTS_WITHIN, "{settings:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        process
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Where its data are.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Has it end in order.
    pub fn stop(&mut self) {
        self.signal(Signal::SIGTERM);
        assert!(self.child.wait().unwrap().success(), "{}", self.log());
    }

    /// Stops its threads where they are.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    pub fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The size of a budget, all shards together.
    fn budget(&self, budget: &str) -> f64 {
        self.metric_of(
            "coreline_budget_size_bytes",
            &format!("budget=\"{budget}\""),
        )
        .0
    }

    /// The sum of a metric's values, and how many there are.
    pub fn metric(&self, name: &str) -> (f64, usize) {
        self.metric_of(name, "")
    }

    /// The same of those with a label.
    fn metric_of(&self, name: &str, label: &str) -> (f64, usize) {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let values = text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(label))
        });
        let values: Vec<f64> = values
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        (values.iter().sum(), values.len())
    }
}

/// What a broker that refuses to start says.
fn refusal(settings: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut all = vec![
        format!("listeners=PLAINTEXT://{}", free()),
        "coreline.admin.listener=".to_owned(),
        format!("log.dir={}", folder.path().display()),
    ];
    all.extend(settings.iter().map(|text| (*text).to_owned()));
    let mut child = command(&all)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() && started.elapsed() < STARTS_WITHIN {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{settings:?}");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

pub fn create(client: &mut Client, name: &str, partitions: i32, replicas: i16) -> (ErrorCode, i32) {
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: name.to_owned(),
            num_partitions: partitions,
            replication_factor: replicas,
            ..CreatableTopic::default()
        }],
        timeout_ms: 10_000,
        ..CreateTopicsRequest::default()
    };
    let mut created: CreateTopicsResponse = client.ask(&request, 7);
    let topic = created.topics.remove(0);
    (topic.error_code, topic.num_partitions)
}

fn metadata(client: &mut Client, topic: &str, may_create: bool) -> MetadataResponse {
    let request = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some(topic.to_owned()),
            ..MetadataRequestTopic::default()
        }]),
        allow_auto_topic_creation: may_create,
        ..MetadataRequest::default()
    };
    client.ask(&request, 12)
}

fn value(client: &mut Client, topic: &str, setting: &str) -> String {
    use coreline::wire::messages::describe_configs as describe;
    let request = describe::DescribeConfigsRequest {
        resources: vec![describe::DescribeConfigsResource {
            resource_type: 2,
            resource_name: topic.to_owned(),
            configuration_keys: Some(vec![setting.to_owned()]),
        }],
        ..describe::DescribeConfigsRequest::default()
    };
    let mut response: describe::DescribeConfigsResponse = client.ask(&request, 4);
    response.results.remove(0).configs.remove(0).value.unwrap()
}

#[test]
fn clients_are_told_who_the_broker_is() {
    let process = Process::start(&[
        "node.id=7",
        "broker.id=7",
        "broker.rack=here",
        "advertised.listeners=PLAINTEXT://kafka.example:1234",
    ]);
    let told = metadata(&mut process.connect(), "t", false);
    let broker = &told.brokers[0];
    assert_eq!((broker.node_id.0, broker.port), (7, 1234));
    assert_eq!(broker.host, "kafka.example");
    assert_eq!(broker.rack.as_deref(), Some("here"));
    assert_eq!(told.controller_id.0, 7);
}

#[test]
fn listeners_and_roles_that_are_not_served_are_refused() {
    for (settings, word) in [
        (
            &["inter.broker.listener.name=OTHER"][..],
            "inter.broker.listener.name",
        ),
        (
            &["security.inter.broker.protocol=SSL"],
            "security.inter.broker.protocol",
        ),
        (&["listener.security.protocol.map=PLAINTEXT:SSL"], "SSL"),
        (&["process.roles=broker"], "process.roles"),
        (&["node.id=1", "broker.id=2"], "broker.id"),
    ] {
        let told = refusal(settings);
        assert!(told.contains(word), "{settings:?}: {told}");
    }
}

#[test]
fn a_controllers_listener_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (clients, controller) = (free(), free());
    let mut child = command(&[
        format!("listeners=PLAINTEXT://{clients},CONTROL://{controller}"),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT".to_owned(),
        "controller.listener.names=CONTROL".to_owned(),
        "coreline.admin.listener=".to_owned(),
        "coreline.cores=1".to_owned(),
        format!("log.dir={}", folder.path().display()),
    ])
    .stdout(Stdio::null())
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    let started = Instant::now();
    while TcpStream::connect(clients).is_err() && started.elapsed() < STARTS_WITHIN {
        std::thread::sleep(Duration::from_millis(20));
    }
    let are_open = [clients, controller].map(|address| TcpStream::connect(address).is_ok());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(are_open, [true, false]);
}

#[test]
fn topics_are_made_by_the_brokers_defaults() {
    let process = Process::start(&["num.partitions=3", "auto.create.topics.enable=false"]);
    let mut client = process.connect();
    assert_eq!(create(&mut client, "t", -1, -1), (ErrorCode::NONE, 3));
    let told = metadata(&mut client, "nope", true);
    assert_eq!(
        told.topics[0].error_code,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    );
    let process = Process::start(&["default.replication.factor=2"]);
    let mut client = process.connect();
    let (code, _) = create(&mut client, "t", -1, -1);
    assert_eq!(code, ErrorCode::INVALID_REPLICATION_FACTOR);
    metadata(&mut client, "made", true);
    assert_eq!(create(&mut client, "u", -1, 1), (ErrorCode::NONE, 1));
}

#[test]
fn topics_are_deleted_only_where_they_may_be() {
    let process = Process::start(&["delete.topic.enable=false"]);
    let mut client = process.connect();
    create(&mut client, "t", 1, 1);
    let request = DeleteTopicsRequest {
        topics: vec![DeleteTopicState {
            name: Some("t".to_owned()),
            ..DeleteTopicState::default()
        }],
        timeout_ms: 10_000,
        ..DeleteTopicsRequest::default()
    };
    let response: DeleteTopicsResponse = client.ask(&request, 6);
    let code = response.responses[0].error_code;
    assert_eq!(code, ErrorCode::TOPIC_DELETION_DISABLED);
}

#[test]
fn answers_and_requests_have_their_sizes() {
    let process = Process::start(&[
        "fetch.max.bytes=2000",
        "max.request.partition.size.limit=2",
        "socket.request.max.bytes=100000",
        "max.incremental.fetch.session.cache.slots=0",
    ]);
    let mut client = process.connect();
    create(&mut client, "t", 4, 1);
    let batches = (0..4).map(|partition| (partition, batch(1, 1_500)));
    let response: ProduceResponse = client.ask(&produce("t", -1, batches), 9);
    assert_eq!(errors_of(&response), [ErrorCode::NONE; 4]);
    let all = [(0, 0), (1, 0), (2, 0), (3, 0)];
    let mut request = fetch("t", &all);
    request.session_epoch = 0;
    let response: FetchResponse = client.ask(&request, 12);
    let filled = answers(&response)
        .into_iter()
        .filter(|data| bytes_of(data) > 0);
    assert!(filled.count() <= 2, "fetch.max.bytes");
    assert_eq!(response.session_id, 0, "no session has a place");
    let request = DescribeTopicPartitionsRequest {
        topics: vec![TopicRequest {
            name: "t".to_owned(),
        }],
        response_partition_limit: 2_000,
        ..DescribeTopicPartitionsRequest::default()
    };
    let response: DescribeTopicPartitionsResponse = client.ask(&request, 0);
    assert_eq!(response.topics[0].partitions.len(), 2);
    assert!(response.next_cursor.is_some());
    client.send(&produce("t", -1, [(0, batch(1, 120_000))]), 9);
    assert!(
        client.is_closed_within(Duration::from_secs(10)),
        "socket.request.max.bytes"
    );
}

#[test]
fn idle_connections_are_closed() {
    let process = Process::start(&["connections.max.idle.ms=500"]);
    let mut client = process.connect();
    assert!(client.is_closed_within(Duration::from_secs(20)));
}

#[test]
fn data_is_where_the_settings_say() {
    let process = Process::start(&[]);
    assert!(
        process.folder.path().join("data/meta.properties").exists(),
        "log.dir"
    );
    let other = tempfile::tempdir().unwrap();
    let within = other.path().join("other");
    let process = Process::start(&[&format!("log.dirs={}", within.display())]);
    let has = |folder: &Path| folder.join("meta.properties").exists();
    assert!(has(&within) && !has(&process.folder.path().join("data")));
    drop(process);
    let [first, second] = ["first", "second"].map(|name| other.path().join(name));
    let process = Process::start(&[
        &format!("log.dirs={},{}", first.display(), second.display()),
        &format!("metadata.log.dir={}", second.display()),
    ]);
    let mut client = process.connect();
    create(&mut client, "t", 2, 1);
    assert!(first.join("t-0").is_dir() && second.join("t-1").is_dir());
    let metadata = |folder: &Path| folder.join("__cluster_metadata-0").is_dir();
    assert!(metadata(&second) && !metadata(&first), "metadata.log.dir");
}

#[test]
fn hours_and_minutes_are_topics_milliseconds() {
    for (given, topic, value_ms) in [
        ("log.roll.hours=2", "segment.ms", "7200000"),
        ("log.roll.jitter.hours=1", "segment.jitter.ms", "3600000"),
        ("log.retention.hours=5", "retention.ms", "18000000"),
        ("log.retention.minutes=5", "retention.ms", "300000"),
        ("log.flush.scheduler.interval.ms=77", "flush.ms", "77"),
    ] {
        let process = Process::start(&[given]);
        let mut client = process.connect();
        create(&mut client, "t", 1, 1);
        assert_eq!(value(&mut client, "t", topic), value_ms, "{given}");
    }
}

#[test]
fn memory_and_cores_are_divided_as_the_settings_say() {
    let process = Process::start(&[
        "coreline.cores=2",
        "coreline.memory=1073741824",
        "coreline.cache.bytes=16777216",
        "coreline.requests.bytes=33554432",
        "coreline.journal.bytes=8388608",
    ]);
    // A shard is told of once it has first answered.
    let started = Instant::now();
    while process.metric("coreline_shard_partitions").1 != 2 {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "coreline.cores"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let assert_near = |name: &str, wanted: f64| {
        let found = process.budget(name);
        assert!(
            (found - wanted).abs() <= wanted / 8.0,
            "{name} {found}, not {wanted}"
        );
    };
    assert_near("cache", 16_777_216.0);
    // Half of it is kept, so that the largest frame can always be finished.
    assert_near("requests", 33_554_432.0 / 2.0);
    assert_near("journal", 8_388_608.0);
    drop(process);
    let cache = |memory: &str| {
        let process = Process::start(&[memory]);
        process.budget("cache")
    };
    let (small, large) = (
        cache("coreline.memory=134217728"),
        cache("coreline.memory=536870912"),
    );
    assert!(
        large > 2.0 * small,
        "{large} of 512 MiB, {small} of 128 MiB"
    );
}

#[test]
fn latencies_are_logged_where_the_settings_say() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("latencies.hlog");
    let process = Process::start(&[
        &format!("coreline.latency.log={}", file.display()),
        "coreline.slow.request.ms=0",
    ]);
    create(&mut process.connect(), "t", 1, 1);
    let started = Instant::now();
    let are_there = || file.exists() && process.log().contains("CreateTopics");
    while !are_there() {
        assert!(started.elapsed() < STARTS_WITHIN, "{}", process.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Flushes of the disk while batches are produced one after the other.
fn flushes(process: &Process, client: &mut Client, topic: &str) -> f64 {
    const BATCHES: usize = 30;
    let before = process.metric("coreline_flushes_total").0;
    for _ in 0..BATCHES {
        let response: ProduceResponse = client.ask(&produce(topic, 1, [(0, batch(1, 100))]), 9);
        assert_eq!(errors_of(&response), [ErrorCode::NONE]);
    }
    (process.metric("coreline_flushes_total").0 - before) / BATCHES as f64
}

#[test]
fn write_caching_takes_flushes_out_and_its_limits_bring_them_back() {
    use crate::changes::{BROKER, TOPIC, alter, take_away};
    let process = Process::start(&[]);
    let mut client = process.connect();
    create(&mut client, "t", 1, 1);
    let assert_flushes = |is_expected: bool, what: &str| {
        let share = flushes(&process, &mut process.connect(), "t");
        assert!(
            if is_expected {
                share > 0.8
            } else {
                share < 0.5
            },
            "{what}: {share} a batch"
        );
    };
    assert_flushes(true, "as a rule");
    for (kind, name, caching, limit) in [
        (TOPIC, "t", "write.caching", "flush.messages"),
        (
            BROKER,
            "",
            "coreline.write.caching",
            "log.flush.interval.messages",
        ),
    ] {
        alter(&mut client, kind, name, &[(caching, "true")]);
        assert_flushes(false, caching);
        alter(&mut client, kind, name, &[(limit, "1")]);
        assert_flushes(true, limit);
        take_away(&mut client, kind, name, &[caching, limit]);
        assert_flushes(true, "as before");
    }
}

/// When old records are looked for: first after a delay, then again and again.
#[test]
fn retention_looks_when_the_settings_say() {
    use crate::broker::requests::list_offsets;
    use coreline::wire::messages::list_offsets::ListOffsetsResponse;
    let (delay, interval) = (
        "log.initial.task.delay.ms=0",
        "log.retention.check.interval.ms=50",
    );
    let goes = |settings: &[&str], wait: Duration| {
        let process = Process::start(settings);
        let mut client = process.connect();
        create(&mut client, "t", 1, 1);
        std::thread::sleep(Duration::from_millis(300));
        // Records of long ago, past every default.
        let response: ProduceResponse = client.ask(&produce("t", -1, [(0, batch(1, 100))]), 9);
        assert_eq!(errors_of(&response), [ErrorCode::NONE]);
        let started = Instant::now();
        while started.elapsed() < wait {
            let response: ListOffsetsResponse = client.ask(&list_offsets("t", 0, -2), 7);
            if response.topics[0].partitions[0].offset.0 > 0 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    };
    assert!(goes(&[delay, interval], STARTS_WITHIN));
    let soon = Duration::from_secs(1);
    assert!(
        !goes(&[delay], soon) && !goes(&[interval], soon),
        "each by itself"
    );
}

#[test]
fn a_reserve_refuses_producers_and_a_low_disk_is_warned_of() {
    let refuses = |settings: &[&str]| {
        let process = Process::start(settings);
        let mut client = process.connect();
        create(&mut client, "t", 1, 1);
        let response: ProduceResponse = client.ask(&produce("t", -1, [(0, batch(1, 100))]), 9);
        let code = errors_of(&response)[0];
        let is_low = process.metric("coreline_disk_low").0 > 0.0;
        let is_warned = process.log().contains("bytes are free on the disk of");
        assert_eq!(is_low, is_warned, "{}", process.log());
        (code, is_low)
    };
    let all = i64::MAX;
    let (reserve, low) = (
        format!("coreline.disk.reserve.bytes={all}"),
        format!("coreline.disk.low.bytes={all}"),
    );
    let none = ["coreline.disk.reserve.bytes=0", "coreline.disk.low.bytes=0"];
    assert_eq!(refuses(&none), (ErrorCode::NONE, false));
    assert_eq!(refuses(&[none[0], &low]), (ErrorCode::NONE, true));
    assert_eq!(
        refuses(&[&reserve, none[1]]),
        (ErrorCode::KAFKA_STORAGE_ERROR, true)
    );
}
