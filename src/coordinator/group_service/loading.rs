//! A partition of `__consumer_offsets` read into a coordinator.
//!
//! Offsets that a transaction of another broker committed count when its marker says so; those
//! whose transaction was aborted or is open are left out.

use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use thiserror::Error;

use super::GroupServiceOptions;
use crate::base::ids::{LeaderEpoch, Offset, ProducerId, TopicPartition};
use crate::coordinator::group::{GroupCoordinator, Record};
use crate::coordinator::group_records;
use crate::io;
use crate::partition::{Isolation, PartitionError, ReadBounds, ReadSpec};
use crate::shard::Shard;
use crate::wire::compression::{Codec, DecodeLimits, Decoder, DecompressError};
use crate::wire::primitives::DecodeError;
use crate::wire::record::{RecordError, RecordIter};
use crate::wire::record_batch::{
    BatchError, BatchHeader, ControlRecordType, HEADER_BYTES, parse_control_key,
};

/// Records of one compressed batch may come to so much: far more than a group's record may have.
const BATCH_BYTES_MAX: usize = 64 << 20;

/// Why a partition cannot be loaded.
#[derive(Debug, Error)]
pub enum LoadFault {
    /// The partition cannot be read.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// A batch is not one.
    #[error("at offset {0}: {1}")]
    Batch(Offset, BatchError),
    /// A batch does not decompress.
    #[error("at offset {0}: {1}")]
    Decompress(Offset, DecompressError),
    /// A batch's records are none.
    #[error("at offset {0}: {1}")]
    Record(Offset, RecordError),
    /// A record is not one of a group.
    #[error("at offset {0}: {1}")]
    Decode(Offset, DecodeError),
}

/// Reads the partition from its start to its durable end.
pub async fn load(
    shard: &Rc<Shard>,
    id: TopicPartition,
    options: &GroupServiceOptions,
) -> Result<GroupCoordinator, LoadFault> {
    let partition = shard.partition(id).ok_or(PartitionError::Unknown)?;
    let mut loader = Loader {
        coordinator: GroupCoordinator::new(options.groups.clone(), &options.memory),
        open: HashMap::new(),
    };
    let mut next = partition.log().log_start_offset();
    loop {
        let end = partition.visible_end(Isolation::LogEnd);
        if next >= end {
            break;
        }
        let spec = ReadSpec {
            partition: id,
            place: 0,
            fetch_offset: next,
            current_leader_epoch: LeaderEpoch::NONE,
            last_fetched_epoch: LeaderEpoch::NONE,
            max_bytes: options.load_bytes,
        };
        let bounds = ReadBounds {
            isolation: Isolation::LogEnd,
            max_bytes: options.load_bytes,
            memory_max: options.load_bytes,
            first_batch_max: usize::MAX,
        };
        let read = partition.read(&spec, bounds).await;
        let slices = read.records?;
        let before = next;
        for slice in slices {
            next = loader.take(slice, next)?;
        }
        if next == before {
            // What compaction left of the last batches may be nothing at all.
            break;
        }
        io::yield_now().await;
    }
    Ok(loader.coordinator)
}

struct Loader {
    coordinator: GroupCoordinator,
    /// Records of transactions that have no marker yet.
    open: HashMap<ProducerId, Vec<Record>>,
}

impl Loader {
    /// Takes whole batches; answers the offset after the last.
    fn take(&mut self, mut batches: Bytes, from: Offset) -> Result<Offset, LoadFault> {
        let mut next = from;
        while !batches.is_empty() {
            let header = BatchHeader::parse(&batches);
            let header = header.map_err(|fault| LoadFault::Batch(next, fault))?;
            let len = header.total_bytes().min(batches.len());
            let batch = batches.split_to(len);
            // A read begins with the batch that holds its offset.
            if header.last_offset() >= from {
                self.take_batch(&header, &batch)?;
                next = header.last_offset().plus(1);
            }
        }
        Ok(next)
    }

    fn take_batch(&mut self, header: &BatchHeader, batch: &Bytes) -> Result<(), LoadFault> {
        let at = header.base_offset;
        let body = batch.slice(HEADER_BYTES.min(batch.len())..);
        let records = decompressed(header, body)?;
        for record in RecordIter::new(&records, header.record_count) {
            let record = record.map_err(|fault| LoadFault::Record(at, fault))?;
            if header.attributes.is_control() {
                self.end_transaction(header.producer_id, record.key);
                continue;
            }
            let Some(key) = record.key else { continue };
            let key = Bytes::copy_from_slice(key);
            let value = record.value.map(Bytes::copy_from_slice);
            let record = group_records::decode(key, value);
            let record = record.map_err(|fault| LoadFault::Decode(at, fault))?;
            let Some(record) = record else { continue };
            if header.attributes.is_transactional() {
                let open = self.open.entry(header.producer_id).or_default();
                open.push(record);
            } else {
                self.coordinator.replay(record);
            }
        }
        Ok(())
    }

    fn end_transaction(&mut self, producer_id: ProducerId, key: Option<&[u8]>) {
        let records = self.open.remove(&producer_id).unwrap_or_default();
        if key.and_then(parse_control_key) == Some(ControlRecordType::Commit) {
            for record in records {
                self.coordinator.replay(record);
            }
        }
    }
}

fn decompressed(header: &BatchHeader, body: Bytes) -> Result<Bytes, LoadFault> {
    let at = header.base_offset;
    let codec = header.attributes.codec();
    let codec = codec.map_err(|fault| LoadFault::Batch(at, fault))?;
    if codec == Codec::None {
        return Ok(body);
    }
    let limits = DecodeLimits::for_message_bytes_max(BATCH_BYTES_MAX);
    let mut records = Vec::new();
    Decoder::new(codec, &body, limits)
        .and_then(|mut decoder| decoder.read_to_end(&mut records))
        .map_err(|fault| LoadFault::Decompress(at, fault))?;
    Ok(records.into())
}
