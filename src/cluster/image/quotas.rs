//! Limits of users, clients and addresses (`org.apache.kafka.image.ClientQuotasImage`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Image;
use crate::cluster::records::{ClientQuotaRecord, MetadataRecord, QuotaEntityData};
use crate::wire::primitives::Float64;

/// Whom limits are of: a name by each kind ("user", "client-id", "ip"), null for the default.
pub type QuotaEntity = BTreeMap<String, Option<String>>;

/// Limits by name.
pub type QuotaValues = BTreeMap<String, Float64>;

impl Image {
    /// All limits, by whom they are of.
    #[must_use]
    pub fn client_quotas(&self) -> &Arc<BTreeMap<QuotaEntity, QuotaValues>> {
        &self.client_quotas
    }

    pub(super) fn set_quota(&mut self, record: &ClientQuotaRecord) {
        let parts = record.entity.iter();
        let entity: QuotaEntity = parts
            .map(|part| (part.entity_type.clone(), part.entity_name.clone()))
            .collect();
        let quotas = Arc::make_mut(&mut self.client_quotas);
        if !record.remove {
            let values = quotas.entry(entity).or_default();
            values.insert(record.key.clone(), record.value);
            return;
        }
        if let Some(values) = quotas.get_mut(&entity) {
            values.remove(&record.key);
            if values.is_empty() {
                quotas.remove(&entity);
            }
        }
    }

    pub(super) fn quota_records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        self.client_quotas.iter().flat_map(|(entity, values)| {
            values.iter().map(move |(key, value)| {
                let part = |(kind, name): (&String, &Option<String>)| QuotaEntityData {
                    entity_type: kind.clone(),
                    entity_name: name.clone(),
                };
                MetadataRecord::ClientQuota(ClientQuotaRecord {
                    entity: entity.iter().map(part).collect(),
                    key: key.clone(),
                    value: *value,
                    remove: false,
                })
            })
        })
    }
}
