//! What a broker writes into a batch, in place. Offset and leader epoch lie outside the checksum;
//! the rest lies inside, so whoever changes it recomputes it, once, by [`recompute_crc`].
//!
//! All of these panic on a slice shorter than a header: the caller has parsed one there.

use super::header::Attributes;
use super::layout;
use crate::base::ids::{LeaderEpoch, Offset};
use crate::base::time::TimestampMs;

/// Sets the offset of the first record. The checksum does not cover it.
pub fn stamp_base_offset(batch: &mut [u8], offset: Offset) {
    layout::set_field(batch, layout::BASE_OFFSET, &offset.0.to_be_bytes());
}

/// Sets the leader epoch of the append. The checksum does not cover it.
pub fn stamp_leader_epoch(batch: &mut [u8], leader_epoch: LeaderEpoch) {
    layout::set_field(batch, layout::LEADER_EPOCH, &leader_epoch.0.to_be_bytes());
}

/// Sets `maxTimestamp` and leaves the timestamp type. Recompute the checksum afterwards.
pub fn set_max_timestamp(batch: &mut [u8], timestamp: TimestampMs) {
    layout::set_field(batch, layout::MAX_TIMESTAMP, &timestamp.0.to_be_bytes());
}

/// Marks the batch as appended at `timestamp`: type bit and `maxTimestamp`, the records untouched
/// (readers take the batch's timestamp for each record). Recompute the checksum afterwards.
pub fn set_log_append_time(batch: &mut [u8], timestamp: TimestampMs) {
    let attributes = attributes(batch) | Attributes::LOG_APPEND_TIME;
    set_attributes(batch, attributes);
    set_max_timestamp(batch, timestamp);
}

/// Clears the LogAppendTime bit, which a client may have set. Recompute the checksum afterwards.
pub fn clear_timestamp_type(batch: &mut [u8]) {
    let attributes = attributes(batch) & !Attributes::LOG_APPEND_TIME;
    set_attributes(batch, attributes);
}

/// Sets the time after which compaction drops the batch's tombstones (KIP-534). The records'
/// timestamp deltas must count from it already. Recompute the checksum afterwards.
pub fn set_delete_horizon(batch: &mut [u8], horizon: TimestampMs) {
    let attributes = attributes(batch) | Attributes::DELETE_HORIZON;
    set_attributes(batch, attributes);
    layout::set_field(batch, layout::BASE_TIMESTAMP, &horizon.0.to_be_bytes());
}

/// Writes the checksum of one whole batch, no byte more or less.
pub fn recompute_crc(batch: &mut [u8]) {
    let crc = crc32c::crc32c(batch.get(layout::CRC_COVERS_FROM..).unwrap_or_default());
    layout::set_field(batch, layout::CRC, &crc.to_be_bytes());
}

fn attributes(batch: &[u8]) -> i16 {
    i16::from_be_bytes(layout::field(batch, layout::ATTRIBUTES))
}

fn set_attributes(batch: &mut [u8], attributes: i16) {
    layout::set_field(batch, layout::ATTRIBUTES, &attributes.to_be_bytes());
}
