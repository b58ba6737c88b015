//! A disk without room and a disk that is slow, put into whole brokers: producers are told at once or
//! in their own time, everything else goes on, and nothing acknowledged is lost.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use broker::requests::{self, answers, bytes_of, errors_of};
use broker::{Client, Harness, HarnessOptions, admin, batch};
use coreline::base::error_code::ErrorCode;
use coreline::io::uring::{Fault, FaultHook, FaultPoint, OperationKind, ShardFaults};
use coreline::wire::messages::fetch::FetchResponse;
use coreline::wire::messages::list_offsets::ListOffsetsResponse;
use coreline::wire::messages::metadata::{MetadataRequest, MetadataResponse};
use coreline::wire::messages::produce::ProduceResponse;

const STORAGE: ErrorCode = ErrorCode::KAFKA_STORAGE_ERROR;
const TIMED_OUT: ErrorCode = ErrorCode::REQUEST_TIMED_OUT;
const NONE: ErrorCode = ErrorCode::NONE;
const KIB: usize = 1024;
/// errno, "No space left on device".
const ENOSPC: i32 = 28;

/// What is wrong with the disk.
#[derive(Debug, Default)]
struct Disk {
    is_full: AtomicBool,
    /// Milliseconds that each write or flush enters later.
    delay_ms: AtomicU64,
    /// Bytes a second that it takes; 0: as many as come.
    bytes_per_second: AtomicU64,
}

impl Disk {
    fn faults(self: &Arc<Self>) -> ShardFaults {
        let disk = Arc::clone(self);
        ShardFaults::new(move |_| {
            let disk = Arc::clone(&disk);
            let mut free_at = Instant::now();
            FaultHook::new(move |point| disk.decide(point, &mut free_at))
        })
    }

    fn decide(&self, point: FaultPoint, free_at: &mut Instant) -> Fault {
        let is_full = self.is_full.load(Ordering::SeqCst);
        if point.kind == OperationKind::Preallocate && is_full {
            return Fault::Fail(ENOSPC);
        }
        if !matches!(point.kind, OperationKind::Write | OperationKind::Sync) {
            return Fault::None;
        }
        let mut delay = Duration::from_millis(self.delay_ms.load(Ordering::SeqCst));
        let rate = self.bytes_per_second.load(Ordering::SeqCst);
        if let Some(micros) = (point.len as u64 * 1_000_000).checked_div(rate) {
            let now = Instant::now();
            *free_at = (*free_at).max(now);
            *free_at += Duration::from_micros(micros);
            delay += *free_at - now;
        }
        match delay.is_zero() {
            true => Fault::None,
            false => Fault::Delay(delay),
        }
    }
}

fn start(disk: &Arc<Disk>) -> Harness {
    let mut harness = Harness::start(HarnessOptions {
        has_admin: true,
        faults: Some(disk.faults()),
        ..HarnessOptions::default()
    });
    harness.create_topic("t", 1);
    harness
}

/// Produces one batch; the code, and how long the answer took.
fn produce(client: &mut Client, bytes: usize, timeout_ms: i32) -> (ErrorCode, Duration) {
    let mut request = requests::produce("t", -1, [(0, batch(1, bytes))]);
    request.timeout_ms = timeout_ms;
    let began = Instant::now();
    let response: ProduceResponse = client.ask(&request, 9);
    (errors_of(&response)[0], began.elapsed())
}

/// Records that can be read from the start on.
fn readable(client: &mut Client) -> i64 {
    let response: ListOffsetsResponse = client.ask(&requests::list_offsets("t", 0, -1), 7);
    let end = response.topics[0].partitions[0].offset.0;
    let mut offset = 0;
    while offset < end {
        let response: FetchResponse = client.ask(&requests::fetch("t", &[(0, offset)]), 12);
        let data = answers(&response)[0];
        assert_eq!(
            (data.error_code, bytes_of(data) > 0),
            (NONE, true),
            "at {offset}"
        );
        let records = data.records.as_ref().unwrap();
        let records = records.slices.concat();
        let mut rest = &records[..];
        while let Ok(header) = coreline::wire::record_batch::BatchHeader::parse(rest)
            && rest.len() >= header.total_bytes()
        {
            let (whole, after) = rest.split_at(header.total_bytes());
            coreline::wire::record_batch::verify_crc(whole).unwrap();
            assert_eq!(header.base_offset.0, offset);
            offset = header.next_offset().0;
            rest = after;
        }
    }
    end
}

fn metric(harness: &Harness, name: &str) -> f64 {
    let text = admin::text(harness.admin(), "/metrics");
    let series = admin::series(&text);
    let of_name = series
        .iter()
        .filter(|(key, _)| key.split('{').next() == Some(name));
    of_name.map(|(_, value)| value).sum()
}

#[test]
fn a_full_disk_refuses_producers_at_once_and_takes_them_again_within_five_seconds() {
    let disk = Arc::new(Disk::default());
    let mut harness = start(&disk);
    let other = harness.create_topic("other", 1);
    let mut client = harness.connect();
    let mut acknowledged = 0;
    for _ in 0..4 {
        assert_eq!(produce(&mut client, 100 * KIB, 5_000).0, NONE);
        acknowledged += 1;
    }
    disk.is_full.store(true, Ordering::SeqCst);
    // What is reserved already is taken; then each is refused, and at once.
    let mut refused = 0;
    while refused < 5 {
        let (code, took) = produce(&mut client, 100 * KIB, 30_000);
        match code {
            NONE => acknowledged += 1,
            _ => {
                assert_eq!(code, STORAGE);
                assert!(took < Duration::from_secs(2), "{took:?}");
                refused += 1;
            }
        }
        assert!(acknowledged < 10_000, "it takes all");
    }
    assert_eq!(readable(&mut client), acknowledged);
    assert!(metric(&harness, "coreline_appends_refused_for_disk_total") >= 5.0);
    harness.delete_topic(other);
    disk.is_full.store(false, Ordering::SeqCst);
    let began = Instant::now();
    while produce(&mut client, 100 * KIB, 5_000).0 != NONE {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "no room is noticed"
        );
    }
    assert_eq!(readable(&mut client), acknowledged + 1);
}

#[test]
fn below_the_reserve_producers_alone_are_refused() {
    let mut harness = Harness::start(HarnessOptions {
        has_admin: true,
        set: |config| config.disk_reserve_bytes = Some(u64::MAX),
        ..HarnessOptions::default()
    });
    let id = harness.create_topic("t", 1);
    let mut client = harness.connect();
    for _ in 0..3 {
        let (code, took) = produce(&mut client, 100, 30_000);
        assert_eq!(code, STORAGE);
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
    assert_eq!(readable(&mut client), 0);
    assert_eq!(metric(&harness, "coreline_disk_refuses_appends"), 1.0);
    assert_eq!(metric(&harness, "coreline_disk_low"), 1.0);
    assert!(metric(&harness, "coreline_disk_free_bytes") > 0.0);
    let ready = admin::text(harness.admin(), "/readyz");
    assert!(ready.contains("producers are refused"), "{ready}");
    harness.delete_topic(id);
    harness.create_topic("u", 3);
}

/// Answers of the metadata that come while the disk does not: nobody else waits for it.
fn assert_answers(harness: &Harness) {
    let began = Instant::now();
    let response: MetadataResponse = harness.connect().ask(&MetadataRequest::default(), 12);
    assert_eq!(response.brokers.len(), 1);
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_disk_that_stalls_makes_its_producers_wait_and_nobody_else() {
    const STALL: Duration = Duration::from_secs(6);
    let disk = Arc::new(Disk::default());
    let harness = start(&disk);
    let mut client = harness.connect();
    assert_eq!(produce(&mut client, 1_000, 5_000).0, NONE);
    disk.delay_ms
        .store(STALL.as_millis() as u64, Ordering::SeqCst);
    let mut waiting = harness.connect();
    let producer = std::thread::spawn(move || produce(&mut waiting, 1_000, 1_000));
    std::thread::sleep(Duration::from_millis(500));
    disk.delay_ms.store(0, Ordering::SeqCst);
    // Honest while it lasts: not ready, and alive; and nobody else waits.
    let mut was_told = false;
    while !producer.is_finished() {
        assert_answers(&harness);
        let ready = admin::get(harness.admin(), "/readyz").unwrap();
        was_told |= ready.status == 503 && ready.body.contains("for the disk");
        assert_eq!(admin::get(harness.admin(), "/healthz").unwrap().status, 200);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(was_told, "/readyz");
    // In order when its disk stood still: told as what it is, a timeout would have it sent twice.
    let (code, took) = producer.join().expect("no hang");
    assert_eq!(code, NONE);
    assert!(took > STALL / 2 && took < STALL * 3, "{took:?}");
    assert_eq!(produce(&mut client, 1_000, 20_000).0, NONE);
    let began = Instant::now();
    while admin::get(harness.admin(), "/readyz").unwrap().status != 200 {
        assert!(began.elapsed() < STALL * 10, "not ready again");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(readable(&mut client), 3);
}

#[test]
fn a_disk_of_two_megabytes_a_second_keeps_memory_within_its_bounds_and_nobody_hangs() {
    const PRODUCERS: usize = 4;
    const TIMEOUT_MS: i32 = 1_000;
    let disk = Arc::new(Disk::default());
    let harness = start(&disk);
    disk.bytes_per_second.store(2_000_000, Ordering::SeqCst);
    let until = Instant::now() + Duration::from_secs(6);
    let address = harness.address;
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                let (mut acknowledged, mut timed_out) = (0, 0);
                while Instant::now() < until {
                    // Several at a time, as a producer does.
                    let mut request = requests::produce("t", -1, [(0, batch(1, 900 * KIB))]);
                    request.timeout_ms = TIMEOUT_MS;
                    for _ in 0..4 {
                        client.send(&request, 9);
                    }
                    for _ in 0..4 {
                        let (_, response) = client.receive::<ProduceResponse>(9);
                        match errors_of(&response)[0] {
                            NONE => acknowledged += 1,
                            TIMED_OUT => timed_out += 1,
                            other => panic!("{other:?}"),
                        }
                    }
                }
                (acknowledged, timed_out)
            })
        })
        .collect();
    while Instant::now() < until {
        assert_answers(&harness);
        let text = admin::text(harness.admin(), "/metrics");
        let series = admin::series(&text);
        for (key, used) in &series {
            if let Some(labels) = key.strip_prefix("coreline_budget_used_bytes") {
                let size = series[&format!("coreline_budget_size_bytes{labels}")];
                assert!(*used <= size, "{labels}: {used} of {size}");
            }
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    let outcomes: Vec<(i64, i64)> = producers
        .into_iter()
        .map(|producer| producer.join().expect("no hang"))
        .collect();
    let acknowledged: i64 = outcomes.iter().map(|outcome| outcome.0).sum();
    let timed_out: i64 = outcomes.iter().map(|outcome| outcome.1).sum();
    assert!(timed_out > 0, "the disk is not slow: {outcomes:?}");
    disk.bytes_per_second.store(0, Ordering::SeqCst);
    let mut client = harness.connect();
    assert_eq!(produce(&mut client, 1_000, 20_000).0, NONE);
    assert!(readable(&mut client) > acknowledged);
}
