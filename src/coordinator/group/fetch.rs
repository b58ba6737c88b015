//! OffsetFetch.

use super::coordinator::GroupCoordinator;
use super::core::Ticket;
use super::offsets::OffsetEntry;
use super::operation::FetchOffsets;
use super::record::CommittedOffset;
use super::response::{FetchedOffset, FetchedOffsets, FetchedTopic, Response};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{LeaderEpoch, Offset, PartitionIndex};

impl GroupCoordinator {
    /// Answers with what is stored; on request not before all that is on its way is.
    pub(super) fn fetch_offsets(&mut self, ticket: Ticket, fetch: FetchOffsets) {
        if fetch.require_stable
            && let Some(mut last) = self.core.in_flight.last_entry()
        {
            last.get_mut().fetches.push((ticket, fetch));
            return;
        }
        let response = self.fetched(&fetch);
        self.core.answer(ticket, Response::FetchOffsets(response));
    }

    pub(super) fn fetched(&self, fetch: &FetchOffsets) -> FetchedOffsets {
        let mut left = fetch.bytes_max;
        let topics = match &fetch.topics {
            Some(_) => self.fetched_some(fetch, &mut left),
            None => self.fetched_all(fetch, &mut left),
        };
        match topics {
            Some(topics) => FetchedOffsets {
                error_code: ErrorCode::NONE,
                topics,
            },
            None => FetchedOffsets {
                error_code: ErrorCode::INVALID_REQUEST,
                topics: Vec::new(),
            },
        }
    }

    /// What is asked for; `None` when it is too much.
    fn fetched_some(&self, fetch: &FetchOffsets, left: &mut usize) -> Option<Vec<FetchedTopic>> {
        let of_group = self.offsets.of_group(&fetch.group_id);
        let mut topics = Vec::new();
        for wanted in fetch.topics.iter().flatten() {
            let known = of_group.and_then(|known| known.get(&wanted.name));
            let mut partitions = Vec::with_capacity(wanted.partitions.len());
            for index in &wanted.partitions {
                let entry = known.and_then(|known| known.get(index));
                let offset = entry.and_then(OffsetEntry::committed);
                partitions.push(take(fetched(*index, offset), left)?);
            }
            topics.push(take_topic(&wanted.name, partitions, left)?);
        }
        Some(topics)
    }

    /// All that there is; `None` when it is too much.
    fn fetched_all(&self, fetch: &FetchOffsets, left: &mut usize) -> Option<Vec<FetchedTopic>> {
        let of_group = self.offsets.of_group(&fetch.group_id);
        let mut topics = Vec::new();
        for (name, known) in of_group.into_iter().flatten() {
            let mut partitions = Vec::new();
            for (index, entry) in known {
                if let Some(offset) = entry.committed() {
                    partitions.push(take(fetched(*index, Some(offset)), left)?);
                }
            }
            if !partitions.is_empty() {
                topics.push(take_topic(name, partitions, left)?);
            }
        }
        Some(topics)
    }
}

/// Counts an offset towards the answer's limit.
fn take(offset: FetchedOffset, left: &mut usize) -> Option<FetchedOffset> {
    *left = left.checked_sub(offset.bytes())?;
    Some(offset)
}

/// Counts a topic's name too.
fn take_topic(
    name: &str,
    partitions: Vec<FetchedOffset>,
    left: &mut usize,
) -> Option<FetchedTopic> {
    let topic = FetchedTopic {
        name: name.to_owned(),
        partitions,
    };
    *left = left.checked_sub(topic.own_bytes())?;
    Some(topic)
}

fn fetched(partition: PartitionIndex, offset: Option<&CommittedOffset>) -> FetchedOffset {
    FetchedOffset {
        partition,
        offset: offset.map_or(Offset(-1), |one| one.offset),
        leader_epoch: offset.map_or(LeaderEpoch::NONE, |one| one.leader_epoch),
        metadata: offset.map(|one| one.metadata.clone()).unwrap_or_default(),
    }
}
