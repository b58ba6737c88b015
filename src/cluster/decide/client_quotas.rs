//! DescribeClientQuotas (`ClientQuotasImage.describe`): the limits whose owners fit a filter.

use std::collections::BTreeMap;

use super::Refusal;
use crate::base::error_code::ErrorCode;
use crate::cluster::image::{Image, QuotaEntity, QuotaValues};
use crate::wire::messages::describe_client_quotas::{
    ComponentData, DescribeClientQuotasRequest, DescribeClientQuotasResponse, EntityData,
    EntryData, ValueData,
};

const IP: &str = "ip";
const USER: &str = "user";
const CLIENT_ID: &str = "client-id";

/// What an entity's part of one kind must be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// This name; `None` is the default's.
    Exactly(Option<String>),
    /// Any.
    Any,
}

/// Answers a DescribeClientQuotas request.
#[must_use]
pub fn describe_quotas(
    image: &Image,
    request: &DescribeClientQuotasRequest,
) -> DescribeClientQuotasResponse {
    let filter = match filter(&request.components) {
        Ok(filter) => filter,
        Err(refusal) => {
            return DescribeClientQuotasResponse {
                error_code: refusal.code,
                error_message: Some(refusal.message),
                entries: None,
                ..DescribeClientQuotasResponse::default()
            };
        }
    };
    let all = image.client_quotas().iter();
    let fitting = all.filter(|(entity, _)| fits(entity, &filter, request.strict));
    DescribeClientQuotasResponse {
        entries: Some(fitting.map(entry).collect()),
        ..DescribeClientQuotasResponse::default()
    }
}

/// What is wanted of each kind, each named once.
fn filter(components: &[ComponentData]) -> Result<BTreeMap<&str, Wanted>, Refusal> {
    let mut filter = BTreeMap::new();
    for component in components {
        let kind = component.entity_type.as_str();
        if kind.is_empty() {
            return invalid("Invalid empty entity type.");
        }
        if filter.contains_key(kind) {
            return invalid(format!(
                "Entity type {kind} cannot appear more than once in the filter."
            ));
        }
        if ![IP, USER, CLIENT_ID].contains(&kind) {
            let message = format!("Unsupported entity type {kind}");
            return Err(Refusal::new(ErrorCode::UNSUPPORTED_VERSION, message));
        }
        filter.insert(kind, wanted(component)?);
    }
    if filter.contains_key(IP) && filter.len() > 1 {
        return invalid(
            "Invalid entity filter component combination. IP filter component should not be used \
             with user or clientId filter component.",
        );
    }
    Ok(filter)
}

fn wanted(component: &ComponentData) -> Result<Wanted, Refusal> {
    let also_named = |kind: &str| {
        invalid(format!(
            "Request specified {kind}, but also specified a match string."
        ))
    };
    match (component.match_type, &component.r#match) {
        (0, Some(name)) => Ok(Wanted::Exactly(Some(name.clone()))),
        (0, None) => invalid("Request specified MATCH_TYPE_EXACT, but set match string to null."),
        (1, None) => Ok(Wanted::Exactly(None)),
        (1, Some(_)) => also_named("MATCH_TYPE_DEFAULT"),
        (2, None) => Ok(Wanted::Any),
        (2, Some(_)) => also_named("MATCH_TYPE_SPECIFIED"),
        (other, _) => invalid(format!("Unknown match type {other}")),
    }
}

fn invalid<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
}

fn fits(entity: &QuotaEntity, filter: &BTreeMap<&str, Wanted>, strict: bool) -> bool {
    let has = |(kind, wanted): (&&str, &Wanted)| match (entity.get(*kind), wanted) {
        (Some(name), Wanted::Exactly(wanted)) => name == wanted,
        (found, Wanted::Any) => found.is_some(),
        (None, Wanted::Exactly(_)) => false,
    };
    filter.iter().all(has) && (!strict || entity.len() == filter.len())
}

fn entry((entity, values): (&QuotaEntity, &QuotaValues)) -> EntryData {
    let part = |(kind, name): (&String, &Option<String>)| EntityData {
        entity_type: kind.clone(),
        entity_name: name.clone(),
    };
    let value = |(key, value): (&String, &_)| ValueData {
        key: key.clone(),
        value: *value,
    };
    EntryData {
        entity: entity.iter().map(part).collect(),
        values: values.iter().map(value).collect(),
    }
}

#[cfg(test)]
#[path = "client_quotas_test.rs"]
mod client_quotas_test;
