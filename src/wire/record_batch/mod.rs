//! Record batches, format v2 (magic 2, KIP-98; `DefaultRecordBatch`): what producers send, what the
//! log keeps and what consumers get, one and the same bytes.
//!
//! A batch stays a slice of the buffer in which it arrived. Its header is parsed by value
//! ([`BatchHeader`]), the few fields that a broker owns are written in place ([`stamp_base_offset`]
//! and its siblings), its records are walked without copying ([`crate::wire::record`]). Only tests,
//! control records and recompression build batches ([`BatchBuilder`]).
//!
//! Absent: the older formats, magic 0 and 1, which Kafka itself no longer writes nor accepts since
//! 4.0 (KIP-724).

mod builder;
mod control;
mod header;
mod layout;
mod split;
mod stamp;

#[cfg(test)]
mod record_batch_test;

pub use builder::{BatchBuilder, NewHeader, NewRecord};
pub use control::{
    CONTROL_MARKER_BYTES, ControlRecord, ControlRecordType, EndTransactionMarker, MarkerKind,
    kraft_control_batch, parse_control_key,
};
pub use header::{Attributes, BatchError, BatchHeader, verify_crc};
pub use layout::{
    BATCH_BYTES_MIN, BATCH_OVERHEAD_BYTES, CRC_COVERS_FROM, HEADER_BYTES, LEADER_EPOCH_AT,
    LENGTH_AT, MAGIC_AT,
};
pub use split::{BatchSlice, BatchSplitter, split_batches};
pub use stamp::{
    clear_timestamp_type, recompute_crc, set_delete_horizon, set_log_append_time,
    set_max_timestamp, stamp_base_offset, stamp_leader_epoch,
};
