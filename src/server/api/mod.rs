//! One file per API key. The head of each states the versions served, the behaviour, the KIPs, and
//! what is not implemented.
//!
//! A handler is
//! `pub async fn handle(context: &RequestContext, header: &RequestHeader, request: XxxRequest) ->
//! XxxResponse`. Dispatch decodes the request and encodes the response; an unsupported version or
//! an undecodable body never reaches a handler, and bytes after the last field are passed over, as
//! Kafka does. Errors are fields of the response, mapped from the layers' enums once, here. A
//! handler runs on the connection's shard and reaches the controller through `context.control()`,
//! other shards through their inboxes; it must not hold a `RefCell` borrow across an await. Of one
//! connection one handler runs at a time, and the next when its response has left; Produce requests
//! are pipelined beside it. Responses leave in request order.
//!
//! Two keys are no plain handlers: Produce hands its batches over before the next request is
//! parsed, so that appends keep the order of requests, and Fetch answers with the memory that its
//! records hold.

pub mod alter_client_quotas;
pub mod alter_configs;
pub mod alter_partition_reassignments;
pub mod alter_replica_log_dirs;
pub mod api_versions;
pub mod brokers;
pub mod config_changes;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_client_quotas;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_quorum;
pub mod describe_topic_partitions;
pub mod describe_user_scram_credentials;
pub mod elect_leaders;
pub mod fetch;
pub mod find_coordinator;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod join_group;
pub mod leaders;
pub mod leave_group;
pub mod list_config_resources;
pub mod list_groups;
pub mod list_offsets;
pub mod list_partition_reassignments;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod operations;
pub mod produce;
pub mod update_features;
pub mod sync_group;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use super::connection::{Answer, CloseReason, Outcome, Progress, guarded};
use super::context::RequestContext;
use crate::base::ids::CorrelationId;
use crate::base::limits::KIB;
use crate::cluster::quotas::QuotaKind;
use crate::io::{self, TaskClass};
use crate::metrics::Stage;
use crate::wire::api;
use crate::wire::codec::Message;
use crate::wire::frame::encode_response;
use crate::wire::header::RequestHeader;
use crate::wire::messages::api_versions::unsupported_version_response;
use crate::wire::messages::metadata::MetadataRequest;
use crate::wire::primitives::Reader;
use crate::wire::repeats::without_repeated_topics;

/// Answers up to this size are sent without memory of their own, so that clients of a small cluster
/// learn its state however many answers others leave unread.
const ANSWER_BYTES_UNCHARGED: usize = 64 * KIB;
/// How long a larger one waits for memory: as long as clients wait for an answer by default.
const ANSWER_MEMORY_WAIT: Duration = Duration::from_secs(30);

/// Starts a request whose header has been read. Never waits. A produce's client is told to wait for
/// `throttle`; what others have used is known when they are answered.
pub fn start(
    context: &Rc<RequestContext>,
    header: RequestHeader,
    reader: Reader,
    throttle: Duration,
) -> Result<Progress, CloseReason> {
    if !header.is_version_served() {
        let answer = encode(&unsupported_version_response(), 0, header.correlation_id);
        return Ok(Progress::Ready(answer));
    }
    let call = Call {
        context,
        header,
        reader,
    };
    match call.header.api_key.0 {
        0 => produce::start(call.context, &call.header, call.reader, throttle),
        1 => call.spawn(TaskClass::Fetch, fetch::handle),
        2 => call.answer(TaskClass::Fetch, list_offsets::handle),
        3 => (call.without_repeats()?).answer_within_memory(TaskClass::Fetch, metadata::handle),
        8 => call.answer(TaskClass::Fetch, offset_commit::handle),
        9 => call.answer_within_memory(TaskClass::Fetch, offset_fetch::handle),
        10 => call.answer(TaskClass::Fetch, find_coordinator::handle),
        11 => call.answer_after_others(TaskClass::Fetch, join_group::handle),
        12 => call.answer(TaskClass::Fetch, heartbeat::handle),
        13 => call.answer(TaskClass::Fetch, leave_group::handle),
        14 => call.answer_after_others(TaskClass::Fetch, sync_group::handle),
        15 => call.answer_within_memory(TaskClass::Fetch, describe_groups::handle),
        16 => call.answer_within_memory(TaskClass::Fetch, list_groups::handle),
        18 => call.answer(TaskClass::Fetch, api_versions::handle),
        19 => call.answer(TaskClass::Fetch, create_topics::handle),
        20 => call.answer(TaskClass::Fetch, delete_topics::handle),
        21 => call.answer(TaskClass::Fetch, delete_records::handle),
        22 => call.answer(TaskClass::Fetch, init_producer_id::handle),
        23 => call.answer(TaskClass::Fetch, offset_for_leader_epoch::handle),
        32 => call.answer_within_memory(TaskClass::Fetch, describe_configs::handle),
        33 => call.answer(TaskClass::Fetch, alter_configs::handle),
        34 => call.answer(TaskClass::Fetch, alter_replica_log_dirs::handle),
        35 => call.answer_within_memory(TaskClass::Fetch, describe_log_dirs::handle),
        37 => call.answer(TaskClass::Fetch, create_partitions::handle),
        42 => call.answer(TaskClass::Fetch, delete_groups::handle),
        43 => call.answer_within_memory(TaskClass::Fetch, elect_leaders::handle),
        44 => call.answer(TaskClass::Fetch, incremental_alter_configs::handle),
        45 => call.answer(TaskClass::Fetch, alter_partition_reassignments::handle),
        46 => call.answer_within_memory(TaskClass::Fetch, list_partition_reassignments::handle),
        47 => call.answer(TaskClass::Fetch, offset_delete::handle),
        48 => call.answer_within_memory(TaskClass::Fetch, describe_client_quotas::handle),
        49 => call.answer(TaskClass::Fetch, alter_client_quotas::handle),
        50 => call.answer(TaskClass::Fetch, describe_user_scram_credentials::handle),
        55 => call.answer(TaskClass::Fetch, describe_quorum::handle),
        57 => call.answer(TaskClass::Fetch, update_features::handle),
        60 => call.answer(TaskClass::Fetch, describe_cluster::handle),
        61 => call.answer_within_memory(TaskClass::Fetch, describe_producers::handle),
        74 => call.answer_within_memory(TaskClass::Fetch, list_config_resources::handle),
        75 => call.answer_within_memory(TaskClass::Fetch, describe_topic_partitions::handle),
        // Every key of the served table stands above; a key that does not is a fault of ours.
        _ => Err(unserved(&call.header)),
    }
}

fn unserved(header: &RequestHeader) -> CloseReason {
    crate::wire::header::HeaderError::UnsupportedApiKey(header.api_key).into()
}

struct Call<'a> {
    context: &'a Rc<RequestContext>,
    header: RequestHeader,
    reader: Reader,
}

impl Call<'_> {
    /// The same, each topic that a Metadata request names once where there are very many.
    fn without_repeats(self) -> Result<Self, CloseReason> {
        let reader = without_repeated_topics(self.reader, self.header.api_version);
        let reader = reader.map_err(|error| CloseReason::Body {
            api: api_name::<MetadataRequest>(),
            error,
        })?;
        Ok(Self { reader, ..self })
    }

    /// A handler that answers with a message.
    fn answer<Q, R, F>(self, class: TaskClass, handler: F) -> Result<Progress, CloseReason>
    where
        Q: Message + 'static,
        R: Message + 'static,
        F: AsyncFnOnce(&RequestContext, &RequestHeader, Q) -> R + 'static,
    {
        self.spawn(
            class,
            async move |context: &RequestContext, header: &RequestHeader, request| {
                let response = metered(context, header, handler(context, header, request)).await;
                encode(&response, header.api_version, header.correlation_id)
            },
        )
    }

    /// A handler that waits for what other clients do: that time counts as theirs.
    fn answer_after_others<Q, R, F>(
        self,
        class: TaskClass,
        handler: F,
    ) -> Result<Progress, CloseReason>
    where
        Q: Message + 'static,
        R: Message + 'static,
        F: AsyncFnOnce(&RequestContext, &RequestHeader, Q) -> R + 'static,
    {
        self.spawn(
            class,
            async move |context: &RequestContext, header: &RequestHeader, request| {
                let started_at = io::now();
                let response = metered(context, header, handler(context, header, request)).await;
                let waited = io::now().since(started_at);
                let mut answer = encode(&response, header.api_version, header.correlation_id)?;
                answer.times.add(Stage::Park, waited);
                Ok(answer)
            },
        )
    }

    /// A handler that only reads, or does the same when called twice, and whose answer may be far
    /// larger than its request. One for which there is no memory is dropped, and made again once
    /// there is.
    fn answer_within_memory<Q, R, F>(
        self,
        class: TaskClass,
        handler: F,
    ) -> Result<Progress, CloseReason>
    where
        Q: Message + Clone + 'static,
        R: Message + 'static,
        F: AsyncFn(&RequestContext, &RequestHeader, Q) -> R + 'static,
    {
        self.spawn(
            class,
            async move |context: &RequestContext, header: &RequestHeader, request: Q| {
                let mut credit = context.node().shard().budget().credit();
                let deadline = io::now().after(ANSWER_MEMORY_WAIT);
                loop {
                    let handled = handler(context, header, request.clone());
                    let response = metered(context, header, handled).await;
                    let mut answer = encode(&response, header.api_version, header.correlation_id)?;
                    drop(response);
                    let bytes = answer.bytes();
                    if bytes <= ANSWER_BYTES_UNCHARGED || credit.settle(bytes) {
                        answer.credit = Some(credit);
                        return Ok(answer);
                    }
                    drop(answer);
                    let missing = bytes.saturating_sub(credit.bytes());
                    if !credit.take_batch_answer(missing, deadline).await {
                        return Err(CloseReason::NoMemory(bytes));
                    }
                }
            },
        )
    }

    /// A handler that answers with encoded pieces.
    fn spawn<Q, F>(mut self, class: TaskClass, handler: F) -> Result<Progress, CloseReason>
    where
        Q: Message + 'static,
        F: AsyncFnOnce(&RequestContext, &RequestHeader, Q) -> Outcome + 'static,
    {
        let request = decode::<Q>(&mut self.reader, &self.header)?;
        let (context, header) = (Rc::clone(self.context), self.header);
        let spawned_at = io::now();
        let task = async move {
            let started_at = io::now();
            let mut handled = pin!(guarded(handler(&context, &header, request)));
            let poll = |waker: &mut Context<'_>| context.work().poll(handled.as_mut(), waker);
            let mut outcome = poll_fn(poll).await;
            if let Ok(answer) = &mut outcome {
                let spent = answer.times.sum();
                let handled = io::clock().since(started_at).saturating_sub(spent);
                answer.times.add(Stage::Handle, handled);
                answer.times.add(Stage::Queue, started_at.since(spawned_at));
            }
            outcome
        };
        Ok(Progress::Handler(io::spawn(class, task)))
    }
}

/// Does what a request asks, counts the time that its thread was at it towards its client's limit
/// (KIP-124), and tells and throttles the client where that, or another limit that the response
/// tells of already, is passed.
async fn metered<R: Message>(
    context: &RequestContext,
    header: &RequestHeader,
    handled: impl Future<Output = R>,
) -> R {
    let client_id = header.client_id.as_deref();
    let limit = context.limit(QuotaKind::Request, client_id);
    let mut response = handled.await;
    let wait = context.charge_time(limit).await;
    let ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
    let Some(told) = response.throttle_time_ms() else {
        context.mute((QuotaKind::Request, client_id), wait);
        return response;
    };
    let kind = match *told > ms {
        true => QuotaKind::ControllerMutation,
        false => QuotaKind::Request,
    };
    *told = ms.max(*told);
    let wait = Duration::from_millis(u64::try_from(*told).unwrap_or(0));
    context.mute((kind, client_id), wait);
    response
}

/// Reads a request's body.
pub(super) fn decode<Q: Message>(
    reader: &mut Reader,
    header: &RequestHeader,
) -> Result<Q, CloseReason> {
    let api = api_name::<Q>();
    Q::decode_request(reader, header.api_version).map_err(|error| CloseReason::Body { api, error })
}

/// Writes a response with its length and header.
pub(super) fn encode<R: Message>(
    response: &R,
    version: i16,
    correlation_id: CorrelationId,
) -> Outcome {
    let api = api_name::<R>();
    match encode_response(response, version, correlation_id) {
        Ok(pieces) => Ok(Answer::from(pieces)),
        Err(error) => Err(CloseReason::Response { api, error }),
    }
}

fn api_name<M: Message>() -> &'static str {
    api::find(M::API_KEY).map_or("unknown", |api| api.name)
}
