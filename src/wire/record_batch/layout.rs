//! Where the fields of a batch stand, in bytes from its start; all integers are big-endian
//! (`DefaultRecordBatch`).

use std::ops::Range;

/// `baseOffset`: the offset of the first record; 0 from a producer, stamped by the leader.
pub(super) const BASE_OFFSET: Range<usize> = 0..8;
/// Where `batchLength` stands: the bytes that follow this field.
pub const LENGTH_AT: usize = 8;
pub(super) const LENGTH: Range<usize> = LENGTH_AT..12;
/// Where `partitionLeaderEpoch` stands; outside the checksum, stamped by the leader.
pub const LEADER_EPOCH_AT: usize = 12;
pub(super) const LEADER_EPOCH: Range<usize> = LEADER_EPOCH_AT..16;
/// Where the format's version stands, in all three formats alike.
pub const MAGIC_AT: usize = 16;
/// The format's version, the only one here.
pub const MAGIC: u8 = 2;
pub(super) const CRC: Range<usize> = 17..21;
/// The checksum covers everything from here to the end of the batch.
pub const CRC_COVERS_FROM: usize = 21;
pub(super) const ATTRIBUTES: Range<usize> = 21..23;
pub(super) const LAST_OFFSET_DELTA: Range<usize> = 23..27;
pub(super) const BASE_TIMESTAMP: Range<usize> = 27..35;
pub(super) const MAX_TIMESTAMP: Range<usize> = 35..43;
pub(super) const PRODUCER_ID: Range<usize> = 43..51;
pub(super) const PRODUCER_EPOCH: Range<usize> = 51..53;
pub(super) const BASE_SEQUENCE: Range<usize> = 53..57;
pub(super) const RECORD_COUNT: Range<usize> = 57..61;

/// Bytes of a batch's header (`RECORD_BATCH_OVERHEAD`); the records follow.
pub const HEADER_BYTES: usize = 61;
/// Bytes before what `batchLength` counts (`Records.LOG_OVERHEAD`).
pub const BATCH_OVERHEAD_BYTES: usize = 12;
/// A batch is never smaller than its header: compaction leaves such empty ones behind.
pub const BATCH_BYTES_MIN: usize = HEADER_BYTES;

/// The fields at `range` as a fixed array.
///
/// # Panics
/// When the batch is shorter than its header: callers have checked that.
pub(super) fn field<const N: usize>(batch: &[u8], range: Range<usize>) -> [u8; N] {
    let mut bytes = [0; N];
    let found = batch.get(range);
    assert!(
        found.is_some_and(|slice| slice.len() == N),
        "a batch is at least its header"
    );
    if let Some(found) = found {
        bytes.copy_from_slice(found);
    }
    bytes
}

/// Overwrites the field at `range`.
///
/// # Panics
/// As [`field`].
pub(super) fn set_field(batch: &mut [u8], range: Range<usize>, value: &[u8]) {
    let found = batch.get_mut(range);
    assert!(found.is_some(), "a batch is at least its header");
    if let Some(found) = found {
        found.copy_from_slice(value);
    }
}
