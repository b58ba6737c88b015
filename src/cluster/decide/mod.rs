//! What an operation changes: pure functions from the image and a request to the records that the
//! log shall hold and the response that waits until it does. Time and randomness come in as
//! arguments; nothing here does I/O.

mod alter_client_quotas;
pub mod alter_configs;
pub mod client_metrics;
mod client_quotas;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod directories;
mod elect_leaders;
mod features;
mod message_room;
mod placement;
mod preferred;
mod producer_ids;
mod reassign;
mod startup;
pub mod topic_names;

use crate::base::error_code::ErrorCode;
use crate::base::limits::REFUSAL_MESSAGE_BYTES_MAX;
use crate::cluster::records::MetadataRecord;
use crate::wire::primitives::STRING_BYTES_MAX;

pub use alter_client_quotas::alter_quotas;
pub use client_quotas::describe_quotas;
pub use create_partitions::create_partitions;
pub use create_topics::{CreateTopicsContext, create_topics};
pub use delete_topics::delete_topics;
pub use directories::{LocalDirectories, assign_directory, directory_failed, not_at_hand};
pub use elect_leaders::elect_leaders;
pub use features::{FeaturesContext, KRAFT_VERSION, KRAFT_VERSIONS, update_features};
pub use preferred::{PREFERRED_MAX, PreferredDirectories};
pub use producer_ids::{PRODUCER_ID_BLOCK_LEN, ProducerIdBlock, next_producer_id_block};
pub use reassign::{alter_reassignments, list_reassignments};
pub use startup::{
    METADATA_VERSION_DIRECTORIES, METADATA_VERSIONS, NodeRegistration, bootstrap_records,
    shutdown_records, startup_records,
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

/// Why one topic or other resource of a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Kafka's code.
    pub code: ErrorCode,
    /// What the user is told.
    pub message: String,
}

impl Refusal {
    /// A fault with what the user is told. A message that would not fit an answer, for it quotes
    /// what came, is cut.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > REFUSAL_MESSAGE_BYTES_MAX {
            let mut end = REFUSAL_MESSAGE_BYTES_MAX;
            while !message.is_char_boundary(end) {
                end -= 1;
            }
            message.truncate(end);
        }
        Self { code, message }
    }
}

const _: () = assert!(REFUSAL_MESSAGE_BYTES_MAX <= STRING_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_whole_at_its_limit_and_cut_above_it() {
        let of = |text: String| Refusal::new(ErrorCode::INVALID_CONFIG, text).message.len();
        assert_eq!(
            of("x".repeat(REFUSAL_MESSAGE_BYTES_MAX)),
            REFUSAL_MESSAGE_BYTES_MAX
        );
        let longer = "x".repeat(REFUSAL_MESSAGE_BYTES_MAX + 1);
        assert_eq!(of(longer), REFUSAL_MESSAGE_BYTES_MAX);
        let split = format!("{}é", "x".repeat(REFUSAL_MESSAGE_BYTES_MAX - 1));
        assert_eq!(of(split), REFUSAL_MESSAGE_BYTES_MAX - 1);
    }
}
