//! Blocks of producer ids (`ProducerIdControlManager`): a block belongs to one asker for good, so
//! that no id is given out twice whatever crashes.

use crate::base::ids::{BrokerEpoch, BrokerId, ProducerId};
use crate::cluster::decide::Decision;
use crate::cluster::image::Image;
use crate::cluster::records::{MetadataRecord, ProducerIdsRecord};

/// Ids in a block (`ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`).
pub const PRODUCER_ID_BLOCK_LEN: i64 = 1_000;

/// A run of producer ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdBlock {
    /// The first id.
    pub first: ProducerId,
    /// How many ids.
    pub len: i64,
}

/// The next block; `None` when there are no ids left.
#[must_use]
pub fn next_producer_id_block(
    image: &Image,
    broker: BrokerId,
    broker_epoch: BrokerEpoch,
) -> Option<Decision<ProducerIdBlock>> {
    let first = image.next_producer_id();
    let next = first.0.checked_add(PRODUCER_ID_BLOCK_LEN)?;
    let record = ProducerIdsRecord {
        broker_id: broker,
        broker_epoch,
        next_producer_id: ProducerId(next),
    };
    Some(Decision {
        records: vec![MetadataRecord::ProducerIds(record)],
        response: ProducerIdBlock {
            first,
            len: PRODUCER_ID_BLOCK_LEN,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_follow_one_another_and_end_with_the_ids() {
        let mut image = Image::new("cluster", BrokerId(1));
        for block in 0..3 {
            let decision =
                next_producer_id_block(&image, BrokerId(1), BrokerEpoch(4)).expect("ids are left");
            assert_eq!(decision.response.first.0, block * PRODUCER_ID_BLOCK_LEN);
            for record in &decision.records {
                image.apply(record).expect("fits");
            }
        }
        let last = ProducerIdsRecord {
            next_producer_id: ProducerId(i64::MAX - PRODUCER_ID_BLOCK_LEN),
            ..ProducerIdsRecord::default()
        };
        image.apply(&MetadataRecord::ProducerIds(last)).unwrap();
        assert!(next_producer_id_block(&image, BrokerId(1), BrokerEpoch(4)).is_some());
        let past = ProducerIdsRecord {
            next_producer_id: ProducerId(i64::MAX - PRODUCER_ID_BLOCK_LEN + 1),
            ..ProducerIdsRecord::default()
        };
        image.apply(&MetadataRecord::ProducerIds(past)).unwrap();
        assert_eq!(
            next_producer_id_block(&image, BrokerId(1), BrokerEpoch(4)),
            None
        );
    }
}
