//! InitProducerId (22), versions 0 to 5: a producer id for an idempotent or transactional producer.
//!
//! - Version 2 is flexible, 3 lets a producer keep its id with a new epoch (KIP-360), 4 allows
//!   PRODUCER_FENCED (KIP-588), 5 TRANSACTION_ABORTABLE (KIP-890).
//!
//! Not served: version 6 (two-phase commit, KIP-939), which Kafka itself calls unstable.

use crate::base::error_code::ErrorCode;
use crate::base::ids::{ProducerEpoch, ProducerId};
use crate::wire::codec::message;

message! {
    /// Who wants an id.
    pub struct InitProducerIdRequest(api_key 22, versions 0..=5, flexible 2) {
        /// Null for a producer that is idempotent only.
        transactional_id: Option<String> => 0.., nullable 0.., default Some(String::new());
        /// When the coordinator may abort the transaction, in milliseconds.
        transaction_timeout_ms: i32 => 0..;
        /// The id the producer has; -1 when it has none.
        producer_id: ProducerId => 3.., default ProducerId::NONE;
        producer_epoch: ProducerEpoch => 3.., default ProducerEpoch::NONE;
    }

    /// The id to put into batches.
    pub struct InitProducerIdResponse(api_key 22, versions 0..=5, flexible 2) {
        throttle_time_ms: i32 => 0..;
        error_code: ErrorCode => 0..;
        producer_id: ProducerId => 0.., default ProducerId::NONE;
        producer_epoch: ProducerEpoch => 0..;
    }
}
