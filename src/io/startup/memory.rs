//! How the system's allocator keeps memory.

/// Bytes by which an arena grows, and which it keeps free at its end: the size of the pieces that
/// glibc's arenas of threads are made of.
const ARENA_PIECE_BYTES: libc::c_int = 64 << 20;
/// Larger allocations are mapped one by one; the most that glibc allows, to which its own rule
/// would move after the first large buffer that is freed.
const MAPPED_FROM_BYTES: libc::c_int = 32 << 20;

/// Keeps what was freed for the next allocation. Left alone, glibc gives the pieces of a shard's
/// arena back one after the other as the tail cache passes through them, oldest first, and gets
/// fresh ones a page at a time: a page fault for every 4 KiB that a producer sends, for ever, and a
/// system call for every few requests. Peak use is the same; after a peak less goes back.
///
/// To be called before the first thread starts.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    for (parameter, bytes) in [
        (libc::M_TOP_PAD, ARENA_PIECE_BYTES),
        (libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES),
    ] {
        // SAFETY: sets a number of the allocator; no other thread is there yet.
        let accepted = unsafe { libc::mallopt(parameter, bytes) };
        debug_assert_eq!(accepted, 1, "glibc takes both values");
    }
}
