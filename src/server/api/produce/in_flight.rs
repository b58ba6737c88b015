//! A produce whose batches are with their owners: gathers their outcomes into the response.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::metering::Metering;
use crate::base::error_code::ErrorCode;
use crate::base::few::Few;
use crate::base::ids::{CorrelationId, TopicPartition};
use crate::cluster::quotas::limits::Limit;
use crate::io::reply::ReplyReceiver;
use crate::log::AppendError;
use crate::partition::{
    AppendFailure, AppendOutcome, AppendReply, AppendTimes, PartitionError, RequiredAcks,
    error_is_of_records,
};
use crate::server::api::encode;
use crate::server::api::leaders::NamedLeaders;
use crate::server::connection::{Answer, CloseReason, Outcome};
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::produce::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
    ProduceResponse,
};

/// Where a partition's answer stands in the response.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    topic: u32,
    partition: u32,
}

impl Place {
    /// The place of partition `partition` of topic `topic`, as the request orders them.
    #[must_use]
    pub fn new(topic: usize, partition: usize) -> Self {
        // A request of 100 MiB holds fewer partitions than a u32 counts.
        let narrow = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        Self {
            topic: narrow(topic),
            partition: narrow(partition),
        }
    }
}

/// The outcomes that one owner still owes.
pub struct Wait {
    outcomes: Option<ReplyReceiver<AppendReply>>,
    places: Few<Place>,
}

impl Wait {
    /// Outcomes that belong to `places`, in their order.
    #[must_use]
    pub fn new(outcomes: ReplyReceiver<AppendReply>, places: Few<Place>) -> Self {
        Self {
            outcomes: Some(outcomes),
            places,
        }
    }
}

/// One produce request under way.
pub struct ProduceInFlight {
    context: Rc<RequestContext>,
    version: i16,
    correlation_id: CorrelationId,
    required_acks: RequiredAcks,
    response: ProduceResponse,
    waits: Few<Wait>,
    /// Of the part that was answered last.
    times: AppendTimes,
    /// How long the owners were at all parts.
    busy: Duration,
    metering: Option<Box<Metering>>,
}

impl ProduceInFlight {
    /// A request whose response is filled in as the outcomes come.
    #[must_use]
    pub fn new(
        context: &Rc<RequestContext>,
        header: &RequestHeader,
        (response, waits): (ProduceResponse, Few<Wait>),
        required_acks: RequiredAcks,
    ) -> Self {
        Self {
            context: Rc::clone(context),
            version: header.api_version,
            correlation_id: header.correlation_id,
            required_acks,
            response,
            waits,
            times: AppendTimes::default(),
            busy: Duration::ZERO,
            metering: None,
        }
    }

    /// Has its threads' time counted towards a limit.
    pub fn meter(&mut self, limit: Limit, client_id: Option<String>) {
        self.metering = Some(Box::new(Metering::new(limit, client_id)));
    }

    /// The outcome once every owner has answered.
    pub fn poll_outcome(&mut self, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut missing = false;
        for wait in self.waits.as_mut_slice() {
            let Some(outcomes) = &mut wait.outcomes else {
                continue;
            };
            match Pin::new(outcomes).poll(context) {
                Poll::Pending => missing = true,
                Poll::Ready(answer) => {
                    wait.outcomes = None;
                    let outcomes = answer.map(|answer| {
                        self.busy += answer.times.busy;
                        if answer.times.answered_at >= self.times.answered_at {
                            self.times = answer.times;
                        }
                        answer.outcomes
                    });
                    fill(&mut self.response, wait.places.as_slice(), outcomes);
                }
            }
        }
        if missing {
            return Poll::Pending;
        }
        if let Some(metering) = &mut self.metering {
            let Poll::Ready(wait) = metering.poll(&self.context, self.busy, context) else {
                return Poll::Pending;
            };
            let ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
            self.response.throttle_time_ms = self.response.throttle_time_ms.max(ms);
            self.metering = None;
        }
        Poll::Ready(self.finish())
    }

    fn finish(&mut self) -> Outcome {
        if self.required_acks == RequiredAcks::None {
            return self.finish_silently();
        }
        if self.version >= 10 {
            self.name_leaders();
        }
        let mut outcome = encode(&self.response, self.version, self.correlation_id);
        if let Ok(answer) = &mut outcome {
            answer.times = self.times.stages();
        }
        outcome
    }

    fn finish_silently(&self) -> Outcome {
        let topics = self.response.responses.iter();
        let mut partitions = topics.flat_map(|topic| &topic.partition_responses);
        match partitions.find(|partition| !partition.error_code.is_none()) {
            Some(failed) => Err(CloseReason::SilentProduceFailed(failed.error_code)),
            None => Ok(Answer {
                times: self.times.stages(),
                ..Answer::default()
            }),
        }
    }

    fn name_leaders(&mut self) {
        let image = self.context.image();
        let mut leaders = NamedLeaders::default();
        for topic in &mut self.response.responses {
            for partition in &mut topic.partition_responses {
                if partition.error_code != ErrorCode::NOT_LEADER_OR_FOLLOWER {
                    continue;
                }
                let topic_id = if self.version >= 13 {
                    Some(topic.topic_id)
                } else {
                    image.topics().by_name(&topic.name).map(|topic| topic.id)
                };
                let Some(topic_id) = topic_id else { continue };
                let id = TopicPartition {
                    topic_id,
                    partition: partition.index,
                };
                if let Some((leader_id, leader_epoch)) = leaders.name(&self.context, &image, id) {
                    partition.current_leader = LeaderIdAndEpoch {
                        leader_id,
                        leader_epoch,
                    };
                }
            }
        }
        let endpoints = leaders.into_endpoints();
        self.response.node_endpoints = endpoints
            .map(|(node_id, host, port, rack)| NodeEndpoint {
                node_id,
                host,
                port,
                rack,
            })
            .collect();
    }
}

fn partition_at(
    response: &mut ProduceResponse,
    place: Place,
) -> Option<&mut PartitionProduceResponse> {
    let topic = response.responses.get_mut(place.topic as usize)?;
    topic.partition_responses.get_mut(place.partition as usize)
}

fn fill(response: &mut ProduceResponse, places: &[Place], answer: Option<Few<AppendOutcome>>) {
    let Some(outcomes) = answer else {
        // The owner is shutting down.
        for place in places {
            if let Some(partition) = partition_at(response, *place) {
                partition.error_code = ErrorCode::NOT_LEADER_OR_FOLLOWER;
            }
        }
        return;
    };
    for (place, outcome) in places.iter().zip(outcomes) {
        let Some(partition) = partition_at(response, *place) else {
            continue;
        };
        match outcome {
            Ok(appended) => {
                partition.base_offset = appended.base_offset;
                partition.log_append_time_ms = appended.log_append_time;
                partition.log_start_offset = appended.log_start_offset;
            }
            Err(failure) => fill_failure(partition, &failure),
        }
    }
}

/// Kafka tells a text only where the records were at fault (`RecordValidationException`), and then
/// names those that were (KIP-467).
fn fill_failure(partition: &mut PartitionProduceResponse, failure: &AppendFailure) {
    partition.error_code = failure.error.error_code();
    partition.log_start_offset = failure.log_start_offset;
    if let PartitionError::Append(AppendError::Invalid {
        code,
        message,
        faults,
    }) = &failure.error
        && error_is_of_records(*code)
    {
        partition.error_message = Some(message.clone());
        let faults = faults.iter();
        partition.record_errors = faults
            .map(|fault| BatchIndexAndErrorMessage {
                batch_index: fault.batch_index,
                batch_index_error_message: Some(fault.message()),
            })
            .collect();
    }
}
