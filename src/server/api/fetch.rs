//! Fetch (1), versions 4 to 18 (KIP-74, KIP-227, KIP-320, KIP-516, KIP-595, KIP-951).
//!
//! The request is merged with its session, grouped by the shards that own its partitions, and read
//! there; one message a shard. Too little found parks it: as waiters on the partitions' ends, with
//! one deadline here. A wake reads again only what moved. The response carries the log's own
//! slices.
//!
//! Answered at once: an error of a partition that was read, a diverging epoch, `min_bytes`
//! reached, no time to wait. An unknown topic is not one of these, as in Kafka.
//!
//! An isolation level that there is not fails the whole request with UNKNOWN_SERVER_ERROR once a
//! partition is known, as in Kafka (`IsolationLevel.forId`).
//!
//! A replica id below 0 is a consumer, -2 (kafka-replica-verification) included. A follower gets
//! NOT_LEADER_OR_FOLLOWER.
//!
//! A client past a limit gets an answer without partitions that tells for how long it is to wait.
//! What alone is more than a limit ever allows is given once nothing else was; Kafka never gives
//! it.
//!
//! Not implemented: followers, aborted transactions (there are none), preferred read replicas
//! (KIP-392: always -1).

mod limits;
mod response;
mod run;
mod targets;
mod throttle;

use std::mem::size_of;

use bytes::Bytes;

use super::{ANSWER_MEMORY_WAIT, encode};
use crate::base::time::MonotonicNs;
use crate::io;
use crate::metrics::StageTimes;
use crate::partition::Isolation;
use crate::server::connection::{Answer, CloseReason, Outcome};
use crate::server::context::RequestContext;
use crate::server::fetch_session::FetchPlan;
use crate::shard::Credit;
use crate::wire::header::RequestHeader;
use crate::wire::messages::fetch::{FetchRequest, FetchResponse};
use crate::wire::primitives::RecordSlices;
use run::{Charge, FetchRun};
use targets::{Target, resolve, session_request};
use throttle::FetchLimits;

/// What a partition takes while a fetch of it is under way: as it is asked, read, parked and
/// answered. Its records are charged apart.
const PARTITION_BYTES: usize = 640;
/// Fetches of no more partitions are not charged for them: what is kept of a connection covers it.
const PARTITIONS_UNCHARGED: usize = 32;

/// What a fetch asks beside its partitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct FetchParameters {
    isolation: Isolation,
    deadline: MonotonicNs,
    may_wait: bool,
    min_bytes: usize,
    max_bytes: usize,
    is_follower: bool,
}

impl FetchParameters {
    fn of(context: &RequestContext, request: &FetchRequest) -> Self {
        let replica = request.replica_id.0.max(request.replica_state.replica_id.0);
        let positive = |value: i32| usize::try_from(value).unwrap_or(0);
        let max_bytes = positive(request.max_bytes).min(context.config().fetch_bytes_max);
        let wait_ms = u64::try_from(request.max_wait_ms).unwrap_or(0);
        Self {
            isolation: Isolation::of_consumer(request.isolation_level)
                .unwrap_or(Isolation::HighWatermark),
            deadline: io::now().after(std::time::Duration::from_millis(wait_ms)),
            may_wait: wait_ms > 0,
            min_bytes: positive(request.min_bytes).min(max_bytes),
            max_bytes,
            is_follower: replica >= 0,
        }
    }
}

/// Answers a fetch; may wait for `max_wait_ms`.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: FetchRequest,
) -> Outcome {
    let version = header.api_version;
    let mut parameters = FetchParameters::of(context, &request);
    let limits = FetchLimits::of(context, header.client_id.as_deref());
    limits.curtail(context, &mut parameters);
    let has_level = Isolation::of_consumer(request.isolation_level).is_some();
    let refusal = (!has_level).then(|| response::refused(&request, version));
    let session = session_request(request, version);
    let plan = context.node().sessions().begin(session, io::now());
    let (response, charge, times) = match plan {
        Ok(plan) if !has_level && targets::knows_any(context, &plan.targets) => {
            (refusal.unwrap_or_default(), None, StageTimes::default())
        }
        Ok(plan) => {
            let overhead = charge(context, plan.targets.len()).await?;
            answer(context, &plan, (parameters, limits, overhead), version).await
        }
        Err(error_code) => {
            let response = FetchResponse {
                error_code,
                ..FetchResponse::default()
            };
            (response, None, StageTimes::default())
        }
    };
    let mut answer = encode(&response, version, header.correlation_id)?;
    let heads = answer.bytes() - record_bytes(&response) + pieces_bytes(&answer);
    drop(response);
    answer.credit = charge.map(|charge| settle(charge, heads));
    answer.times = times;
    Ok(answer)
}

/// Waits for the memory that a fetch of so many partitions takes, whatever it finds.
async fn charge(
    context: &RequestContext,
    partitions: usize,
) -> Result<(Credit, usize), CloseReason> {
    let mut credit = context.node().shard().budget().credit();
    if partitions <= PARTITIONS_UNCHARGED {
        return Ok((credit, 0));
    }
    let bytes = partitions * PARTITION_BYTES;
    let deadline = io::now().after(ANSWER_MEMORY_WAIT);
    match credit.take_batch_answer(bytes, deadline).await {
        true => Ok((credit, bytes)),
        false => Err(CloseReason::NoMemory(bytes)),
    }
}

/// The fetch is over; until its answer has left it takes `heads` beside the records.
fn settle(charge: Charge, heads: usize) -> Credit {
    let mut credit = charge.credit;
    let bytes = charge.records_bytes + heads;
    if credit.bytes() >= bytes {
        credit.shrink(bytes);
    } else if credit.is_overdrawn() || heads > PARTITIONS_UNCHARGED * PARTITION_BYTES {
        // It is made already, and is charged as far as there is anything.
        credit.cover(bytes);
    }
    credit
}

fn record_bytes(response: &FetchResponse) -> usize {
    let topics = response.responses.iter();
    let partitions = topics.flat_map(|topic| &topic.partitions);
    let records = partitions.filter_map(|partition| partition.records.as_ref());
    records.map(RecordSlices::len).sum()
}

fn pieces_bytes(answer: &Answer) -> usize {
    answer.pieces.len() * size_of::<Bytes>()
}

async fn answer(
    context: &RequestContext,
    plan: &FetchPlan,
    (parameters, limits, overhead): (FetchParameters, FetchLimits<'_>, (Credit, usize)),
    version: i16,
) -> (FetchResponse, Option<Charge>, StageTimes) {
    let targets: Vec<Target> = resolve(context, &plan.targets, parameters.is_follower);
    let mut run = FetchRun::new(context, targets, parameters, overhead);
    run.read_until_enough().await;
    let (targets, charge, times) = run.finish();
    if limits.counts() {
        // Few have limits: what they need takes no room in the task of all.
        let charged = Box::pin(limits.charge(context, &targets));
        if let Some(wait) = charged.await {
            let response = response::throttled(context, plan, wait);
            drop(targets);
            return (response, Some(charge), times);
        }
    }
    let response = response::build(context, (plan, version, parameters.isolation), targets);
    (response, Some(charge), times)
}
