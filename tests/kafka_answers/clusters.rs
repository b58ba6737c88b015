//! ApiVersions, DescribeCluster, FindCoordinator, InitProducerId.

use std::time::Duration;

use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{ProducerEpoch, ProducerId};
use coreline::wire::api;
use coreline::wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use coreline::wire::messages::describe_cluster::{DescribeClusterRequest, DescribeClusterResponse};
use coreline::wire::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use coreline::wire::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

use crate::session::{ALL, Peer, Session, from};

pub fn compare(session: &mut Session) {
    compare_versions(session);
    compare_cluster(session);
    compare_coordinators(session);
    compare_producer_ids(session);
}

/// - Kafka serves more keys: those are not compared.
/// - ApiVersions itself is served to 4 here, since 5 asks for checks of cluster and node (KIP-1242)
///   that are not there; clients fall back by one request.
/// - So is DescribeLogDirs: 5 tells which directories take nothing new, and none is so here.
/// - Offsets are committed and fetched by topics' names: 10 names topics by their ids (KIP-848).
/// - DeleteGroups is served to 2: 3 tells each refusal in words.
/// - Kafka serves groups of other protocols, transactions and share groups, and so publishes their features.
/// - Features are read at the log's end, which lies elsewhere.
pub fn even_versions(peer: &Peer, response: &mut ApiVersionsResponse) {
    response
        .api_keys
        .retain(|one| api::find(one.api_key).is_some());
    for one in &mut response.api_keys {
        if peer.is_kafka && (one.api_key.0 == 8 || one.api_key.0 == 9) {
            assert_eq!(one.max_version, 10);
            one.max_version = 9;
        }
        if peer.is_kafka && one.api_key.0 == 42 {
            assert_eq!(one.max_version, 3);
            one.max_version = 2;
        }
        if peer.is_kafka && (one.api_key.0 == 18 || one.api_key.0 == 35) {
            assert_eq!(one.max_version, 5);
            one.max_version = 4;
        }
    }
    let is_ours = |name: &str| name == "metadata.version" || name == "kraft.version";
    response
        .supported_features
        .retain(|feature| is_ours(&feature.name));
    response
        .finalized_features
        .retain(|feature| feature.name == "metadata.version");
    response.finalized_features_epoch = response.finalized_features_epoch.min(0);
}

fn compare_versions(session: &mut Session) {
    let names = [
        ("kafka-answers", "1.0"),
        ("", "1.0"),
        ("a b", "1"),
        ("a", "1."),
        ("-", "-"),
    ];
    for (name, version) in names {
        let request = |_: &Peer| ApiVersionsRequest {
            client_software_name: name.to_owned(),
            client_software_version: version.to_owned(),
        };
        session.compare("software", ALL, request, even_versions);
    }
}

fn compare_cluster(session: &mut Session) {
    let even = |_: &Peer, _: &mut DescribeClusterResponse| {};
    for with_operations in [false, true] {
        let request = |_: &Peer| DescribeClusterRequest {
            include_cluster_authorized_operations: with_operations,
            ..DescribeClusterRequest::default()
        };
        session.compare("the cluster", ALL, request, even);
    }
    for endpoint_type in [2, 7] {
        let request = |_: &Peer| DescribeClusterRequest {
            endpoint_type,
            ..DescribeClusterRequest::default()
        };
        session.compare("other endpoints", from(1), request, even);
    }
}

fn compare_coordinators(session: &mut Session) {
    let ask = |key_type: i8, keys: &[&str]| FindCoordinatorRequest {
        key: keys[0].to_owned(),
        key_type,
        coordinator_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
    };
    // Each version carries one of the two fields for keys.
    let single = |key_type, keys: &[&str]| FindCoordinatorRequest {
        coordinator_keys: Vec::new(),
        ..ask(key_type, keys)
    };
    let batch = |key_type, keys: &[&str]| FindCoordinatorRequest {
        key: String::new(),
        ..ask(key_type, keys)
    };
    // Kafka first creates the topic of offsets.
    for _ in 0..200 {
        let found: FindCoordinatorResponse = session.kafka.ask(3, &single(0, &["g"]));
        if found.error_code != ErrorCode::COORDINATOR_NOT_AVAILABLE {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let even = |_: &Peer, _: &mut FindCoordinatorResponse| {};
    session.compare("group", 1..=3, |_| single(0, &["g"]), even);
    session.compare("unknown kind", 1..=3, |_| single(3, &["g"]), even);
    // Version 0 knows groups only, and so carries no kind and no message.
    let even_first = |_: &Peer, response: &mut FindCoordinatorResponse| {
        response.error_message = None;
    };
    session.compare("group", 0..=0, |_| single(0, &["g"]), even_first);
    session.compare("groups", from(4), |_| batch(0, &["g", "h", ""]), even);
    session.compare("unknown kind", from(4), |_| batch(3, &["g", "h"]), even);
    session.compare("malformed share key", from(6), |_| batch(2, &["g"]), even);
}

/// - Which id is given differs; that it is one does not.
fn even_ids(_: &Peer, response: &mut InitProducerIdResponse) {
    response.producer_id = ProducerId(response.producer_id.0.min(0));
}

/// A transactional id is not compared: Kafka answers it, we refuse it until transactions are served.
fn compare_producer_ids(session: &mut Session) {
    let ask = |transactional_id: Option<&str>, id: i64, epoch: i16| InitProducerIdRequest {
        transactional_id: transactional_id.map(str::to_owned),
        transaction_timeout_ms: 60_000,
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(epoch),
    };
    // Kafka's first answer says that it waits for a block of ids.
    for _ in 0..200 {
        let first: InitProducerIdResponse = session.kafka.ask(5, &ask(None, -1, -1));
        if first.error_code.is_none() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    session.compare("idempotent", ALL, |_| ask(None, -1, -1), even_ids);
    session.compare(
        "empty transactional id",
        ALL,
        |_| ask(Some(""), -1, -1),
        even_ids,
    );
    session.compare("an id and an epoch", from(3), |_| ask(None, 5, 1), even_ids);
    session.compare("an id alone", from(3), |_| ask(None, 5, -1), even_ids);
    session.compare("an epoch alone", from(3), |_| ask(None, -1, 5), even_ids);
}
