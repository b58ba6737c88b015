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
const SPAN: Duration = Duration::from_secs(3);
/// How often that is tried.
const ATTEMPTS: usize = 3;

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

/// Produces while somebody scrapes far more often than any Prometheus; answers the times of both
/// and the longest text.
fn produce_beside_scrapes(harness: &Harness) -> (Vec<Duration>, Vec<Duration>, usize) {
    let address = harness.admin();
    let is_done = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&is_done);
    let scraping = std::thread::spawn(move || {
        let (mut times, mut longest) = (Vec::new(), 0);
        while !done.load(Ordering::Acquire) {
            let began = Instant::now();
            longest = longest.max(admin::text(address, "/metrics").len());
            times.push(began.elapsed());
            std::thread::sleep(Duration::from_millis(200));
        }
        (times, longest)
    });
    let produced = produce_for(harness, SPAN);
    is_done.store(true, Ordering::Release);
    let (mut scrapes, longest) = scraping.join().unwrap();
    scrapes.sort();
    (produced, scrapes, longest)
}

#[test]
fn scraping_two_thousand_partitions_holds_up_no_produce() {
    let mut harness = Harness::start(HarnessOptions {
        shards: 2,
        has_admin: true,
        ..HarnessOptions::default()
    });
    harness.create_topic("wide", PARTITIONS);
    produce_for(&harness, Duration::from_secs(1));
    // A neighbour's burst holds up one attempt; a scrape that did would hold up each.
    let is_held_up = (0..ATTEMPTS).all(|_| {
        let quiet = produce_for(&harness, SPAN);
        let (scraped, scrapes, longest) = produce_beside_scrapes(&harness);
        assert!(scrapes.len() >= 5, "{scrapes:?}");
        assert!(longest < 4 << 20, "{longest}");
        let three = |times: &[Duration]| [0.5, 0.99, 1.0].map(|quantile| at(times, quantile));
        let (without, with) = (three(&quiet), three(&scraped));
        println!(
            "{PARTITIONS} partitions, {} scrapes of {} KiB, slowest {:?}; produce p50, p99, max: \
             {without:?} without, {with:?} with them",
            scrapes.len(),
            longest >> 10,
            at(&scrapes, 1.0),
        );
        // Room for a loaded machine.
        let bound = |time: Duration| time * 3 + Duration::from_millis(100);
        with[1] >= bound(without[1]) || with[2] >= bound(without[2])
    });
    assert!(!is_held_up, "{ATTEMPTS} times");
    let series = admin::series(&admin::text(harness.admin(), "/metrics"));
    let sizes = series
        .keys()
        .filter(|name| name.starts_with("kafka_log_log_size{"));
    assert_eq!(sizes.count(), PARTITIONS as usize);
}
