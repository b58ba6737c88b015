//! Feeding batches to the producers' state, from the append path and from replay.

use bytes::Bytes;

use super::format::producer_state::ProducerStates;
use super::scan::{ScannedBatch, read_exactly};
use crate::io::File;
use crate::wire::record::RecordIter;
use crate::wire::record_batch::{BatchHeader, EndTransactionMarker, HEADER_BYTES};

/// Largest control batch that is looked into.
const CONTROL_BYTES_MAX: usize = 4096;

/// Notes an appended batch. A control batch is looked into, so all of it is needed.
pub(crate) fn apply(producers: &mut ProducerStates, header: &BatchHeader, batch: &[u8]) {
    if !header.attributes.is_control() {
        producers.apply(header);
    } else if header.has_producer_id()
        && let Some(marker) = marker_of(header, batch)
    {
        producers.apply_marker(header, marker);
    }
}

/// The marker that an uncompressed control batch holds first.
pub(crate) fn marker_of(header: &BatchHeader, batch: &[u8]) -> Option<EndTransactionMarker> {
    let records = batch.get(HEADER_BYTES..)?;
    let record = RecordIter::new(records, header.record_count).next()?.ok()?;
    EndTransactionMarker::parse(record.key?, record.value?)
}

/// Notes a batch met in a walk; a control batch is read from `file`.
pub(crate) async fn apply_batch(
    producers: &mut ProducerStates,
    batch: &ScannedBatch,
    file: Option<&File>,
) {
    let length = batch.header.total_bytes();
    let bytes = match file {
        Some(file) if length <= CONTROL_BYTES_MAX => read_exactly(file, batch.position, length)
            .await
            .unwrap_or_default(),
        _ => Bytes::new(),
    };
    apply(producers, &batch.header, &bytes);
}
