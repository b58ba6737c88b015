//! The memory of this process: how much is resident, back to the system what is free, and how much
//! caches must do without while it is short.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Whether this process is one broker and nothing else.
static IS_BROKER: AtomicBool = AtomicBool::new(false);
/// See [`withhold`].
static WITHHELD_PERMILLE: AtomicU32 = AtomicU32::new(0);

/// Bytes of a page of `/proc/self/statm`.
const PAGE_BYTES: u64 = 4_096;

/// Bytes that are in memory now; `None` where the system does not say.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// The process serves one broker, whose memory is that of the process.
pub fn note_broker_process() {
    IS_BROKER.store(true, Ordering::Relaxed);
}

/// Whether it does: in tests several share one.
#[must_use]
pub fn is_broker_process() -> bool {
    IS_BROKER.load(Ordering::Relaxed)
}

/// So many thousandths of every cache are not to be used.
pub fn withhold(permille: u32) {
    WITHHELD_PERMILLE.store(permille, Ordering::Relaxed);
}

/// What is left of a cache of `bytes`.
#[must_use]
pub fn left_of(bytes: usize) -> usize {
    match WITHHELD_PERMILLE.load(Ordering::Relaxed) {
        0 => bytes,
        withheld => bytes / 1_000 * 1_000_usize.saturating_sub(withheld as usize),
    }
}

/// Gives the pages of freed memory back to the system, which the allocator keeps for the next
/// allocation ([`keep_freed_memory`](super::startup::keep_freed_memory)) and cannot always use for
/// it: holes between blocks that live on. Takes milliseconds, in which other threads may wait for
/// memory.
pub fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_goes_back() {
        const BLOCK: usize = 64 << 10;
        // Every second block is freed: none of the holes is at an end.
        let mut blocks: Vec<Vec<u8>> = (0..1_600).map(|_| vec![1; BLOCK]).collect();
        let full = resident_bytes().unwrap();
        let mut keep = true;
        blocks.retain(|_| {
            keep = !keep;
            keep
        });
        give_back_freed();
        let trimmed = resident_bytes().unwrap();
        let freed = (800 * BLOCK) as u64;
        assert!(full - trimmed > freed / 2, "from {full} to {trimmed}");
        assert_eq!(blocks.len(), 800);
    }
}
