//! AlterClientQuotas (`ClientQuotaControlManager.alterClientQuotas`): each entity of a request is
//! changed whole or not at all, with Kafka's codes and messages.
//!
//! What Kafka does here and one would not expect: of an entity that stands twice the first changes
//! are made, and the answer is a refusal.

use std::collections::{BTreeMap, HashSet};

use super::{Decision, RECORDS_PER_OPERATION_MAX, Refusal};
use crate::base::error_code::ErrorCode;
use crate::cluster::image::{Image, QuotaEntity};
use crate::cluster::quotas::{CONNECTION_CREATION_RATE, QuotaKind};
use crate::cluster::records::{ClientQuotaRecord, MetadataRecord, QuotaEntityData};
use crate::wire::messages::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, AlteredEntry, EntityData, EntryData,
    OpData,
};
use crate::wire::primitives::Float64;

const IP: &str = "ip";
const USER: &str = "user";
const CLIENT_ID: &str = "client-id";
/// How far a value of whole numbers may be from one.
const FRACTION_MAX: f64 = 1e-6;

/// Decides an AlterClientQuotas request; hosts' names without an address are in `unknown_hosts`.
pub fn alter_quotas(
    image: &Image,
    request: &AlterClientQuotasRequest,
    unknown_hosts: &[String],
) -> Decision<AlterClientQuotasResponse> {
    let mut records = Vec::new();
    let mut outcomes: BTreeMap<QuotaEntity, Option<Refusal>> = BTreeMap::new();
    let mut order: Vec<QuotaEntity> = Vec::new();
    for entry in &request.entries {
        let entity = entity_of(entry);
        let outcome = if outcomes.contains_key(&entity) || has_key_twice(entry) {
            let text = format!("Ignoring duplicate entity {}", text_of(&entity));
            Err(invalid(text))
        } else {
            changes(image, &entity, &entry.ops, unknown_hosts)
        };
        if !outcomes.contains_key(&entity) {
            order.push(entity.clone());
        }
        let refusal = match outcome {
            Ok(more) => {
                records.extend(more);
                None
            }
            Err(refusal) => Some(refusal),
        };
        outcomes.insert(entity, refusal);
    }
    if records.len() > RECORDS_PER_OPERATION_MAX {
        let message = "Unable to perform excessively large batch operation.";
        let refusal = Refusal::new(ErrorCode::POLICY_VIOLATION, message);
        outcomes
            .values_mut()
            .for_each(|one| *one = Some(refusal.clone()));
        records.clear();
    }
    if request.validate_only {
        records.clear();
    }
    let entries = order.into_iter().map(|entity| {
        let refusal = outcomes.remove(&entity).flatten();
        answered(&entity, refusal)
    });
    let response = AlterClientQuotasResponse {
        throttle_time_ms: 0,
        entries: entries.collect(),
    };
    Decision { records, response }
}

fn answered(entity: &QuotaEntity, refusal: Option<Refusal>) -> AlteredEntry {
    let part = |(kind, name): (&String, &Option<String>)| EntityData {
        entity_type: kind.clone(),
        entity_name: name.clone(),
    };
    AlteredEntry {
        error_code: refusal
            .as_ref()
            .map_or(ErrorCode::NONE, |refusal| refusal.code),
        error_message: refusal.map(|refusal| refusal.message),
        entity: entity.iter().map(part).collect(),
    }
}

/// Of a kind that stands twice the last counts.
fn entity_of(entry: &EntryData) -> QuotaEntity {
    let parts = entry.entity.iter();
    parts
        .map(|part| (part.entity_type.clone(), part.entity_name.clone()))
        .collect()
}

fn has_key_twice(entry: &EntryData) -> bool {
    let mut seen = HashSet::new();
    !entry.ops.iter().all(|op| seen.insert(op.key.as_str()))
}

/// As `ClientQuotaEntity.toString` writes it; Java's order of the kinds is this one.
fn text_of(entity: &QuotaEntity) -> String {
    let order = [CLIENT_ID, USER, IP];
    let rank = |kind: &str| order.iter().position(|one| *one == kind);
    let mut parts: Vec<_> = entity.iter().collect();
    parts.sort_by_key(|(kind, _)| rank(kind).unwrap_or(order.len()));
    let text = |(kind, name): (&String, &Option<String>)| {
        format!("{kind}={}", name.as_deref().unwrap_or("null"))
    };
    let parts: Vec<String> = parts.into_iter().map(text).collect();
    format!("ClientQuotaEntity(entries={{{}}})", parts.join(", "))
}

/// The records that one entity's operations come to.
fn changes(
    image: &Image,
    entity: &QuotaEntity,
    ops: &[OpData],
    unknown_hosts: &[String],
) -> Result<Vec<MetadataRecord>, Refusal> {
    let keys = keys_of(entity, unknown_hosts)?;
    let known = image.client_quotas().get(entity);
    let mut records = Vec::new();
    for op in ops {
        let current = known.and_then(|values| values.get(&op.key)).copied();
        let is_change = if op.remove {
            current.is_some()
        } else {
            check_value(keys, &op.key, op.value.0)?;
            !current.is_some_and(|current| is_same(current, op.value))
        };
        if is_change {
            records.push(record(entity, op));
        }
    }
    Ok(records)
}

/// As Java compares boxed numbers: any that is none is like any other.
fn is_same(one: Float64, other: Float64) -> bool {
    one == other || (one.0.is_nan() && other.0.is_nan())
}

fn record(entity: &QuotaEntity, op: &OpData) -> MetadataRecord {
    let part = |(kind, name): (&String, &Option<String>)| QuotaEntityData {
        entity_type: kind.clone(),
        entity_name: name.clone(),
    };
    MetadataRecord::ClientQuota(ClientQuotaRecord {
        entity: entity.iter().map(part).collect(),
        key: op.key.clone(),
        value: if op.remove { Float64(0.0) } else { op.value },
        remove: op.remove,
    })
}

/// Greatest value of a whole number; none where fractions are allowed.
type Keys = &'static [(&'static str, Option<f64>)];

const OF_CLIENTS: Keys = &[
    (QuotaKind::Produce.key(), Some(i64::MAX as f64)),
    (QuotaKind::Fetch.key(), Some(i64::MAX as f64)),
    (QuotaKind::Request.key(), None),
    (QuotaKind::ControllerMutation.key(), None),
];
const OF_ADDRESSES: Keys = &[(CONNECTION_CREATION_RATE, Some(i32::MAX as f64))];

/// The limits that an entity may have.
fn keys_of(entity: &QuotaEntity, unknown_hosts: &[String]) -> Result<Keys, Refusal> {
    if entity.is_empty() {
        return Err(invalid("Invalid empty client quota entity"));
    }
    for (kind, name) in entity {
        if ![USER, CLIENT_ID, IP].contains(&kind.as_str()) {
            return Err(invalid(format!(
                "Unhandled client quota entity type: {kind}"
            )));
        }
        if name.as_deref() == Some("") {
            return Err(invalid(format!("Empty {kind} not supported")));
        }
    }
    match entity.get(IP) {
        None => Ok(OF_CLIENTS),
        Some(_) if entity.len() > 1 => Err(invalid(
            // Kafka's text lacks the space.
            "Invalid quota entity combination, IP entity shouldnot be combined with User or \
             ClientId",
        )),
        Some(Some(name)) if unknown_hosts.contains(name) => Err(invalid(format!(
            "{name} is not a valid IP or resolvable host."
        ))),
        Some(_) => Ok(OF_ADDRESSES),
    }
}

fn check_value(keys: Keys, key: &str, value: f64) -> Result<(), Refusal> {
    let Some((_, greatest)) = keys.iter().find(|(known, _)| *known == key) else {
        return Err(invalid(format!("Invalid configuration key {key}")));
    };
    if !value.is_finite() {
        return Err(invalid(format!("Quota {key} must be a finite number")));
    }
    if value <= 0.0 {
        return Err(invalid(format!("Quota {key} must be greater than 0")));
    }
    let Some(greatest) = greatest else {
        return Ok(());
    };
    if value > *greatest {
        let kind = match *greatest > i32::MAX as f64 {
            true => "a LONG",
            false => "an INT",
        };
        return Err(invalid(format!(
            "Proposed value for {key} is too large for {kind}."
        )));
    }
    if (value % 1.0).abs() > FRACTION_MAX {
        return Err(invalid(format!("{key} cannot be a fractional value.")));
    }
    Ok(())
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, message)
}

#[cfg(test)]
#[path = "alter_client_quotas_test.rs"]
mod alter_client_quotas_test;
