//! A batch that has passed validation.

use std::rc::Rc;

use bytes::BytesMut;

use super::config::{AppendContext, AppendOrigin};
use super::error::AppendError;
use super::format::producer_state::ProducerStateError;
use super::partition_log::Log;
use crate::base::error_code::ErrorCode;
use crate::base::time::TimestampMs;
use crate::wire::record_batch::{BatchHeader, verify_crc};

/// What an append goes on with.
pub(crate) struct CheckedBatch {
    /// Stamped but for offset and leader epoch.
    pub(crate) batch: BytesMut,
    /// Its header, as it stands in `batch`.
    pub(crate) header: BatchHeader,
    /// The broker's time where the log keeps that.
    pub(crate) log_append_time: TimestampMs,
}

fn invalid(code: ErrorCode, message: impl ToString) -> AppendError {
    AppendError::Invalid {
        code,
        message: message.to_string(),
    }
}

impl From<ProducerStateError> for AppendError {
    fn from(error: ProducerStateError) -> Self {
        match error {
            ProducerStateError::OutOfOrderSequence { .. } => {
                Self::OutOfOrderSequence(error.to_string())
            }
            ProducerStateError::InvalidProducerEpoch { .. } => {
                Self::InvalidProducerEpoch(error.to_string())
            }
            other => invalid(other.error_code(), other),
        }
    }
}

impl Log {
    /// Validates a batch before its append.
    pub(crate) async fn check_batch(
        self: &Rc<Self>,
        batch: BytesMut,
        context: &AppendContext,
    ) -> Result<CheckedBatch, AppendError> {
        let limit = self.config().max_message_bytes;
        if batch.len() > limit && context.origin != AppendOrigin::Replica {
            return Err(AppendError::TooLarge {
                bytes: batch.len(),
                limit,
            });
        }
        let header = BatchHeader::parse(&batch)
            .map_err(|error| invalid(ErrorCode::CORRUPT_MESSAGE, error))?;
        if header.total_bytes() != batch.len() {
            return Err(invalid(
                ErrorCode::INVALID_RECORD,
                "more or less than one batch",
            ));
        }
        verify_crc(&batch).map_err(|error| invalid(ErrorCode::CORRUPT_MESSAGE, error))?;
        if header.record_count < 1 || header.record_count != header.last_offset_delta + 1 {
            return Err(invalid(
                ErrorCode::INVALID_RECORD,
                "record count and offsets differ",
            ));
        }
        Ok(CheckedBatch {
            batch,
            header,
            log_append_time: TimestampMs::NONE,
        })
    }

    /// Notes what an appended batch says about its producer.
    pub(crate) fn apply_producer(&self, header: &BatchHeader, batch: &[u8]) {
        super::producers::apply(&mut self.producers.borrow_mut(), header, batch);
    }
}
