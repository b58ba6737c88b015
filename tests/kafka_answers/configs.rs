//! DescribeConfigs.

use coreline::wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse,
};

use crate::session::{ALL, Peer, Session, from};

pub fn ask(resources: &[(i8, &str, Option<&[&str]>)]) -> DescribeConfigsRequest {
    let resource = |(resource_type, name, keys): &(i8, &str, Option<&[&str]>)| {
        let keys = keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
        DescribeConfigsResource {
            resource_type: *resource_type,
            resource_name: (*name).to_owned(),
            configuration_keys: keys,
        }
    };
    DescribeConfigsRequest {
        resources: resources.iter().map(resource).collect(),
        include_synonyms: true,
        include_documentation: false,
    }
}

/// - Settings come in the order of Kafka's hash map there, sorted here.
/// - `write.caching` and `coreline.…` are settings of our own.
/// - Resources come in any order, and so do their results there.
pub fn even(_: &Peer, response: &mut DescribeConfigsResponse) {
    for result in &mut response.results {
        let is_ours = |name: &str| name == "write.caching" || name.starts_with("coreline.");
        result.configs.retain(|config| !is_ours(&config.name));
        result
            .configs
            .sort_by(|one, other| one.name.cmp(&other.name));
    }
    response.results.sort_by(|one, other| {
        (one.resource_type, &one.resource_name).cmp(&(other.resource_type, &other.resource_name))
    });
}

/// - Where data lies and what is listened on differs.
/// - The sizes of sockets' buffers are left to the system here.
/// - Kafka takes `node.id` for `broker.id` too, which is a setting of the past.
/// - Kafka runs a controller, and the group coordinator's settings are given to it.
pub fn even_broker(peer: &Peer, response: &mut DescribeConfigsResponse) {
    even(peer, response);
    const PER_BROKER: [&str; 14] = [
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "process.roles",
        "node.id",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
    ];
    for result in &mut response.results {
        result
            .configs
            .retain(|config| !PER_BROKER.contains(&config.name.as_str()));
    }
}

/// - Which loggers there are differs, and down to which level each writes.
fn even_logger(_: &Peer, response: &mut DescribeConfigsResponse) {
    for result in &mut response.results {
        result.configs.retain(|config| config.name == "root");
        for config in &mut result.configs {
            assert!(config.value.take().is_some());
        }
    }
}

pub fn compare(session: &mut Session) {
    let keys: &[&str] = &["retention.ms", "cleanup.policy", "segment.bytes", "nope"];
    session.compare(
        "some of a topic",
        ALL,
        |_| ask(&[(2, "b", Some(keys))]),
        even,
    );
    session.compare("all of a topic", ALL, |_| ask(&[(2, "b", None)]), even);
    session.compare(
        "no keys of a topic",
        ALL,
        |_| ask(&[(2, "b", Some(&[]))]),
        even,
    );
    session.compare("unknown topic", ALL, |_| ask(&[(2, "nope", None)]), even);
    session.compare(
        "bad topic",
        ALL,
        |_| ask(&[(2, "b d", None), (2, "", None)]),
        even,
    );
    session.compare("the broker", ALL, |_| ask(&[(4, "1", None)]), even_broker);
    session.compare("all brokers", ALL, |_| ask(&[(4, "", None)]), even);
    session.compare(
        "other brokers",
        ALL,
        |_| ask(&[(4, "7", None), (4, "x", None)]),
        even,
    );
    session.compare(
        "the log level",
        ALL,
        |_| ask(&[(8, "1", None)]),
        even_logger,
    );
    session.compare(
        "other loggers",
        ALL,
        |_| ask(&[(8, "7", None), (8, "", None)]),
        even,
    );
    session.compare(
        "unknown kinds",
        ALL,
        |_| ask(&[(3, "g", None), (99, "g", None)]),
        even,
    );
    let plain = |_: &Peer| DescribeConfigsRequest {
        include_synonyms: false,
        ..ask(&[(2, "b", Some(keys))])
    };
    session.compare("without synonyms", ALL, plain, even);
    let documented = |_: &Peer| DescribeConfigsRequest {
        include_documentation: true,
        ..ask(&[(2, "b", Some(keys))])
    };
    let even_documented = |peer: &Peer, response: &mut DescribeConfigsResponse| {
        even(peer, response);
        // Texts are our own; that there is one is the same.
        for config in response
            .results
            .iter_mut()
            .flat_map(|result| &mut result.configs)
        {
            assert!(
                config
                    .documentation
                    .as_ref()
                    .is_some_and(|text| !text.is_empty())
            );
            config.documentation = None;
        }
    };
    session.compare("with documentation", from(3), documented, even_documented);
}
