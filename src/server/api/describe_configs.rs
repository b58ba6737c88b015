//! DescribeConfigs (32), versions 1 to 4 (KIP-226, KIP-569): settings of topics, of this broker and
//! its log levels, of groups and of subscriptions to client metrics.
//!
//! - Sources, synonyms, types and read-only flags are Kafka's; texts are our own. The broker's own
//!   settings (`coreline.…`, `write.caching`) stand beside Kafka's.
//! - The broker of the empty name stands for what was given to all brokers at run time.
//! - The value of a name that nobody knows is kept secret, as Kafka does.
//! - A resource that is named again is described once, where Kafka repeats it: clients keep one
//!   description of each, and few bytes asked again and again must not make an answer of any size.

use std::collections::HashSet;

use super::find_coordinator::INVALID_REQUEST_MESSAGE;
use crate::base::config::BrokerTexts;
use crate::base::config::describe::{self, Described, Source, Synonym};
use crate::base::config::setting::Kind;
use crate::base::error_code::ErrorCode;
use crate::cluster::decide::topic_names;
use crate::cluster::effective::DynamicConfigs;
use crate::cluster::image::{Image, ResourceType};
use crate::io;
use crate::server::context::RequestContext;
use crate::server::log_levels::{self, Level};
use crate::wire::header::RequestHeader;
use crate::wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult,
    DescribeConfigsResponse, DescribeConfigsResult, DescribeConfigsSynonym,
};

/// `ConfigType.UNKNOWN`.
const TYPE_UNKNOWN: i8 = 0;
/// Resources that are described before other tasks have their turn; well below a millisecond.
const RESOURCES_A_TURN: usize = 4;
/// `ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG`.
const SOURCE_LOGGER: i8 = 6;

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: DescribeConfigsRequest,
) -> DescribeConfigsResponse {
    let (image, config) = (context.image(), context.fixed_config());
    let _turn = context.node().describing().take().await;
    let mut response = DescribeConfigsResponse::default();
    for (place, result) in results(&image, &request, &config.texts).enumerate() {
        response.results.push(result);
        if place % RESOURCES_A_TURN == RESOURCES_A_TURN - 1 {
            io::yield_now().await;
        }
    }
    response
}

/// What is answered to `request`, one resource after the other. Pure but for the log level, which
/// is the process's.
pub fn results<'a>(
    image: &'a Image,
    request: &'a DescribeConfigsRequest,
    broker_texts: &'a BrokerTexts,
) -> impl Iterator<Item = DescribeConfigsResult> + 'a {
    let asked = Asked {
        image,
        request,
        broker_texts,
    };
    let mut seen = HashSet::new();
    (request.resources.iter())
        .filter(move |resource| seen.insert((resource.resource_type, &resource.resource_name)))
        .map(move |resource| asked.result(resource))
}

struct Asked<'a> {
    image: &'a Image,
    request: &'a DescribeConfigsRequest,
    broker_texts: &'a BrokerTexts,
}

type Outcome = Result<Vec<DescribeConfigsResourceResult>, (ErrorCode, String)>;

impl Asked<'_> {
    fn result(&self, resource: &DescribeConfigsResource) -> DescribeConfigsResult {
        let name = resource.resource_name.as_str();
        let outcome = match ResourceType(resource.resource_type) {
            ResourceType::TOPIC => self.topic(name),
            ResourceType::BROKER => self.broker(name),
            ResourceType::BROKER_LOGGER => self.logger(name),
            ResourceType::CLIENT_METRICS => self.client_metrics(name),
            ResourceType::GROUP => self.group(name),
            _ => Err(invalid(INVALID_REQUEST_MESSAGE)),
        };
        let (error_code, message, mut configs) = match outcome {
            Ok(configs) => (ErrorCode::NONE, String::new(), configs),
            Err((code, message)) => (code, message, Vec::new()),
        };
        let keys = resource.configuration_keys.as_ref();
        if let Some(keys) = keys.filter(|keys| !keys.is_empty()) {
            let keys: HashSet<&str> = keys.iter().map(String::as_str).collect();
            configs.retain(|config| keys.contains(config.name.as_str()));
        }
        DescribeConfigsResult {
            error_code,
            error_message: Some(message),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs,
        }
    }

    fn topic(&self, name: &str) -> Outcome {
        topic_names::check(name)
            .map_err(|message| (ErrorCode::INVALID_TOPIC_EXCEPTION, message))?;
        if self.image.topics().by_name(name).is_none() {
            return Err((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, String::new()));
        }
        let own = self.image.topic_configs(name);
        let dynamic = DynamicConfigs::of(self.image);
        let described = describe::topic(dynamic.over(self.broker_texts), &own);
        Ok(self.entries(described))
    }

    fn broker(&self, name: &str) -> Outcome {
        let dynamic = DynamicConfigs::of(self.image);
        let layers = dynamic.over(self.broker_texts);
        if name.is_empty() {
            return Ok(self.entries(describe::all_brokers(layers)));
        }
        self.check_broker(name, " or empty string,")?;
        Ok(self.entries(describe::broker(layers)))
    }

    fn client_metrics(&self, name: &str) -> Outcome {
        if name.is_empty() {
            return Err(invalid(
                "Client metrics subscription name must not be empty",
            ));
        }
        let own = self.image.configs(ResourceType::CLIENT_METRICS, name);
        Ok(self.entries(describe::client_metrics(&own)))
    }

    fn group(&self, name: &str) -> Outcome {
        if name.is_empty() {
            return Err(invalid("Group name must not be empty"));
        }
        let own = self.image.configs(ResourceType::GROUP, name);
        let dynamic = DynamicConfigs::of(self.image);
        let layers = dynamic.over(self.broker_texts);
        Ok(self.entries(describe::group(layers, &own)))
    }

    fn entries(&self, described: Vec<Described>) -> Vec<DescribeConfigsResourceResult> {
        described.into_iter().map(|one| self.entry(one)).collect()
    }

    fn logger(&self, name: &str) -> Outcome {
        if name.is_empty() {
            return Err(invalid("Broker id must not be empty"));
        }
        self.check_broker(name, "")?;
        let entry = |(name, level): (&str, Level)| DescribeConfigsResourceResult {
            name: name.to_owned(),
            value: Some(level.name().to_owned()),
            config_source: SOURCE_LOGGER,
            ..DescribeConfigsResourceResult::default()
        };
        Ok(log_levels::loggers().map(entry).collect())
    }

    /// Whether `name` is this broker's id.
    fn check_broker(&self, name: &str, or: &str) -> Result<(), (ErrorCode, String)> {
        let own = self.image.node_id().0;
        match name.parse::<i32>() {
            Ok(id) if id == own => Ok(()),
            Ok(id) => Err(invalid(&format!(
                "Unexpected broker id, expected {own}{or} but received {id}"
            ))),
            Err(_) => Err(invalid(&format!(
                "Broker id must be an integer, but it is: {name}"
            ))),
        }
    }

    /// The source told is that of the first synonym: where Kafka lists none, it says that the
    /// value is a default (CreateTopics, which lists none at all, tells the true source).
    fn entry(&self, described: Described) -> DescribeConfigsResourceResult {
        let source = described.synonyms.first().map(|synonym| synonym.source);
        let is_sensitive = described.is_sensitive();
        let synonyms = if self.request.include_synonyms {
            described.synonyms.into_iter().map(synonym).collect()
        } else {
            Vec::new()
        };
        let row = described.setting;
        let documentation = row.map(|row| row.documentation.to_owned());
        DescribeConfigsResourceResult {
            name: described.name,
            value: described.value,
            read_only: described.read_only,
            config_source: source.unwrap_or(Source::Default) as i8,
            is_sensitive,
            synonyms,
            config_type: row.map_or(TYPE_UNKNOWN, |row| type_of(row.kind)),
            documentation: documentation.filter(|_| self.request.include_documentation),
        }
    }
}

fn invalid(message: &str) -> (ErrorCode, String) {
    (ErrorCode::INVALID_REQUEST, message.to_owned())
}

fn synonym(synonym: Synonym) -> DescribeConfigsSynonym {
    DescribeConfigsSynonym {
        name: synonym.name,
        value: synonym.value,
        source: synonym.source as i8,
    }
}

/// `DescribeConfigsResponse.ConfigType`.
fn type_of(kind: Kind) -> i8 {
    match kind {
        Kind::Boolean => 1,
        Kind::String => 2,
        Kind::Int => 3,
        Kind::Short => 4,
        Kind::Long => 5,
        Kind::Double => 6,
        Kind::List => 7,
        Kind::Class => 8,
        Kind::Password => 9,
    }
}

#[cfg(test)]
#[path = "describe_configs_test.rs"]
mod describe_configs_test;
