//! One connection's work: closed loop with a fixed depth, open loop by a schedule, or tail reads.

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::protocol::{self, Fetched};
use super::{Arguments, Done, Mode, Window};

const TOPIC_ALREADY_EXISTS: i16 = 36;

pub fn connect(arguments: &Arguments) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(&arguments.bootstrap)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

pub fn create_topic(arguments: &Arguments) -> io::Result<()> {
    let mut stream = connect(arguments)?;
    let mut frame = protocol::create_topic_frame(&arguments.topic, arguments.partitions);
    protocol::send(&mut stream, &mut frame, 1)?;
    let mut response = Vec::new();
    protocol::receive(&mut stream, &mut response)?;
    match protocol::create_topic_error(&response) {
        0 => {
            std::thread::sleep(Duration::from_secs(3));
            Ok(())
        }
        TOPIC_ALREADY_EXISTS => Ok(()),
        other => Err(io::Error::other(format!(
            "creating the topic gave error {other}"
        ))),
    }
}

/// This connection's partitions: every `connections`-th, at least one.
fn partitions_of(arguments: &Arguments, number: usize) -> Vec<i32> {
    let step = arguments.connections;
    let own: Vec<i32> = (0..arguments.partitions)
        .skip(number)
        .step_by(step)
        .collect();
    if own.is_empty() {
        vec![number as i32 % arguments.partitions]
    } else {
        own
    }
}

pub fn run(arguments: &Arguments, number: usize, window: Window) -> io::Result<Done> {
    match (arguments.mode, arguments.interval_us) {
        (Mode::Fetch | Mode::HopProduce | Mode::HopFetch, _) => fetch(arguments, number, window),
        (Mode::Produce, None) => closed_loop(arguments, number, window),
        (Mode::Produce, Some(interval)) => open_loop(arguments, number, window, interval),
    }
}

/// Which batches are acknowledged around a roll: the first of a segment, and those sent while it
/// waited.
#[derive(Clone, Copy)]
struct Rolls {
    batches_per_segment: Option<u64>,
}

/// Batches after the first of a segment that may have waited with it.
const BATCHES_AROUND_ROLL: u64 = 16;

impl Rolls {
    fn new(arguments: &Arguments, batch_bytes: u64) -> Self {
        let batches = arguments.segment_bytes.map(|bytes| bytes / batch_bytes);
        Self {
            batches_per_segment: batches,
        }
    }

    /// Takes in the latency of a topic's `number`-th batch.
    fn note(self, done: &mut Done, number: i32, micros: u64) {
        let Some(count) = self.batches_per_segment else {
            return;
        };
        let (segment, place) = (number as u64 / count, number as u64 % count);
        if segment == 0 || place > BATCHES_AROUND_ROLL {
            return;
        }
        if place == 0 {
            done.rolls_us.push(micros);
        } else if let Some(latest) = done.rolls_us.last_mut() {
            *latest = micros.max(*latest);
        }
    }
}

struct Frames<'a> {
    arguments: &'a Arguments,
    number: usize,
    partitions: Vec<i32>,
    frames: Vec<Vec<u8>>,
    next: usize,
    records: u64,
    bytes: u64,
}

impl<'a> Frames<'a> {
    fn new(arguments: &'a Arguments, number: usize) -> Self {
        let count = (arguments.batch_bytes / (arguments.record_bytes + 8)).max(1);
        let (bytes, keys) = (arguments.record_bytes, arguments.keys);
        let batch = protocol::batch(bytes, count, number as u64 + 1, keys);
        let partitions = partitions_of(arguments, number);
        let frame = |partition: &i32| {
            protocol::produce_frame(&arguments.topic, *partition, arguments.acks, &batch)
        };
        let frames = partitions.iter().map(frame).collect();
        Self {
            arguments,
            number,
            partitions,
            frames,
            next: 0,
            records: count as u64,
            bytes: batch.len() as u64,
        }
    }

    fn send(&mut self, stream: &mut TcpStream, correlation: i32) -> io::Result<()> {
        let place = self.next % self.frames.len();
        self.next += 1;
        if let Some(keys) = self.arguments.keys {
            let seed = (self.next as u64) << 20 | (self.number as u64 + 1) << 1;
            let (count, bytes) = (self.records as usize, self.arguments.record_bytes);
            let batch = protocol::batch(bytes, count, seed.wrapping_mul(0x9e37_79b9), Some(keys));
            let (topic, partition) = (&self.arguments.topic, self.partitions[place]);
            let acks = self.arguments.acks;
            self.frames[place] = protocol::produce_frame(topic, partition, acks, &batch);
        }
        protocol::send(stream, &mut self.frames[place], correlation)
    }
}

/// Takes in an answer; its latency in microseconds where it counts.
fn record(done: &mut Done, window: Window, since: Instant, frames: (u64, u64)) -> Option<u64> {
    let now = Instant::now();
    if now >= window.start && now <= window.end {
        done.requests += 1;
        done.records += frames.0;
        done.bytes += frames.1;
        let micros = now.saturating_duration_since(since).as_micros() as u64;
        done.latency_us.saturating_record(micros.max(1));
        return Some(micros);
    }
    None
}

pub fn take_ack(stream: &mut TcpStream, buffer: &mut Vec<u8>, expected: i32) -> io::Result<()> {
    let correlation = protocol::receive(stream, buffer)?;
    if correlation != expected {
        return Err(io::Error::other(format!(
            "answer {correlation} instead of {expected}"
        )));
    }
    match protocol::produce_error(buffer) {
        0 => Ok(()),
        error => Err(io::Error::other(format!("a produce gave error {error}"))),
    }
}

fn closed_loop(arguments: &Arguments, number: usize, window: Window) -> io::Result<Done> {
    let mut stream = connect(arguments)?;
    let mut frames = Frames::new(arguments, number);
    let sizes = (frames.records, frames.bytes);
    let mut in_flight = VecDeque::new();
    let (mut correlation, mut buffer, mut done) = (0, Vec::new(), Done::new());
    loop {
        while in_flight.len() < arguments.depth && Instant::now() < window.end {
            frames.send(&mut stream, correlation)?;
            in_flight.push_back((correlation, Instant::now()));
            correlation = correlation.wrapping_add(1);
            if arguments.acks == 0 {
                let Some((_, since)) = in_flight.pop_back() else {
                    break;
                };
                record(&mut done, window, since, sizes);
            }
        }
        let Some((expected, since)) = in_flight.pop_front() else {
            return Ok(done);
        };
        take_ack(&mut stream, &mut buffer, expected)?;
        record(&mut done, window, since, sizes);
    }
}

fn open_loop(
    arguments: &Arguments,
    number: usize,
    window: Window,
    interval_us: u64,
) -> io::Result<Done> {
    let mut stream = connect(arguments)?;
    let mut answers = stream.try_clone()?;
    let mut frames = Frames::new(arguments, number);
    let sizes = (frames.records, frames.bytes);
    let rolls = Rolls::new(arguments, frames.bytes);
    let (sent, to_answer) = mpsc::channel::<(i32, Instant)>();
    let reader = std::thread::spawn(move || -> io::Result<Done> {
        let (mut buffer, mut done) = (Vec::new(), Done::new());
        for (expected, intended) in to_answer {
            take_ack(&mut answers, &mut buffer, expected)?;
            if let Some(micros) = record(&mut done, window, intended, sizes) {
                rolls.note(&mut done, expected, micros);
            }
        }
        Ok(done)
    });
    let mut intended = Instant::now();
    let mut correlation = 0;
    while intended < window.end {
        std::thread::sleep(intended.saturating_duration_since(Instant::now()));
        frames.send(&mut stream, correlation)?;
        if sent.send((correlation, intended)).is_err() {
            break;
        }
        correlation = correlation.wrapping_add(1);
        intended += Duration::from_micros(interval_us);
    }
    drop(sent);
    reader
        .join()
        .map_err(|_| io::Error::other("the reader died"))?
}

fn fetch(arguments: &Arguments, number: usize, window: Window) -> io::Result<Done> {
    let mut stream = connect(arguments)?;
    let own = partitions_of(arguments, number);
    let mut positions: Vec<(i32, i64)> = own.into_iter().map(|partition| (partition, 0)).collect();
    let (mut buffer, mut done, mut correlation) = (Vec::new(), Done::new(), 0);
    while Instant::now() < window.end {
        let mut frame = protocol::fetch_frame(&arguments.topic, &positions, arguments.fetch_bytes);
        let since = Instant::now();
        protocol::send(&mut stream, &mut frame, correlation)?;
        protocol::receive(&mut stream, &mut buffer)?;
        correlation = correlation.wrapping_add(1);
        let parts = protocol::fetched(&buffer);
        let (records, bytes) = advance(&mut positions, &parts)?;
        record(&mut done, window, since, (records, bytes));
    }
    Ok(done)
}

fn advance(positions: &mut [(i32, i64)], parts: &[Fetched]) -> io::Result<(u64, u64)> {
    let (mut records, mut bytes) = (0, 0);
    for part in parts {
        if part.error != 0 {
            let text = format!("partition {} gave error {}", part.partition, part.error);
            return Err(io::Error::other(text));
        }
        records += part.records as u64;
        bytes += part.bytes as u64;
        let position = positions
            .iter_mut()
            .find(|position| position.0 == part.partition);
        if let (Some(position), Some(next)) = (position, part.next_offset) {
            // At the end of what there is: read it again from the start.
            position.1 = if next < part.high_watermark { next } else { 0 };
        }
    }
    Ok((records, bytes))
}
