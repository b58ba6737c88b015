//! A native load generator: what does a broker core do, and how late does it answer?
//!
//!     cargo bench --bench load -- produce --bootstrap 127.0.0.1:9092 --broker-pid PID
//!     cargo bench --bench load -- fetch   --bootstrap 127.0.0.1:9092 --broker-pid PID
//!     cargo bench --bench load -- hop-fetch --bootstrap 127.0.0.1:9092 --broker-pid PID
//!
//! `--interval-us` paces each connection's requests open-loop and takes latency from the intended
//! send time; without it each connection keeps `--depth` requests in flight. Runs against any
//! broker that speaks Produce v9 and Fetch v12. Prints one line of `name=value` figures.

mod hop;
mod protocol;
mod work;

use std::time::{Duration, Instant};

use clap::Parser;
use hdrhistogram::Histogram;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    Produce,
    Fetch,
    /// Produce requests by turns to two partitions, which two shards own.
    HopProduce,
    /// The same with fetches.
    HopFetch,
}

#[derive(Clone, Debug, Parser)]
#[command(about = "A native load generator for brokers of Kafka's protocol")]
pub struct Arguments {
    mode: Mode,
    #[arg(long, default_value = "127.0.0.1:9092")]
    bootstrap: String,
    #[arg(long, default_value = "load")]
    topic: String,
    /// Partitions, spread over the connections; the topic is created where it is missing.
    #[arg(long, default_value_t = 1)]
    partitions: i32,
    #[arg(long, default_value_t = 100)]
    record_bytes: usize,
    #[arg(long, default_value_t = 16_384)]
    batch_bytes: usize,
    #[arg(long, default_value_t = 4)]
    connections: usize,
    #[arg(long, default_value_t = 5)]
    depth: usize,
    #[arg(long, default_value_t = 1, allow_hyphen_values = true)]
    acks: i16,
    /// Open loop: one request a connection every so many microseconds.
    #[arg(long)]
    interval_us: Option<u64>,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 1.0)]
    warmup_seconds: f64,
    /// With one connection, one partition and a new topic: `segment.bytes` of that topic, so that
    /// the acknowledgements around each roll are reported apart.
    #[arg(long)]
    segment_bytes: Option<u64>,
    /// Records have keys, so many; every batch is another one then.
    #[arg(long)]
    keys: Option<u64>,
    /// Most bytes that a fetch asks for, and 1 MiB of one partition.
    #[arg(long, default_value_t = 50 << 20)]
    fetch_bytes: i32,
    /// Process whose CPU time is charged.
    #[arg(long)]
    broker_pid: Option<u32>,
    /// Given by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What one connection did after the warm-up.
pub struct Done {
    pub requests: u64,
    pub records: u64,
    pub bytes: u64,
    pub latency_us: Histogram<u64>,
    /// The latest acknowledgement around each roll.
    pub rolls_us: Vec<u64>,
}

impl Default for Done {
    fn default() -> Self {
        Self::new()
    }
}

impl Done {
    pub fn new() -> Self {
        let latency_us = Histogram::new_with_bounds(1, 600_000_000, 3).expect("fixed bounds");
        Self {
            requests: 0,
            records: 0,
            bytes: 0,
            latency_us,
            rolls_us: Vec::new(),
        }
    }
}

/// The measured stretch: work before `start` warms up, work after `end` stops.
#[derive(Clone, Copy)]
pub struct Window {
    pub start: Instant,
    pub end: Instant,
}

/// User and system time of a process, ended threads included, in microseconds.
fn cpu_us(pid: Option<u32>) -> u64 {
    let Some(pid) = pid else { return 0 };
    let clock = nix::time::clock_getcpuclockid(nix::unistd::Pid::from_raw(pid as i32))
        .expect("the broker's process exists");
    let time = nix::time::clock_gettime(clock).expect("a process has a CPU clock");
    time.tv_sec() as u64 * 1_000_000 + time.tv_nsec() as u64 / 1000
}

fn resident_kib(pid: Option<u32>) -> u64 {
    let Some(pid) = pid else { return 0 };
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next())
        .map_or(0, |kib| kib.parse().unwrap_or(0))
}

fn main() {
    let arguments = Arguments::parse();
    if matches!(arguments.mode, Mode::HopProduce | Mode::HopFetch) {
        hop::run(&arguments).expect("no I/O error");
        return;
    }
    work::create_topic(&arguments).expect("the topic can be created");
    let begin = Instant::now();
    let start = begin + Duration::from_secs_f64(arguments.warmup_seconds);
    let window = Window {
        start,
        end: start + Duration::from_secs_f64(arguments.seconds),
    };
    let workers: Vec<_> = (0..arguments.connections)
        .map(|number| {
            let arguments = arguments.clone();
            std::thread::spawn(move || work::run(&arguments, number, window))
        })
        .collect();
    std::thread::sleep(window.start.saturating_duration_since(Instant::now()));
    let (cpu_before, clock_before) = (cpu_us(arguments.broker_pid), Instant::now());
    std::thread::sleep(window.end.saturating_duration_since(Instant::now()));
    let cpu = cpu_us(arguments.broker_pid) - cpu_before;
    let elapsed = clock_before.elapsed().as_secs_f64();
    let mut total = Done::new();
    for worker in workers {
        let done = worker
            .join()
            .expect("a connection's thread ends")
            .expect("no I/O error");
        total.requests += done.requests;
        total.records += done.records;
        total.bytes += done.bytes;
        total.rolls_us.extend(done.rolls_us);
        total.latency_us.add(&done.latency_us).expect("same bounds");
    }
    report(&arguments, &total, cpu, elapsed);
}

fn report(arguments: &Arguments, total: &Done, cpu: u64, elapsed: f64) {
    let quantile = |quantile: f64| total.latency_us.value_at_quantile(quantile);
    print!(
        "mode={:?} acks={} partitions={} record_bytes={} connections={} requests={} records={} bytes={} \
         mb_per_s={:.1} records_per_s={:.0}",
        arguments.mode,
        arguments.acks,
        arguments.partitions,
        arguments.record_bytes,
        arguments.connections,
        total.requests,
        total.records,
        total.bytes,
        total.bytes as f64 / 1e6 / elapsed,
        total.records as f64 / elapsed,
    );
    if cpu > 0 {
        print!(
            " broker_cpu_us_per_request={:.2} broker_cpu_ns_per_byte={:.3} \
             records_per_broker_cpu_s={:.0} mb_per_broker_cpu_s={:.1} broker_cpu_share={:.3}",
            cpu as f64 / total.requests.max(1) as f64,
            cpu as f64 * 1000.0 / total.bytes.max(1) as f64,
            total.records as f64 * 1e6 / cpu as f64,
            total.bytes as f64 / cpu as f64,
            cpu as f64 / 1e6 / elapsed,
        );
    }
    let mut rolls = total.rolls_us.clone();
    rolls.sort_unstable();
    if let (Some(median), Some(last)) = (rolls.get(rolls.len() / 2), rolls.last()) {
        print!(
            " rolls={} roll_p50_us={median} roll_max_us={last}",
            rolls.len()
        );
    }
    println!(
        " p50_us={} p99_us={} p999_us={} max_us={} peak_rss_kib={}",
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        total.latency_us.max(),
        resident_kib(arguments.broker_pid),
    );
}
