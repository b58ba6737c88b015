//! Scraping a broker of 2,000 partitions makes nobody wait: shards tell a few partitions a turn, and
//! the text is made on the admin port's own thread.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use broker::requests::{self, errors_of};
use broker::{Harness, HarnessOptions, admin, batch};
use coreline::base::error_code::ErrorCode;
use coreline::wire::messages::produce::ProduceResponse;

const PARTITIONS: i32 = 2_000;
/// How long producing is timed, with and without scrapes.
const SPAN: Duration = Duration::from_secs(4);

/// Times of produces one after the other, sorted.
fn produce_for(harness: &Harness, span: Duration) -> Vec<Duration> {
    let mut client = harness.connect();
    let began = Instant::now();
    let mut times = Vec::new();
    while began.elapsed() < span {
        let partition = times.len() as i32 * 7 % PARTITIONS;
        let sent = Instant::now();
        let request = requests::produce("wide", -1, [(partition, batch(1, 100))]);
        let answer: ProduceResponse = client.ask(&request, 9);
        assert_eq!(errors_of(&answer), [ErrorCode::NONE]);
        times.push(sent.elapsed());
    }
    times.sort();
    times
}

fn at(times: &[Duration], quantile: f64) -> Duration {
    let place = (times.len() as f64 * quantile) as usize;
    times[place.min(times.len() - 1)]
}

#[test]
fn scraping_two_thousand_partitions_holds_up_no_produce() {
    let mut harness = Harness::start(HarnessOptions {
        shards: 2,
        has_admin: true,
        ..HarnessOptions::default()
    });
    harness.create_topic("wide", PARTITIONS);
    let address = harness.admin();
    produce_for(&harness, Duration::from_secs(1));
    let quiet = produce_for(&harness, SPAN);
    let is_done = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&is_done);
    let scraping = std::thread::spawn(move || {
        let mut scrapes = Vec::new();
        while !done.load(Ordering::Acquire) {
            let began = Instant::now();
            let text = admin::text(address, "/metrics");
            scrapes.push((began.elapsed(), text.len()));
            // Far more often than any Prometheus.
            std::thread::sleep(Duration::from_millis(200));
        }
        scrapes
    });
    let scraped = produce_for(&harness, SPAN);
    is_done.store(true, Ordering::Release);
    let scrapes = scraping.join().unwrap();
    let series = admin::series(&admin::text(address, "/metrics"));
    let sizes = series
        .keys()
        .filter(|name| name.starts_with("kafka_log_log_size{"));
    assert_eq!(sizes.count(), PARTITIONS as usize);
    assert!(scrapes.len() >= 5, "{scrapes:?}");
    let slowest = scrapes.iter().max().unwrap();
    assert!(slowest.1 < 4 << 20, "{slowest:?}");
    println!(
        "{PARTITIONS} partitions, {} scrapes of {} KiB, slowest {:?}; produce p50, p99, max: \
         {:?} {:?} {:?} without, {:?} {:?} {:?} with them",
        scrapes.len(),
        slowest.1 >> 10,
        slowest.0,
        at(&quiet, 0.5),
        at(&quiet, 0.99),
        at(&quiet, 1.0),
        at(&scraped, 0.5),
        at(&scraped, 0.99),
        at(&scraped, 1.0),
    );
    // Room for a loaded machine.
    for quantile in [0.99, 1.0] {
        let bound = at(&quiet, quantile) * 3 + Duration::from_millis(100);
        assert!(at(&scraped, quantile) < bound, "{quantile}: {bound:?}");
    }
}
