//! Gate G6: allocations of one produce request, from its bytes to its answer, and that they do not
//! grow with its records. And that a client that merely announces a large frame gets little.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

mod broker;

use broker::{Harness, HarnessOptions, batch, requests};

struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// Bytes allocated and not freed, by the whole process.
static LIVE: AtomicI64 = AtomicI64::new(0);

fn live(change: i64) {
    LIVE.fetch_add(change, Ordering::Relaxed);
}

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
        live(layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        live(-(layout.size() as i64));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        note(bytes);
        live(bytes as i64 - layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(memory, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const REQUESTS: u64 = 400;
/// The gate, for the whole path: receive, decode, append, journal, answer, send.
const ALLOCATIONS_MAX: u64 = 10;

/// How often it is measured: what the broker does beside the requests, each second or so, only
/// adds, and more of it falls into a slow measurement.
const ATTEMPTS: u32 = 3;

/// The least of several measurements.
fn least_per_request(harness: &Harness, records: usize) -> (f64, f64) {
    let attempts = (0..ATTEMPTS).map(|_| per_request(harness, records));
    attempts.fold((f64::MAX, f64::MAX), |least, found| {
        match found.0 < least.0 {
            true => found,
            false => least,
        }
    })
}

/// Allocations and bytes of one request of `records`, mean of many; this thread allocates nothing
/// meanwhile.
fn per_request(harness: &Harness, records: usize) -> (f64, f64) {
    let mut client = harness.connect();
    let request = requests::produce("t", -1, [(0, batch(records, 8))]);
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

const KIB: i64 = 1024;

/// What the broker holds once it has come to rest.
fn settled() -> i64 {
    let mut before = LIVE.load(Ordering::SeqCst);
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = LIVE.load(Ordering::SeqCst);
        if now == before {
            return now;
        }
        before = now;
    }
}

/// Clients that announce 90 MiB and send little of it.
fn claims_reserve_little(harness: &Harness) {
    const CLIENTS: i64 = 100;
    let start = settled();
    let mut head = (90i32 << 20).to_be_bytes().to_vec();
    head.extend([0, 0, 0, 9, 0, 0, 0, 1, 0, 0]);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| harness.connect()).collect();
    for client in &mut clients {
        client.stream.write_all(&head).unwrap();
    }
    let announced = settled() - start;
    println!(
        "{} KiB a client that announced 90 MiB",
        announced / CLIENTS / KIB
    );
    assert!(
        announced > 0 && announced <= CLIENTS * 80 * KIB,
        "{announced}"
    );
    for client in &mut clients {
        client.stream.write_all(&vec![0; 80 * 1024]).unwrap();
    }
    let partial = settled() - start;
    println!(
        "{} KiB a client that sent 80 KiB of them",
        partial / CLIENTS / KIB
    );
    assert!(partial <= CLIENTS * (1024 + 16) * KIB, "{partial}");
    drop(clients);
    let after = settled() - start;
    assert!(
        after <= CLIENTS * 2 * KIB,
        "{after} bytes stay after the clients are gone"
    );
}

#[test]
fn a_produce_allocates_little_and_no_more_for_more_records() {
    let mut harness = Harness::start(HarnessOptions::default());
    harness.create_topic("t", 1);
    let (few, few_bytes) = least_per_request(&harness, 1);
    let (many, many_bytes) = least_per_request(&harness, 500);
    println!("allocations a produce: {few:.2} ({few_bytes:.0} bytes) with 1 record");
    println!("allocations a produce: {many:.2} ({many_bytes:.0} bytes) with 500 records");
    assert!(few <= ALLOCATIONS_MAX as f64, "{few}");
    assert!(many <= ALLOCATIONS_MAX as f64, "{many}");
    assert!(many <= few + 1.0, "{many} against {few}");
    claims_reserve_little(&harness);
}
