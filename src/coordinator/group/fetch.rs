//! OffsetFetch.

use super::coordinator::GroupCoordinator;
use super::core::Ticket;
use super::offsets::{OffsetEntry, TopicOffsets};
use super::operation::{FetchOffsets, TopicPartitions};
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
        let of_group = self.offsets.of_group(&fetch.group_id);
        let topics = match &fetch.topics {
            Some(wanted) => wanted
                .iter()
                .map(|topic| wanted_of(of_group.and_then(|known| known.get(&topic.name)), topic))
                .collect(),
            None => of_group
                .into_iter()
                .flatten()
                .map(|(name, known)| all_of(name, known))
                .filter(|topic| !topic.partitions.is_empty())
                .collect(),
        };
        FetchedOffsets {
            error_code: ErrorCode::NONE,
            topics,
        }
    }
}

fn wanted_of(known: Option<&TopicOffsets>, wanted: &TopicPartitions) -> FetchedTopic {
    let partitions = wanted.partitions.iter();
    let fetched = |index: &PartitionIndex| {
        let entry = known.and_then(|known| known.get(index));
        fetched(*index, entry.and_then(OffsetEntry::committed))
    };
    FetchedTopic {
        name: wanted.name.clone(),
        partitions: partitions.map(fetched).collect(),
    }
}

fn all_of(name: &str, known: &TopicOffsets) -> FetchedTopic {
    let stored = known.iter();
    let stored = stored.filter_map(|(index, entry)| Some((*index, entry.committed()?)));
    FetchedTopic {
        name: name.to_owned(),
        partitions: stored
            .map(|(index, offset)| fetched(index, Some(offset)))
            .collect(),
    }
}

fn fetched(partition: PartitionIndex, offset: Option<&CommittedOffset>) -> FetchedOffset {
    FetchedOffset {
        partition,
        offset: offset.map_or(Offset(-1), |one| one.offset),
        leader_epoch: offset.map_or(LeaderEpoch::NONE, |one| one.leader_epoch),
        metadata: offset.map(|one| one.metadata.clone()).unwrap_or_default(),
    }
}
