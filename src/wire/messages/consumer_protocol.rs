//! What the members of a "consumer" group put into their metadata and assignments
//! (`ConsumerProtocol`), each behind a version of 2 bytes. A broker passes both on unread, except
//! for the topics that members are subscribed to: their offsets do not expire (KIP-211).

use bytes::Bytes;

use crate::base::ids::{GenerationId, PartitionIndex};
use crate::wire::codec::message;
use crate::wire::primitives::{DecodeError, Reader, Version, WireType};

message! {
    /// What a member wants to read.
    pub struct ConsumerProtocolSubscription(data, versions 0..=3) {
        topics: Vec<String> => 0..;
        user_data: Option<Bytes> => 0.., nullable 0..;
        /// What it has, for cooperative rebalancing (KIP-429).
        owned_partitions: Vec<TopicPartition> => 1.., ignorable;
        /// The generation in which it got that (KIP-792).
        generation_id: GenerationId => 2.., ignorable, default GenerationId::NONE;
        /// KIP-881.
        rack_id: Option<String> => 3.., nullable 3.., ignorable;
    }

    /// Partitions of one topic.
    pub struct TopicPartition {
        topic: String => 0..;
        partitions: Vec<PartitionIndex> => 0..;
    }

    /// What a member is to read.
    pub struct ConsumerProtocolAssignment(data, versions 0..=3) {
        assigned_partitions: Vec<TopicPartition> => 0..;
        user_data: Option<Bytes> => 0.., nullable 0..;
    }
}

/// The topics of a subscription. Whatever its version, it is read as the oldest: clients have sent
/// later ones whose other fields are not as they should be
/// (`GroupMetadataManager`, `ClassicGroup.computeSubscribedTopics`).
pub fn subscribed_topics(metadata: Bytes) -> Result<Vec<String>, DecodeError> {
    let mut reader = Reader::new(metadata);
    let _: [u8; 2] = reader.array()?;
    let oldest = Version {
        number: 0,
        flexible: false,
    };
    Ok(ConsumerProtocolSubscription::read(&mut reader, oldest)?.topics)
}
