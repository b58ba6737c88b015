//! From the bytes of a client to a batch that may be appended: validation and recompression, on the
//! shard for what is quick, on the pool for what must be decompressed and is large.

use std::rc::Rc;

use bytes::BytesMut;

use super::config::{AppendContext, LogConfig};
use super::error::AppendError;
use super::format::producer_state::ProducerStateError;
use super::journal::record::LENGTH_MAX;
use super::partition_log::Log;
use super::validation::{
    ValidationError, ValidationOptions, is_heavy, recompress, validate, wants_recompression,
};
use crate::base::error_code::ErrorCode;
use crate::base::time::TimestampMs;
use crate::io;
use crate::log::error::LogError;
use crate::wire::record_batch::BatchHeader;

/// What an append goes on with.
pub(crate) struct CheckedBatch {
    /// Stamped but for offset and leader epoch.
    pub(crate) batch: BytesMut,
    /// Its header, as it stands in `batch`.
    pub(crate) header: BatchHeader,
    /// The broker's time where the log keeps that.
    pub(crate) log_append_time: TimestampMs,
    /// The batch does not lie in the buffer in which it came.
    pub(crate) is_copied: bool,
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
            other => Self::Invalid {
                code: other.error_code(),
                message: other.to_string(),
                faults: Vec::new(),
            },
        }
    }
}

impl From<ValidationError> for AppendError {
    fn from(error: ValidationError) -> Self {
        match error {
            ValidationError::TooLarge { bytes, limit } => Self::TooLarge { bytes, limit },
            other => Self::Invalid {
                code: other.error_code(),
                message: other.to_string(),
                faults: other.record_faults().to_vec(),
            },
        }
    }
}

/// Judges a batch and makes it what will be stored.
fn check(
    mut batch: BytesMut,
    context: &AppendContext,
    config: &LogConfig,
    now: TimestampMs,
) -> Result<CheckedBatch, ValidationError> {
    let options = ValidationOptions {
        origin: context.origin,
        config,
        now,
    };
    let validated = validate(&mut batch, &options)?;
    let mut checked = CheckedBatch {
        batch,
        header: validated.header,
        log_append_time: validated.log_append_time,
        is_copied: false,
    };
    if context.origin == super::AppendOrigin::Client
        && let Some(codec) = wants_recompression(&checked.header, config)
    {
        checked.batch = recompress(&checked.batch, codec, config)?;
        checked.header = BatchHeader::parse(&checked.batch).map_err(ValidationError::Corrupt)?;
        checked.is_copied = true;
    }
    Ok(checked)
}

impl Log {
    /// Validates a batch before its append. The caller has the log's turn, so that batches that
    /// go to the pool keep their order.
    pub(crate) async fn check_batch(
        self: &Rc<Self>,
        batch: BytesMut,
        context: &AppendContext,
    ) -> Result<CheckedBatch, AppendError> {
        let config = self.config();
        if batch.len() > LENGTH_MAX {
            let limit = config.max_message_bytes.min(LENGTH_MAX);
            return Err(AppendError::TooLarge {
                bytes: batch.len(),
                limit,
            });
        }
        let now = io::wall_clock();
        let is_for_pool = BatchHeader::parse(&batch).is_ok_and(|header| is_heavy(&header, &config));
        if !is_for_pool {
            return Ok(check(batch, context, &config, now)?);
        }
        let (config, context) = (LogConfig::clone(&config), *context);
        let checked = io::run_on_pool(move || check(batch, &context, &config, now)).await;
        match checked {
            Ok(checked) => Ok(checked?),
            // A panic in there is a bug of ours that this batch found; the log is untouched.
            Err(error) => Err(AppendError::Invalid {
                code: ErrorCode::UNKNOWN_SERVER_ERROR,
                message: LogError::io("validating a batch", error).to_string(),
                faults: Vec::new(),
            }),
        }
    }
}
