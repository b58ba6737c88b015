//! Which protocol a generation uses, and what its consumers are subscribed to.

use std::collections::{BTreeMap, BTreeSet};

use super::operation::Protocol;
use super::roster::Group;
use crate::wire::messages::consumer_protocol::subscribed_topics;

/// The protocol type of consumers (`ConsumerProtocol.PROTOCOL_TYPE`).
pub const CONSUMER: &str = "consumer";

impl Group {
    /// Whether a member with these protocols can be of this group.
    pub(super) fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        if self.is_empty() {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && (protocols.iter()).any(|one| self.is_supported_by_all(&one.name))
    }

    fn is_supported_by_all(&self, protocol: &str) -> bool {
        self.supporters.get(protocol).copied().unwrap_or(0) == self.members.len()
    }

    /// Of the protocols that all members support, the one that most of them want first; of several
    /// such the first by name.
    pub(super) fn select_protocol(&self) -> Option<String> {
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.values() {
            let mut wanted = member.protocols.iter();
            if let Some(vote) = wanted.find(|one| self.is_supported_by_all(&one.name)) {
                *votes.entry(&vote.name).or_default() += 1;
            }
        }
        let most = votes.iter().rev().max_by_key(|(_, count)| **count);
        most.map(|(name, _)| (*name).to_owned())
    }

    pub(super) fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// The topics of all members; `None` where the coordinator cannot tell.
    pub(super) fn compute_subscribed(&self) -> Option<BTreeSet<String>> {
        if !self.is_of_consumers() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol_name.as_deref()?;
        let mut subscribed = BTreeSet::new();
        for member in self.members.values() {
            let metadata = member.metadata(Some(protocol));
            subscribed.extend(subscribed_topics(metadata).ok()?);
        }
        Some(subscribed)
    }

    /// Whether offsets for `topic` are in use; also where that is unknown.
    pub(super) fn is_subscribed(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.is_of_consumers(),
        }
    }
}
