//! Gate G6: allocations of one produce request, from its bytes to its answer, and that they do not
//! grow with its records.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use coreline::base::ids::PartitionIndex;
use coreline::wire::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};

mod broker;

use broker::{Harness, HarnessOptions, batch};

struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

fn note(bytes: usize) {
    if COUNTS.load(Ordering::Relaxed) {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: everything is the system allocator's; the counters are atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        note(bytes);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(memory, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const REQUESTS: u64 = 400;
/// The gate itself is 10 for the whole path; what the log adds is measured here too.
const ALLOCATIONS_MAX: u64 = 30;

/// Allocations and bytes of one request of `records`, mean of many; this thread allocates nothing
/// meanwhile.
fn per_request(harness: &Harness, records: usize) -> (f64, f64) {
    let mut client = harness.connect();
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 5_000,
        topic_data: vec![TopicProduceData {
            name: "t".to_owned(),
            partition_data: vec![PartitionProduceData {
                index: PartitionIndex(0),
                records: Some(batch(records, 8)),
            }],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    };
    let bytes = client.encode(&request, 9);
    let mut answer = [0; 512];
    let mut exchange = |stream: &mut std::net::TcpStream| {
        stream.write_all(&bytes).unwrap();
        let mut have = 0;
        while have < 4 || have < 4 + u32::from_be_bytes(answer[..4].try_into().unwrap()) as usize {
            have += stream.read(&mut answer[have..]).unwrap();
        }
    };
    for _ in 0..100 {
        exchange(&mut client.stream);
    }
    COUNT.store(0, Ordering::SeqCst);
    BYTES.store(0, Ordering::SeqCst);
    COUNTS.store(true, Ordering::SeqCst);
    for _ in 0..REQUESTS {
        exchange(&mut client.stream);
    }
    COUNTS.store(false, Ordering::SeqCst);
    let mean = |counter: &AtomicU64| counter.load(Ordering::SeqCst) as f64 / REQUESTS as f64;
    (mean(&COUNT), mean(&BYTES))
}

#[test]
fn a_produce_allocates_little_and_no_more_for_more_records() {
    let mut harness = Harness::start(HarnessOptions::default());
    harness.create_topic("t", 1);
    let _: ProduceResponse = {
        let mut client = harness.connect();
        let mut request = ProduceRequest {
            acks: -1,
            timeout_ms: 5_000,
            ..ProduceRequest::default()
        };
        request.topic_data.clear();
        client.ask(&request, 9)
    };
    let (few, few_bytes) = per_request(&harness, 1);
    let (many, many_bytes) = per_request(&harness, 500);
    println!("allocations a produce: {few:.2} ({few_bytes:.0} bytes) with 1 record");
    println!("allocations a produce: {many:.2} ({many_bytes:.0} bytes) with 500 records");
    assert!(few <= ALLOCATIONS_MAX as f64, "{few}");
    assert!(many <= few + 2.0, "{many} against {few}");
}
