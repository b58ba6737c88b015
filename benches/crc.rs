//! What does one CRC-32C pass over a batch cost? CPU nanoseconds a byte for batches of some sizes,
//! in the cache and out of it, beside the floor: reading the same bytes once.
//!
//!     cargo bench --bench crc

use std::hint::black_box;
use std::time::Duration;

use clap::Parser;
use coreline::wire::record_batch::{HEADER_BYTES, verify_crc};

/// Bytes that each figure goes over.
const TOTAL_BYTES: usize = 128 << 20;
/// Memory that no cache near the core holds.
const COLD_BYTES: usize = 128 << 20;
const ROUNDS: usize = 5;

#[derive(Parser)]
struct Arguments {
    /// Given by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

fn thread_cpu() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("this thread has a CPU clock");
    Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32)
}

/// A batch of `bytes` whose checksum is right.
fn put_batch(batch: &mut [u8]) {
    batch.fill(7);
    batch[..8].fill(0);
    let length = (batch.len() - 12) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[16] = 2;
    let checksum = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&checksum.to_be_bytes());
}

/// The least CPU nanoseconds a byte that `work` took over batches of `bytes` in `memory`.
fn per_byte(memory: &[u8], bytes: usize, work: impl Fn(&[u8])) -> f64 {
    let count = TOTAL_BYTES / bytes;
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let before = thread_cpu();
        memory
            .chunks_exact(bytes)
            .cycle()
            .take(count)
            .for_each(&work);
        let taken = (thread_cpu() - before).as_nanos() as f64;
        least = least.min(taken / (count * bytes) as f64);
    }
    least
}

fn read_once(batch: &[u8]) {
    let mut sums = [0u64; 4];
    let (chunks, rest) = batch.as_chunks::<32>();
    for chunk in chunks {
        for (sum, word) in sums.iter_mut().zip(chunk.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    black_box((sums, rest.first()));
}

fn main() {
    let _ = Arguments::parse();
    for bytes in [128, 1 << 10, 16 << 10, 64 << 10, 1 << 20] {
        assert!(bytes > HEADER_BYTES, "a batch has a header");
        for (place, held) in [("hot", bytes), ("cold", COLD_BYTES)] {
            let mut memory = vec![0; held];
            memory.chunks_exact_mut(bytes).for_each(put_batch);
            let crc = per_byte(&memory, bytes, |batch| {
                verify_crc(black_box(batch)).expect("the checksum is right");
            });
            let floor = per_byte(&memory, bytes, |batch| read_once(black_box(batch)));
            println!(
                "batch_bytes={bytes} memory={place} crc_ns_per_byte={crc:.4} \
                 read_ns_per_byte={floor:.4} ratio={:.2}",
                crc / floor
            );
        }
    }
}
