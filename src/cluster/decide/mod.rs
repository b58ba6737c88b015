//! What an operation changes: pure functions from the image and a request to the records that the
//! log shall hold and the response that waits until it does. Time and randomness come in as
//! arguments; nothing here does I/O.

mod create_topics;
mod delete_topics;
mod placement;
mod producer_ids;
mod startup;
pub mod topic_names;

use crate::base::error_code::ErrorCode;
use crate::cluster::records::MetadataRecord;

pub use create_topics::{CreateTopicsContext, create_topics};
pub use delete_topics::delete_topics;
pub use producer_ids::{PRODUCER_ID_BLOCK_LEN, ProducerIdBlock, next_producer_id_block};
pub use startup::{
    METADATA_VERSIONS, NodeRegistration, bootstrap_records, shutdown_records, startup_records,
};

/// Most records of one operation, which stand in one batch and so count all or not at all
/// (`QuorumController.MAX_RECORDS_PER_USER_OP`).
pub const RECORDS_PER_OPERATION_MAX: usize = 10_000;

/// What an operation came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<R> {
    /// To be appended in one batch; empty when nothing changes.
    pub records: Vec<MetadataRecord>,
    /// To be sent once the records are durable and applied.
    pub response: R,
}

/// Why one topic of a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFault {
    /// Kafka's code.
    pub code: ErrorCode,
    /// What the user is told.
    pub message: String,
}

impl TopicFault {
    /// A fault with what the user is told.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }
}
