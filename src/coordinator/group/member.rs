//! A member of a group.

use std::time::Duration;

use bytes::Bytes;

use super::core::Ticket;
use super::ids::{InstanceId, MemberId};
use super::memory::{MEMBER_BYTES, PROTOCOL_BYTES};
use super::operation::{Join, Protocol};
use super::record::MemberValue;
use super::response::{DescribedMember, JoinMember};

/// A member (`ClassicGroupMember`).
#[derive(Debug)]
pub struct Member {
    pub(super) id: MemberId,
    pub(super) instance_id: Option<InstanceId>,
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
    pub(super) protocols: Vec<Protocol>,
    pub(super) assignment: Bytes,
    pub(super) awaiting_join: Option<Ticket>,
    pub(super) awaiting_sync: Option<Ticket>,
    /// It has not seen the end of a rebalance yet: its waiting join is no sign of life.
    pub(super) is_new: bool,
}

impl Member {
    pub(super) fn joining(id: MemberId, join: &Join) -> Self {
        Self {
            id,
            instance_id: join.instance_id.clone(),
            client_id: join.client_id.clone(),
            client_host: join.client_host.clone(),
            rebalance_timeout_ms: join.rebalance_timeout_ms,
            session_timeout_ms: join.session_timeout_ms,
            protocols: distinct(&join.protocols),
            assignment: Bytes::new(),
            awaiting_join: None,
            awaiting_sync: None,
            is_new: true,
        }
    }

    pub(super) fn stored(value: MemberValue, protocol: Option<&str>) -> Self {
        let rebalance_timeout_ms = match value.rebalance_timeout_ms {
            -1 => value.session_timeout_ms,
            known => known,
        };
        Self {
            id: value.member_id,
            instance_id: value.instance_id,
            client_id: value.client_id,
            client_host: value.client_host,
            rebalance_timeout_ms,
            session_timeout_ms: value.session_timeout_ms,
            protocols: vec![Protocol {
                name: protocol.unwrap_or_default().to_owned(),
                metadata: value.subscription,
            }],
            assignment: value.assignment,
            awaiting_join: None,
            awaiting_sync: None,
            is_new: false,
        }
    }

    pub(super) fn to_value(&self, protocol: Option<&str>, assignment: Bytes) -> MemberValue {
        MemberValue {
            member_id: self.id.clone(),
            instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            session_timeout_ms: self.session_timeout_ms,
            subscription: self.metadata(protocol),
            assignment,
        }
    }

    pub(super) fn metadata(&self, protocol: Option<&str>) -> Bytes {
        let supported = self.protocols.iter();
        let mut supported = supported.filter(|one| Some(one.name.as_str()) == protocol);
        supported
            .next()
            .map(|one| one.metadata.clone())
            .unwrap_or_default()
    }

    pub(super) fn session_timeout(&self) -> Duration {
        duration_ms(self.session_timeout_ms)
    }

    /// A request of it waits: it is alive, whatever its heartbeats.
    pub(super) fn has_satisfied_heartbeat(&self) -> bool {
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }

    pub(super) fn matches(&self, protocols: &[Protocol]) -> bool {
        self.protocols == distinct(protocols)
    }

    /// Memory that is charged for it.
    pub(super) fn bytes(&self) -> usize {
        let instance_id = self.instance_id.as_ref().map_or(0, |id| id.len());
        let names = self.id.len() + instance_id + self.client_id.len();
        MEMBER_BYTES + names + bytes_of(&self.protocols) + self.assignment.len()
    }

    pub(super) fn for_leader(&self, protocol: Option<&str>) -> JoinMember {
        JoinMember {
            member_id: self.id.clone(),
            instance_id: self.instance_id.clone(),
            metadata: self.metadata(protocol),
        }
    }

    pub(super) fn described(&self, protocol: Option<&str>) -> DescribedMember {
        DescribedMember {
            member_id: self.id.clone(),
            instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            metadata: self.metadata(protocol),
            assignment: self.assignment.clone(),
        }
    }
}

/// Each protocol once, as it was named first.
pub fn distinct(protocols: &[Protocol]) -> Vec<Protocol> {
    let mut distinct: Vec<Protocol> = Vec::with_capacity(protocols.len());
    let mut seen = std::collections::HashSet::new();
    for protocol in protocols {
        if seen.insert(protocol.name.as_str()) {
            distinct.push(protocol.clone());
        }
    }
    distinct
}

/// Memory that is charged for a member's protocols: each name stands in the group's table too.
pub fn bytes_of(protocols: &[Protocol]) -> usize {
    let protocols = protocols.iter();
    protocols
        .map(|one| PROTOCOL_BYTES + 2 * one.name.len() + one.metadata.len())
        .sum()
}

/// A timeout as a client sent it; a negative one is none at all.
pub fn duration_ms(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
