//! What a hop costs: one connection asks for two partitions by turns, one request at a time. On a
//! broker of two shards one of them belongs to the connection's shard, the other does not.
//!
//! Which is which only the broker knows, by its count of hops: partition 1 gets twice as many
//! requests as partition 0, so that the count tells.

use std::io;
use std::net::TcpStream;
use std::time::Instant;

use hdrhistogram::Histogram;

use super::{Arguments, Mode, cpu_us, protocol, work};

/// Turns of each partition.
const TURNS: u32 = 10;
/// Requests of a turn of partition 0; before the first, as many warm up.
const TURN_REQUESTS: u32 = 100;
const FETCH_BYTES: i32 = 1 << 20;

struct Side {
    partition: i32,
    frame: Vec<u8>,
    requests: u32,
    cpu_us: Vec<f64>,
    latency_us: Histogram<u64>,
}

impl Side {
    fn new(arguments: &Arguments, partition: i32) -> Self {
        let (topic, acks) = (&arguments.topic, arguments.acks);
        let frame = match arguments.mode {
            Mode::HopFetch => protocol::fetch_frame(topic, &[(partition, 0)], FETCH_BYTES),
            _ => protocol::produce_frame(topic, partition, acks, &batch(arguments)),
        };
        Self {
            partition,
            frame,
            requests: TURN_REQUESTS * (1 + partition as u32),
            cpu_us: Vec::new(),
            latency_us: Histogram::new_with_bounds(1, 600_000_000, 3).expect("fixed bounds"),
        }
    }

    fn turn(&mut self, arguments: &Arguments, stream: &mut TcpStream) -> io::Result<()> {
        let (before, mut buffer) = (cpu_us(arguments.broker_pid), Vec::new());
        for correlation in 0..self.requests as i32 {
            let since = Instant::now();
            protocol::send(stream, &mut self.frame, correlation)?;
            if arguments.mode == Mode::HopFetch {
                protocol::receive(stream, &mut buffer)?;
                let found: usize = protocol::fetched(&buffer).iter().map(|one| one.bytes).sum();
                assert!(found > 0, "partition {} has records", self.partition);
            } else {
                work::take_ack(stream, &mut buffer, correlation)?;
            }
            let micros = since.elapsed().as_micros() as u64;
            self.latency_us.saturating_record(micros.max(1));
        }
        let used = cpu_us(arguments.broker_pid) - before;
        self.cpu_us.push(used as f64 / f64::from(self.requests));
        Ok(())
    }

    fn report(&mut self, warm_up: u32) {
        self.cpu_us.sort_by(f64::total_cmp);
        println!(
            "partition={} requests={} cpu_us={:.2} p50_us={} p99_us={}",
            self.partition,
            self.requests * TURNS + warm_up,
            self.cpu_us[self.cpu_us.len() / 2],
            self.latency_us.value_at_quantile(0.5),
            self.latency_us.value_at_quantile(0.99),
        );
    }
}

fn batch(arguments: &Arguments) -> Vec<u8> {
    let count = (arguments.batch_bytes / (arguments.record_bytes + 8)).max(1);
    protocol::batch(arguments.record_bytes, count, 1, None)
}

/// Prints one line a partition.
pub fn run(arguments: &Arguments) -> io::Result<()> {
    let two = Arguments {
        partitions: 2,
        ..arguments.clone()
    };
    work::create_topic(&two)?;
    let mut stream = work::connect(arguments)?;
    let producing = Arguments {
        mode: Mode::HopProduce,
        ..arguments.clone()
    };
    for partition in 0..2 {
        let mut frame = Side::new(&producing, partition).frame;
        protocol::send(&mut stream, &mut frame, 0)?;
        work::take_ack(&mut stream, &mut Vec::new(), 0)?;
    }
    let mut sides = [Side::new(arguments, 0), Side::new(arguments, 1)];
    for side in &mut sides {
        side.turn(arguments, &mut stream)?;
        side.cpu_us.clear();
        side.latency_us.clear();
    }
    for _ in 0..TURNS {
        for side in &mut sides {
            side.turn(arguments, &mut stream)?;
        }
    }
    for side in &mut sides {
        // The warm-up and the record that was there first hopped too.
        let warm_up = side.requests + 1;
        side.report(warm_up);
    }
    Ok(())
}
