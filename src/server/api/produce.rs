//! Produce (0), versions 3 to 13 (KIP-98, KIP-467, KIP-516, KIP-951).
//!
//! A request's batches are judged by their headers alone here, then handed to the shards that own
//! their partitions, before the connection parses its next request: appends of one connection keep
//! its order. The answer leaves when every batch is as durable as `acks` asks, or is refused by its
//! owner: one that finds no room in time is REQUEST_TIMED_OUT and not in the log, and what is in
//! the log is told as such, even where its disk takes longer than the request's timeout: Kafka's
//! timeout too is one for replicas and bounds no write. With acks=0 nothing
//! is sent, and a failure closes the connection (`KafkaApis.handleProduceRequest`).
//!
//! Its client's limits are those of bytes, which are counted before a request is started, and of
//! threads' time: what it takes to read the request and to append its batches.
//!
//! Null records: Kafka never answers; here they are INVALID_RECORD. A refusal by the log comes with
//! its text also where Kafka keeps it to itself (a base offset that is not 0). The records at fault
//! are listed up to a limit (`RECORD_ERRORS_MAX`), where Kafka lists all.
//!
//! Not implemented: transactions; a transactional batch gets INVALID_TXN_STATE.

mod check;
mod in_flight;
mod metering;

use std::rc::Rc;
use std::time::Duration;

pub use check::check_records;
pub use in_flight::ProduceInFlight;

use super::decode;
use crate::base::error_code::ErrorCode;
use crate::base::few::Few;
use crate::base::ids::{Offset, ShardId, TopicPartition};
use crate::base::time::MonotonicNs;
use crate::cluster::image::{Image, TopicImage};
use crate::cluster::quotas::QuotaKind;
use crate::io;
use crate::io::reply::reply_slot;
use crate::log::{AppendOrigin, BufferBytes};
use crate::metrics::Visit;
use crate::partition::RequiredAcks;
use crate::server::connection::{CloseReason, Progress};
use crate::server::context::RequestContext;
use crate::shard::{AppendEntry, AppendMessage, ShardMessage};
use crate::wire::header::RequestHeader;
use crate::wire::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse,
    TopicProduceData, TopicProduceResponse,
};
use crate::wire::primitives::Reader;
use in_flight::{Place, Wait};

/// A request's own timeout is not shorter than this. Kafka appends in memory within any timeout,
/// so that clients may name 0; a durable write takes its time.
const TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// Topics that only coordinators write (`Topic.isInternal`).
const INTERNAL_TOPICS: [&str; 3] = [
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
];

/// What is wrong with the one batch whose header alone shows that it is corrupt.
const TOO_SHORT: &str = "the length of the batch is smaller than that of any record";

/// Batches on their way to one shard.
struct Outgoing {
    owner: ShardId,
    entries: Few<AppendEntry>,
    places: Few<Place>,
}

/// Hands the batches of a request to their owners.
pub fn start(
    context: &Rc<RequestContext>,
    header: &RequestHeader,
    mut reader: Reader,
    throttle: Duration,
) -> Result<Progress, CloseReason> {
    let limit = context.limit(QuotaKind::Request, header.client_id.as_deref());
    let frame_bytes = reader.remaining();
    let request: ProduceRequest = decode(&mut reader, header)?;
    let timeout = u64::try_from(request.timeout_ms).unwrap_or(0);
    let timeout = Duration::from_millis(timeout).max(TIMEOUT_MIN);
    let deadline = io::now().after(timeout);
    let (required_acks, refusal) = match request.acks {
        0 => (RequiredAcks::None, None),
        1 => (RequiredAcks::Leader, None),
        -1 => (RequiredAcks::All, None),
        _ => (RequiredAcks::Leader, Some(ErrorCode::INVALID_REQUIRED_ACKS)),
    };
    let mut sorter = Sorter {
        context,
        version: header.api_version,
        transactional_id: request.transactional_id,
        refusal,
        outgoing: Few::None,
        batch_bytes: 0,
    };
    let image = context.node().image_ref();
    let topics = request.topic_data.into_iter().enumerate();
    let responses = topics
        .map(|(place, topic)| sorter.sort_topic(&image, topic, place))
        .collect();
    drop(image);
    sorter.share_out(frame_bytes);
    let waits = send_all(context, sorter.outgoing, (required_acks, deadline));
    let response = ProduceResponse {
        responses,
        throttle_time_ms: i32::try_from(throttle.as_millis()).unwrap_or(i32::MAX),
        ..ProduceResponse::default()
    };
    let mut in_flight = ProduceInFlight::new(context, header, (response, waits), required_acks);
    if let Some(limit) = limit {
        in_flight.meter(limit, header.client_id.clone());
    }
    Ok(Progress::Produce(in_flight))
}

fn send_all(
    context: &RequestContext,
    outgoing: Few<Outgoing>,
    (required_acks, deadline): (RequiredAcks, MonotonicNs),
) -> Few<Wait> {
    let shard = context.node().shard();
    let mut waits = Few::None;
    for outgoing in outgoing {
        let (reply, outcomes) = reply_slot();
        let message = AppendMessage {
            entries: outgoing.entries,
            required_acks,
            origin: AppendOrigin::Client,
            deadline,
            from: shard.id(),
            visit: Visit::sent(io::now()),
            reply,
        };
        shard.send(outgoing.owner, ShardMessage::Append(message));
        waits.push(Wait::new(outcomes, outgoing.places));
    }
    waits
}

struct Sorter<'a> {
    context: &'a RequestContext,
    version: i16,
    transactional_id: Option<String>,
    refusal: Option<ErrorCode>,
    outgoing: Few<Outgoing>,
    batch_bytes: usize,
}

impl Sorter<'_> {
    /// Charges the frame's buffer to the batches that keep it alive, each its part.
    fn share_out(&mut self, frame_bytes: usize) {
        for outgoing in self.outgoing.as_mut_slice() {
            for entry in outgoing.entries.as_mut_slice() {
                let part = entry.batch.len() as u128 * frame_bytes as u128;
                let part = part / self.batch_bytes.max(1) as u128;
                entry.buffer_bytes.part = usize::try_from(part).unwrap_or(frame_bytes);
            }
        }
        let first = self.outgoing.as_mut_slice().first_mut();
        if let Some(entry) = first.and_then(|first| first.entries.as_mut_slice().first_mut()) {
            entry.buffer_bytes.abandoned = self.context.take_abandoned();
        }
    }

    fn sort_topic(
        &mut self,
        image: &Image,
        data: TopicProduceData,
        place: usize,
    ) -> TopicProduceResponse {
        let by_id = self.version >= 13;
        let topic = if by_id {
            image.topics().by_id(data.topic_id)
        } else {
            image.topics().by_name(&data.name)
        };
        let unknown = if by_id {
            ErrorCode::UNKNOWN_TOPIC_ID
        } else {
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        };
        let partitions = data.partition_data.into_iter().enumerate();
        let partition_responses = partitions
            .map(|(index, data)| {
                let number = data.index;
                let sorted = match topic {
                    Some(topic) => self.sort(topic, data, Place::new(place, index)),
                    None => Err(unknown),
                };
                let error_code = sorted.err().unwrap_or(ErrorCode::NONE);
                // Kafka tells a text here for this code alone.
                let is_corrupt = error_code == ErrorCode::CORRUPT_MESSAGE;
                PartitionProduceResponse {
                    error_message: is_corrupt.then(|| TOO_SHORT.to_owned()),
                    index: number,
                    error_code,
                    base_offset: Offset(-1),
                    ..PartitionProduceResponse::default()
                }
            })
            .collect();
        TopicProduceResponse {
            name: data.name,
            topic_id: data.topic_id,
            partition_responses,
        }
    }

    /// Judges one batch in the order of Kafka's checks and queues it for its owner.
    fn sort(
        &mut self,
        topic: &TopicImage,
        data: PartitionProduceData,
        place: Place,
    ) -> Result<(), ErrorCode> {
        if topic.partition(data.index).is_none() {
            return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
        let mut batch = data.records.ok_or(ErrorCode::INVALID_RECORD)?;
        let transactional_id = self.transactional_id.as_deref();
        check_records(self.version, transactional_id, &mut batch)?;
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        if INTERNAL_TOPICS.contains(&&*topic.name) {
            return Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
        }
        let partition = TopicPartition {
            topic_id: topic.id,
            partition: data.index,
        };
        let owner = self.context.owner(partition)?;
        self.batch_bytes += batch.len();
        let entry = AppendEntry {
            partition,
            buffer_bytes: BufferBytes::default(),
            batch,
        };
        let mut known = self.outgoing.as_mut_slice().iter_mut();
        match known.find(|known| known.owner == owner) {
            Some(outgoing) => {
                outgoing.entries.push(entry);
                outgoing.places.push(place);
            }
            None => self.outgoing.push(Outgoing {
                owner,
                entries: Few::One(entry),
                places: Few::One(place),
            }),
        }
        Ok(())
    }
}
