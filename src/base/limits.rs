//! Named limits of the whole broker and the relations between them. Each has a test at the limit
//! and one past it, beside the code that enforces it.

use std::time::Duration;

/// Bytes in one KiB.
pub const KIB: usize = 1024;
/// Bytes in one MiB.
pub const MIB: usize = 1024 * KIB;

/// Unit of direct I/O: positions, lengths and addresses are multiples of it.
pub const BLOCK_BYTES: usize = 4 * KIB;
/// What a device writes whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// Longest topic name (`Topic.MAX_NAME_LENGTH`).
pub const TOPIC_NAME_LEN_MAX: usize = 249;
/// Most partitions of one CreateTopics request, all topics together
/// (`ReplicationControlManager.MAX_PARTITIONS_PER_BATCH`).
pub const PARTITIONS_PER_REQUEST_MAX: usize = 10_000;
/// Largest file of settings; Kafka's own sample has 7 KiB, most of it comments.
pub const SETTINGS_FILE_BYTES_MAX: usize = MIB;
/// Names and values of all settings that resources were given at run time, in bytes.
pub const SETTINGS_BYTES_MAX: usize = 32 * MIB;
/// Longest message about a refusal, in bytes; one that quotes a longer value is cut.
pub const REFUSAL_MESSAGE_BYTES_MAX: usize = 4 * KIB;
/// Batches remembered per producer id (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`).
pub const PRODUCER_BATCHES_MAX: usize = 5;

/// Largest frame accepted before a client has authenticated.
pub const FRAME_BYTES_MAX_UNAUTHENTICATED: usize = 512 * KIB;
/// Largest frame of every key but Produce; Produce has `socket.request.max.bytes`.
pub const FRAME_BYTES_MAX_OTHER: usize = 8 * MIB;
/// Reserved for a frame when its header has arrived; the rest follows the bytes. A batch of 64 KiB,
/// a usual `batch.size`, comes in one piece with the request around it.
pub const FRAME_BYTES_RESERVED: usize = 64 * KIB + 4 * KIB;
/// How long a request may take to come whole, from its first byte to the close; a large one that
/// moves on gets more.
pub const PARTIAL_REQUEST_MAX: Duration = Duration::from_secs(30);

/// Largest journal cycle; also bounded by a quarter of a journal file (JOURNAL §3).
pub const CYCLE_BYTES_MAX: usize = 4 * MIB;
/// From here on an append may go straight to its segment (JOURNAL §3).
pub const DIRECT_BYTES: usize = 256 * KIB;
/// Direct writes of one shard that may await a flush (JOURNAL §3).
pub const DIRECT_WRITES_MAX: usize = 8;
/// Smallest journal ring of one shard (JOURNAL §3).
pub const JOURNAL_BYTES_MIN: usize = 2 * MIB;
/// What gathers at least before journalled bytes go to their segment (JOURNAL §5), and at most.
pub const WRITE_BACK_BYTES: usize = 128 * KIB;
/// See [`WRITE_BACK_BYTES`].
pub const WRITE_BACK_BYTES_MAX: usize = MIB;

/// Least and most for the buffers of one shard's writes in flight; a quarter of its cache between.
pub const WRITE_BUFFER_BYTES_MIN: usize = MIB;
/// See [`WRITE_BUFFER_BYTES_MIN`].
pub const WRITE_BUFFER_BYTES_MAX: usize = 32 * MIB;

/// For the buffers of one shard's writes in flight, by the size of the cache that they copy from.
#[must_use]
pub fn write_buffer_bytes(cache_bytes: usize) -> usize {
    (cache_bytes / 4).clamp(WRITE_BUFFER_BYTES_MIN, WRITE_BUFFER_BYTES_MAX)
}

const _: () = assert!(DIRECT_BYTES <= CYCLE_BYTES_MAX);
const _: () = assert!(BLOCK_BYTES.is_multiple_of(SECTOR_BYTES));
const _: () = assert!(FRAME_BYTES_RESERVED <= FRAME_BYTES_MAX_UNAUTHENTICATED);
const _: () = assert!(FRAME_BYTES_MAX_UNAUTHENTICATED <= FRAME_BYTES_MAX_OTHER);
const _: () = assert!(WRITE_BACK_BYTES.is_multiple_of(BLOCK_BYTES));
const _: () = assert!(WRITE_BACK_BYTES_MAX.is_multiple_of(BLOCK_BYTES));
const _: () = assert!(WRITE_BACK_BYTES <= WRITE_BACK_BYTES_MAX);
