//! The admin port of whole brokers: its numbers are those of the requests that were sent, and
//! whatever is sent to it, clients are served on.
//!
//! Over 500 lines, as nine tests that need nothing of each other share the few helpers on top.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use broker::requests::{self, errors_of, fetch};
use broker::{Client, Harness, HarnessOptions, admin, batch};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::ShardId;
use coreline::io::uring::{Fault, FaultHook, ShardFaults};
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::produce::ProduceResponse;
use serde_json::Value;

const PRODUCES: u64 = 40;
const FETCHES: u64 = 15;

fn harness(shards: usize) -> Harness {
    let mut harness = Harness::start(HarnessOptions {
        shards,
        has_admin: true,
        ..HarnessOptions::default()
    });
    harness.create_topic("t", 4);
    harness
}

fn produce(client: &mut Client, partition: i32) {
    let request = requests::produce("t", -1, [(partition, batch(1, 100))]);
    let response: ProduceResponse = client.ask(&request, 9);
    assert_eq!(errors_of(&response), [ErrorCode::NONE]);
}

/// Produces and fetches over several connections, so that every shard has some.
fn work(harness: &Harness) {
    let mut clients: Vec<Client> = (0..5).map(|_| harness.connect()).collect();
    for number in 0..PRODUCES as usize {
        produce(&mut clients[number % 5], number as i32 % 4);
    }
    for number in 0..FETCHES as usize {
        let request = fetch("t", &[(number as i32 % 4, 0)]);
        let _: FetchResponse = clients[number % 5].ask(&request, 12);
    }
}

fn count(told: &Value, window: &str, name: &str) -> u64 {
    let all = told["windows"][window].as_array().unwrap();
    let mut found = all.iter().filter(|one| one["name"] == name);
    found.next().map_or(0, |one| one["count"].as_u64().unwrap())
}

/// The page's numbers once they tell of all the work.
fn settled(address: SocketAddr, path: &str) -> Value {
    admin::until(address, path, |body| {
        let told: Value = serde_json::from_str(body).expect("JSON");
        let is_all = count(&told, "start", "Produce") >= PRODUCES
            && count(&told, "start", "Fetch") >= FETCHES;
        is_all.then_some(told)
    })
}

#[test]
fn latencies_count_what_was_sent_in_every_form() {
    let harness = harness(2);
    work(&harness);
    let address = harness.admin();
    let told = settled(address, "/latency.json");
    for window in ["start", "minute"] {
        assert_eq!(count(&told, window, "Produce"), PRODUCES, "{told}");
        assert_eq!(count(&told, window, "Fetch"), FETCHES, "{told}");
        assert_eq!(count(&told, window, "CreateTopics"), 1, "{told}");
    }
    assert_eq!(told["shards"].as_array().unwrap().len(), 2);
    let by_shard = [0, 1].map(|shard| {
        let told = admin::text(address, &format!("/latency.json?shard={shard}"));
        count(&serde_json::from_str(&told).unwrap(), "start", "Produce")
    });
    assert_eq!(by_shard.iter().sum::<u64>(), PRODUCES, "{by_shard:?}");

    let table = admin::text(address, "/latency.txt");
    let row = |name: &str| {
        let mut rows = table.lines().map(|line| line.split_whitespace());
        let mut row = rows.find(|row| row.clone().next() == Some(name)).unwrap();
        row.nth(1).unwrap().parse::<u64>().unwrap()
    };
    assert_eq!((row("Produce"), row("Fetch")), (PRODUCES, FETCHES));
    let curve = admin::text(address, "/latency.hgrm?api=Fetch");
    let total = format!("Total count    = {FETCHES:>12}]");
    assert!(curve.contains(&total), "{curve}");
    assert_eq!(
        admin::get(address, "/latency.hgrm?api=Nothing")
            .unwrap()
            .status,
        404
    );
    assert_eq!(
        admin::get(address, "/latency.json?shard=2").unwrap().status,
        400
    );

    let page = admin::get(address, "/latency").unwrap();
    assert!(page.head.contains("text/html"), "{}", page.head);
    let outside = ["http://", "https://", "src=", "@import", "<link"];
    let found = outside.iter().find(|text| {
        // The name of SVG's namespace is not asked for.
        page.body
            .replace("http://www.w3.org/2000/svg", "")
            .contains(**text)
    });
    assert_eq!(found, None, "the page needs nothing from elsewhere");
}

#[test]
fn metrics_parse_and_tell_what_was_done() {
    let mut harness = harness(2);
    let other = harness.create_topic("other", 1);
    work(&harness);
    settled(harness.admin(), "/latency.json");
    let topic_sum = |series: &std::collections::BTreeMap<String, f64>, name: &str| {
        series[&format!("kafka_server_brokertopicmetrics_{name}{{topic=\"t\"}}")]
    };
    let text = admin::text(harness.admin(), "/metrics");
    let series = admin::series(&text);
    let expected = [
        ("kafka_server_kafkaserver_brokerstate", 3.0),
        ("kafka_server_replicamanager_partitioncount", 5.0),
        ("kafka_server_replicamanager_leadercount", 5.0),
        ("kafka_server_replicamanager_offlinereplicacount", 0.0),
        ("kafka_controller_kafkacontroller_globaltopiccount", 2.0),
        (
            "kafka_network_requestmetrics_requests_total{request=\"Produce\"}",
            PRODUCES as f64,
        ),
        (
            "kafka_network_requestmetrics_totaltimems_count{request=\"FetchConsumer\"}",
            15.0,
        ),
        (
            "kafka_server_brokertopicmetrics_messagesin_total",
            PRODUCES as f64,
        ),
        (
            "kafka_log_log_logendoffset{topic=\"t\",partition=\"3\"}",
            10.0,
        ),
        (
            "kafka_log_log_logendoffset{topic=\"other\",partition=\"0\"}",
            0.0,
        ),
        ("kafka_server_raftmetrics_current_leader", 1.0),
    ];
    for (name, value) in expected {
        assert_eq!(series.get(name), Some(&value), "{name} in {text}");
    }
    assert_eq!(topic_sum(&series, "messagesin_total"), PRODUCES as f64);
    assert_eq!(
        topic_sum(&series, "totalproducerequests_total"),
        PRODUCES as f64
    );
    assert!(topic_sum(&series, "bytesin_total") > PRODUCES as f64 * 100.0);
    assert!(topic_sum(&series, "bytesout_total") > 0.0);
    for number in 0..2 {
        let busy = series[&format!("coreline_shard_busy_ratio{{shard=\"{number}\"}}")];
        assert!((0.0..=1.0).contains(&busy), "{busy}");
    }
    assert!(series["process_open_fds"] > 0.0);
    let of_shards = |name: &str, more: &str| -> f64 {
        let one = |shard| series[&format!("coreline_{name}{{shard=\"{shard}\"{more}}}")];
        [0, 1].map(one).iter().sum()
    };
    for budget in ["journal", "cache", "requests", "connections"] {
        let label = format!(",budget=\"{budget}\"");
        let (used, size) = ("budget_used_bytes", "budget_size_bytes");
        assert!(
            of_shards(used, &label) <= of_shards(size, &label),
            "{budget}"
        );
        assert!(of_shards(size, &label) > 0.0, "{budget}");
    }
    let bytes = topic_sum(&series, "bytesin_total");
    let journal = ",budget=\"journal\"";
    assert!(of_shards("budget_used_bytes", journal) > bytes, "{text}");
    assert!(of_shards("budget_used_bytes", ",budget=\"cache\"") > 0.0);
    // Requests came one after the other: each its own write.
    let writes = of_shards("journal_write_bytes_count", "");
    assert!(writes >= PRODUCES as f64, "{writes}");
    assert_eq!(
        of_shards("journal_write_bytes_bucket", ",le=\"+Inf\""),
        writes
    );
    assert_eq!(
        of_shards("journal_write_bytes_bucket", ",le=\"16777216\""),
        writes
    );
    assert!(of_shards("journal_write_bytes_sum", "") > bytes);
    assert!(of_shards("flushes_total", "") >= PRODUCES as f64);
    // Half of the partitions are the other shard's.
    assert!(of_shards("hops_total", "") > 0.0);
    assert!(of_shards("cache_hit_bytes_total", "") > 0.0);
    assert!(of_shards("shard_partitions", "") == 5.0);
    assert!(of_shards("shard_connections", "") >= 0.0);
    // A deleted topic has no series of its own, once partitions are asked for again.
    harness.delete_topic(other);
    admin::until(harness.admin(), "/metrics", |text| {
        (!text.contains("topic=\"other\"")).then_some(())
    });
}

fn told(address: SocketAddr, name: &str) -> f64 {
    let text = admin::text(address, "/metrics");
    *admin::series(&text)
        .get(name)
        .unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn a_log_that_does_not_open_is_an_offline_replica() {
    let options = HarnessOptions {
        shards: 2,
        has_admin: true,
        ..HarnessOptions::default()
    };
    let mut harness = harness(2);
    harness.restart_after(&options, |folder| {
        // A mark that cannot be read: nothing is known of the log.
        std::fs::create_dir(folder.join("t-0").join("coreline.damage")).unwrap();
    });
    let address = harness.admin();
    for (name, value) in [
        ("kafka_server_replicamanager_offlinereplicacount", 1.0),
        (
            "kafka_controller_kafkacontroller_offlinepartitionscount",
            1.0,
        ),
        ("kafka_server_replicamanager_partitioncount", 4.0),
        ("kafka_controller_kafkacontroller_globalpartitioncount", 4.0),
        ("kafka_controller_kafkacontroller_globaltopiccount", 1.0),
        ("kafka_server_replicamanager_leadercount", 3.0),
        ("kafka_log_logmanager_offlinelogdirectorycount", 0.0),
    ] {
        assert_eq!(told(address, name), value, "{name}");
    }
}

#[test]
fn a_failed_write_makes_its_directorys_replicas_offline() {
    let is_failing = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&is_failing);
    let faults = ShardFaults::new(move |shard| {
        let fails = Arc::clone(&fails);
        FaultHook::new(move |point| {
            let is_hit = shard == ShardId(1) && point.is_stable && fails.load(Ordering::SeqCst);
            // 5 is EIO.
            if is_hit { Fault::Fail(5) } else { Fault::None }
        })
    });
    let options = HarnessOptions {
        shards: 2,
        has_admin: true,
        faults: Some(faults),
        ..HarnessOptions::default()
    };
    let harness_told = options.told.clone();
    let mut harness = Harness::start(options);
    harness.create_topic("t", 5);
    let address = harness.admin();
    let offline = "kafka_server_replicamanager_offlinereplicacount";
    assert_eq!(told(address, offline), 0.0);
    is_failing.store(true, Ordering::SeqCst);
    let batches = (0..5).map(|partition| (partition, batch(1, 100)));
    let request = requests::produce("t", 1, batches);
    let answer: ProduceResponse = harness.connect().ask(&request, 9);
    let failed = errors_of(&answer)
        .iter()
        .filter(|code| **code != ErrorCode::NONE)
        .count();
    // The other shard may have been quicker than the news.
    assert!((2..=5).contains(&failed), "{answer:?}");
    let line = |name: &'static str, value: u32| {
        move |body: &str| {
            body.lines()
                .any(|line| line == format!("{name} {value}"))
                .then_some(())
        }
    };
    admin::until(address, "/metrics", line(offline, 5));
    let count = "kafka_log_logmanager_offlinelogdirectorycount";
    admin::until(address, "/metrics", line(count, 1));
    let ready = admin::get(address, "/readyz").unwrap();
    assert_eq!(ready.status, 503, "{ready:?}");
    assert_eq!(ready.body.matches(" is offline: ").count(), 1, "{ready:?}");
    assert_eq!(harness_told.reasons().len(), 1, "it cannot go on");
    assert_eq!(admin::text(address, "/healthz"), "ok\n");
    assert!(!harness.stop().is_clean);
}

#[test]
fn it_says_how_far_the_broker_is() {
    let mut harness = harness(1);
    let address = harness.admin();
    assert_eq!(admin::text(address, "/healthz"), "ok\n");
    assert_eq!(admin::text(address, "/readyz"), "ok\n");
    let head = admin::exchange(
        address,
        b"HEAD /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    let head = head.unwrap();
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let is_stopped = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&is_stopped);
    let asking = std::thread::spawn(move || {
        let mut answers = Vec::new();
        while !stopped.load(Ordering::Acquire) {
            // The port closes with the process or the broker's end.
            if let Ok(answer) = admin::get(address, "/readyz") {
                answers.push((answer.status, answer.body));
            }
        }
        answers
    });
    assert!(harness.stop().is_clean);
    is_stopped.store(true, Ordering::Release);
    let answers = asking.join().unwrap();
    for (status, body) in &answers {
        let fits = matches!(
            (*status, body.as_str()),
            (200, "ok\n") | (503, "stopping\n")
        );
        // A connection that the end of the thread cut off.
        assert!(fits || *status == 0, "{answers:?}");
    }
    let states: Vec<u16> = answers
        .iter()
        .map(|(status, _)| *status)
        .filter(|s| *s > 0)
        .collect();
    assert!(
        states.is_sorted(),
        "it never becomes ready again: {states:?}"
    );
    assert!(
        admin::get(address, "/healthz").is_err(),
        "the port is closed"
    );
}

#[test]
fn bad_requests_are_answered_and_clients_served_on() {
    let harness = harness(1);
    let address = harness.admin();
    let status = |request: &[u8]| admin::exchange(address, request).map(|answer| answer.status);
    assert_eq!(status(b"GET /nothing HTTP/1.0\r\n\r\n").unwrap(), 404);
    let post = b"POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc";
    let refused = admin::exchange(address, post).unwrap();
    assert_eq!(refused.status, 405);
    assert!(
        refused.head.contains("allow: GET, HEAD"),
        "{}",
        refused.head
    );
    assert_eq!(status(b"BREW /latency HTTP/1.0\r\n\r\n").unwrap(), 405);
    assert_eq!(status(b"\x00\x01\x02\r\n\r\n").unwrap(), 400);
    assert_eq!(status(b"GET /healthz HTTP/9.9\r\n\r\n").unwrap(), 400);
    // A head at the limit, and heads past it: in one field, in many, and in the path.
    let with_field = |bytes: usize| {
        let head = "GET /healthz HTTP/1.0\r\nX: ";
        format!("{head}{}\r\n\r\n", "x".repeat(bytes - head.len() - 4))
    };
    assert_eq!(status(with_field(16 * 1024).as_bytes()).unwrap(), 200);
    // The rest of what was sent may reset the connection before its answer is read.
    let is_refused = |request: &[u8]| !matches!(status(request), Ok(200));
    assert!(is_refused(with_field(16 * 1024 + 1).as_bytes()));
    assert!(is_refused(with_field(1 << 20).as_bytes()));
    assert!(is_refused(
        format!("GET /{} HTTP/1.0\r\n\r\n", "a".repeat(1 << 20)).as_bytes()
    ));
    let fields = "A: b\r\n".repeat(2_000);
    assert!(is_refused(
        format!("GET /healthz HTTP/1.0\r\n{fields}\r\n").as_bytes()
    ));
    assert_eq!(admin::text(address, "/healthz"), "ok\n");
    produce(&mut harness.connect(), 0);
}

#[test]
fn slow_clients_of_it_hold_up_nobody() {
    let harness = harness(1);
    let address = harness.admin();
    let half = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    let began = Instant::now();
    let mut first = half(b"GET /healthz HT");
    // More than it keeps: some say nothing, some half a head, some never read.
    let never_read = "GET /latency HTTP/1.1\r\nHost: a\r\n\r\n".repeat(400);
    let kinds: [&[u8]; 3] = [b"", b"GET /metr", never_read.as_bytes()];
    let held: Vec<TcpStream> = (0..30).map(|number| half(kinds[number % 3])).collect();
    let mut client = harness.connect();
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let began = Instant::now();
        produce(&mut client, 0);
        slowest = slowest.max(began.elapsed());
    }
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    assert_eq!(admin::text(address, "/healthz"), "ok\n");
    first
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest);
    let waited = began.elapsed();
    assert!(waited > Duration::from_secs(4), "{waited:?}: {rest:?}");
    // With all places taken a further one is answered at once.
    let more: Vec<TcpStream> = (0..70).map(|_| half(b"GET /")).collect();
    let began = Instant::now();
    assert_eq!(admin::text(address, "/healthz"), "ok\n");
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    drop((held, more));
}

#[test]
fn the_command_prints_the_table() {
    let harness = harness(2);
    work(&harness);
    settled(harness.admin(), "/latency.json");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coreline"));
        let done = command.arg("latency").args(words).output().unwrap();
        let text = [done.stdout, done.stderr].concat();
        (
            done.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    let address = harness.admin().to_string();
    let (is_good, table) = run(&["--admin", &address, "--minute"]);
    assert!(is_good, "{table}");
    for part in [
        "Produce",
        "p99.99",
        "flush",
        "where the slowest 0.1 %",
        "shard 1",
    ] {
        assert!(table.contains(part), "no {part} in {table}");
    }
    let (is_good, table) = run(&["--admin", &address, "--shard", "1"]);
    assert!(is_good && !table.contains("shard 0"), "{table}");
    let (is_good, refusal) = run(&["--admin", &address, "--shard", "2"]);
    assert!(!is_good && refusal.contains("they are 0 to 1"), "{refusal}");
    let mut watching = Command::new(env!("CARGO_BIN_EXE_coreline"))
        .args(["latency", "--watch", "--admin", &address])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A table has two heads; the second table comes by itself. Only a terminal is cleared.
    let mut told = Vec::new();
    let mut out = watching.stdout.take().unwrap();
    while told.windows(6).filter(|bytes| *bytes == b"p99.99").count() < 4 {
        let mut some = [0; 4_096];
        let count = out.read(&mut some).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&told));
        told.extend_from_slice(&some[..count]);
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
    assert!(!told.contains(&0x1b), "{}", String::from_utf8_lossy(&told));
    let nobody = admin::bind().local_addr().unwrap().to_string();
    let (is_good, refusal) = run(&["--admin", &nobody]);
    assert!(
        !is_good && refusal.contains("coreline.admin.listener"),
        "{refusal}"
    );
}

#[test]
fn the_interval_log_adds_up_to_what_was_sent() {
    use base64::Engine as _;
    use hdrhistogram::serialization::Deserializer;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latency.hlog");
    let mut harness = Harness::start(HarnessOptions {
        shards: 2,
        latency_log: Some(path.clone()),
        ..HarnessOptions::default()
    });
    harness.create_topic("t", 4);
    work(&harness);
    assert!(harness.stop().is_clean);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("#[Histogram log format version 1.3]"),
        "{text}"
    );
    let mut counts = std::collections::BTreeMap::new();
    let is_row = |line: &&str| line.starts_with("Tag=");
    for row in text.lines().filter(is_row) {
        let fields: Vec<&str> = row.split(',').collect();
        assert_eq!(fields.len(), 5, "{row}");
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(fields[4])
            .unwrap();
        let histogram = Deserializer::new()
            .deserialize::<u64, _>(&mut &*bytes)
            .unwrap();
        *counts.entry(fields[0].to_owned()).or_insert(0) += histogram.len();
        let max: f64 = fields[3].parse().unwrap();
        assert!((histogram.max() as f64 / 1e6 - max).abs() < 0.001, "{row}");
    }
    assert_eq!(counts["Tag=Produce"], PRODUCES, "{counts:?}");
    assert_eq!(counts["Tag=Fetch"], FETCHES, "{counts:?}");
    assert!(counts["Tag=stage:flush"] > 0, "{counts:?}");
}
