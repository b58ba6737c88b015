//! FindCoordinator (10), versions 0 to 6 (KIP-98, KIP-699, KIP-890, KIP-932).
//!
//! This node coordinates whatever is asked for. The first question for a group has the topic of
//! offsets made, and is answered when it stands (Kafka answers COORDINATOR_NOT_AVAILABLE until
//! then). A group whose partition has no leader, its log directory being offline, has no
//! coordinator.
//!
//! Absent: share groups' state (key type 2), which is COORDINATOR_NOT_AVAILABLE.

use crate::base::error_code::ErrorCode;
use crate::base::ids::BrokerId;
use crate::cluster::image::Image;
use crate::server::context::{ListenerInfo, RequestContext};
use crate::server::{groups, offsets_topic};
use crate::wire::header::RequestHeader;
use crate::wire::messages::find_coordinator::{
    Coordinator, FindCoordinatorRequest, FindCoordinatorResponse,
};

/// First version that asks for several keys at once.
const BATCH_FROM: i16 = 4;
/// First version that knows share groups.
const SHARE_FROM: i16 = 6;

/// What Kafka says where there is no coordinator now, where one key is asked for.
const NOT_AVAILABLE_MESSAGE: &str = "The coordinator is not available.";

/// What Kafka has for a node where there is none.
const NO_LEADER: BrokerId = BrokerId(-1);

/// `CoordinatorType`: groups, transactions, share groups.
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

/// What Kafka says of INVALID_REQUEST when it has nothing better to say.
pub(super) const INVALID_REQUEST_MESSAGE: &str = "This most likely occurs because of a request \
    being malformed by the client library or the message was sent to an incompatible broker. See \
    the broker logs for more details.";

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    header: &RequestHeader,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let needs_topic = request.key_type == GROUP && !offsets_topic::is_there(context);
    if needs_topic && !offsets_topic::create(context, header).await {
        return refused(&request, header.api_version);
    }
    respond(
        &context.image(),
        &request,
        header.api_version,
        context.listener(),
    )
}

/// There is no topic of offsets, and it cannot be made.
fn refused(request: &FindCoordinatorRequest, version: i16) -> FindCoordinatorResponse {
    let code = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    let keys = request.coordinator_keys.iter();
    let coordinators = keys.map(|key| Coordinator {
        key: key.clone(),
        node_id: BrokerId(-1),
        host: String::new(),
        port: -1,
        error_code: code,
        error_message: Some(String::new()),
    });
    if version >= BATCH_FROM {
        return FindCoordinatorResponse {
            coordinators: coordinators.collect(),
            ..FindCoordinatorResponse::default()
        };
    }
    FindCoordinatorResponse {
        error_code: code,
        error_message: Some(NOT_AVAILABLE_MESSAGE.to_owned()),
        node_id: BrokerId(-1),
        port: -1,
        ..FindCoordinatorResponse::default()
    }
}

/// The response to `request` for clients of `listener`. Pure.
#[must_use]
pub fn respond(
    image: &Image,
    request: &FindCoordinatorRequest,
    version: i16,
    listener: &ListenerInfo,
) -> FindCoordinatorResponse {
    if version >= BATCH_FROM {
        let keys = request.coordinator_keys.iter();
        return FindCoordinatorResponse {
            coordinators: keys
                .map(|key| coordinator(image, (request.key_type, version), key, listener))
                .collect(),
            ..FindCoordinatorResponse::default()
        };
    }
    let found = coordinator(image, (request.key_type, version), &request.key, listener);
    FindCoordinatorResponse {
        error_code: found.error_code,
        error_message: Some(match found.error_code {
            ErrorCode::NONE => "NONE".to_owned(),
            ErrorCode::COORDINATOR_NOT_AVAILABLE => NOT_AVAILABLE_MESSAGE.to_owned(),
            _ => INVALID_REQUEST_MESSAGE.to_owned(),
        }),
        node_id: found.node_id,
        host: found.host,
        port: found.port,
        ..FindCoordinatorResponse::default()
    }
}

fn coordinator(
    image: &Image,
    (key_type, version): (i8, i16),
    key: &str,
    listener: &ListenerInfo,
) -> Coordinator {
    let refuse = |error_code, message: &str| Coordinator {
        key: key.to_owned(),
        node_id: BrokerId(-1),
        host: String::new(),
        port: -1,
        error_code,
        error_message: Some(message.to_owned()),
    };
    match key_type {
        GROUP if !has_leader(image, key) => refuse(ErrorCode::COORDINATOR_NOT_AVAILABLE, ""),
        GROUP | TRANSACTION => Coordinator {
            key: key.to_owned(),
            node_id: image.node_id(),
            host: listener.advertised_host.clone(),
            port: i32::from(listener.advertised_port),
            error_code: ErrorCode::NONE,
            error_message: Some(String::new()),
        },
        SHARE if version >= SHARE_FROM && is_share_key(key) => {
            refuse(ErrorCode::COORDINATOR_NOT_AVAILABLE, "")
        }
        SHARE if version >= SHARE_FROM => refuse(ErrorCode::INVALID_REQUEST, ""),
        _ => refuse(ErrorCode::INVALID_REQUEST, INVALID_REQUEST_MESSAGE),
    }
}

/// False where the group's partition is led by nobody. A topic that was made a moment ago may not
/// be in the image yet; its partitions will have leaders.
fn has_leader(image: &Image, group_id: &str) -> bool {
    let Some(home) = groups::home_of(image, group_id) else {
        return true;
    };
    let topic = image.topics().by_id(home.topic_id);
    let partition = topic.and_then(|topic| topic.partitions.get(&home.partition));
    partition.is_some_and(|partition| partition.leader != NO_LEADER)
}

/// `group:topic id:partition`, the partition a number (`SharePartitionKey`).
fn is_share_key(key: &str) -> bool {
    let parts: Vec<&str> = key.split(':').collect();
    let [group, topic, partition] = parts[..] else {
        return false;
    };
    !group.is_empty()
        && crate::base::ids::Uuid::parse(topic).is_some()
        && partition.parse::<u32>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(key_type: i8, keys: &[&str], version: i16) -> FindCoordinatorResponse {
        let image = Image::new("cluster", BrokerId(7));
        let listener = ListenerInfo {
            name: "PLAINTEXT".into(),
            advertised_host: "h".into(),
            advertised_port: 9_092,
        };
        let request = FindCoordinatorRequest {
            key: keys
                .first()
                .map(|key| (*key).to_owned())
                .unwrap_or_default(),
            key_type,
            coordinator_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        };
        respond(&image, &request, version, &listener)
    }

    #[test]
    fn this_node_coordinates() {
        for version in 0..4 {
            let response = ask(i8::from(version > 1), &["g"], version);
            let place = (response.node_id.0, response.host.as_str(), response.port);
            assert_eq!(place, (7, "h", 9_092));
            assert_eq!(response.error_message.as_deref(), Some("NONE"));
        }
        let response = ask(0, &["g", "", "h"], 4);
        assert_eq!(response.coordinators.len(), 3);
        assert!((response.coordinators.iter()).all(|one| one.node_id.0 == 7 && one.port == 9_092));
    }

    /// Codes as Apache Kafka 4.4.0 answered them.
    #[test]
    fn other_kinds_of_keys_are_refused() {
        let single = ask(3, &["k"], 1);
        assert_eq!(
            (single.error_code.0, single.node_id.0, single.port),
            (42, -1, -1)
        );
        let code = |key_type, key, version| ask(key_type, &[key], version).coordinators[0].clone();
        assert_eq!(code(3, "k", 4).error_code.0, 42);
        assert_eq!(
            code(3, "k", 4).error_message.as_deref(),
            Some(INVALID_REQUEST_MESSAGE)
        );
        assert_eq!(code(2, "k", 6).error_code.0, 42);
        assert_eq!(code(2, "g:n2A3XpolQmWmY0MKq4B9Pw:0", 6).error_code.0, 15);
        assert_eq!(code(-1, "k", 6).error_code.0, 42);
    }
}
