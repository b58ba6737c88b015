//! What a leader checks before it appends a batch, and what it writes into it (`ProduceRequest`,
//! `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`). Pure: bytes, settings and the time go
//! in; a verdict comes out, and the batch as it will be stored but for its offset and leader epoch.
//!
//! 1. [`check_produced`], at the edge: exactly one batch, its format, codecs by request version.
//! 2. [`validate`], at the owner of the partition: base offset, size, checksum, header against
//!    records, every record's structure, key and timestamp. The largest timestamp of the records
//!    replaces the one that the header claims; the checksum is computed again only if that, or the
//!    timestamp type, changed.
//! 3. [`recompress`], where a topic's `compression.type` names another codec.
//!
//! The order of the checks is Kafka's, so that a batch with several faults gets Kafka's code.
//! `tests/validation_oracle/` holds the cases with the answers of a running Kafka, and says where
//! and why this module is stricter.

mod error;
mod produced;
mod recompression;
mod rules;

pub use error::{RECORD_ERRORS_MAX, RecordFault, RecordFaultKind, ValidationError};
pub use produced::{check_produced, check_transactional};
pub use recompression::{recompress, wants_recompression};
pub use rules::{INLINE_WALK_BYTES_MAX, ValidatedBatch, ValidationOptions, is_heavy, validate};

#[cfg(test)]
mod validation_test;
