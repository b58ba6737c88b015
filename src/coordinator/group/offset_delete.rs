//! OffsetDelete (KIP-496), and the end of offsets whose topics are deleted.

use std::collections::{BTreeMap, BTreeSet};

use super::coordinator::GroupCoordinator;
use super::core::{AfterWrite, Ticket};
use super::offsets::OffsetEntry;
use super::operation::{DeleteOffsets, NamedTopic};
use super::record::Record;
use super::response::{Response, TopicCodes};
use super::roster::Group;
use crate::base::error_code::ErrorCode;
use crate::base::ids::TopicId;

impl GroupCoordinator {
    /// Topics that there are offsets for; several of one name if that was made again.
    #[must_use]
    pub fn topics(&self) -> Vec<NamedTopic> {
        let of_groups = self.offsets.groups().flat_map(|(_, topics)| topics);
        let entries = of_groups.flat_map(|(name, known)| {
            let entries = known.values();
            entries.map(move |entry| (name, entry))
        });
        let all: BTreeSet<(&String, TopicId)> = entries
            .flat_map(|(name, entry)| entry.values().map(move |value| (name, value.topic_id)))
            .collect();
        let all = all.into_iter();
        all.map(|(name, id)| (name.clone(), id)).collect()
    }

    /// Deletes offsets for topics that nobody in the group is subscribed to.
    pub(super) fn delete_offsets(&mut self, ticket: Ticket, delete: DeleteOffsets) {
        let group = match self.check_delete_offsets(&delete) {
            Ok(group) => group,
            Err(code) => {
                let response = Response::DeleteOffsets(Err(code));
                self.core.answer(ticket, response);
                return;
            }
        };
        let mut records = Vec::new();
        let mut codes = Vec::with_capacity(delete.topics.len());
        for topic in delete.topics {
            let code = match group.is_subscribed(&topic.name) {
                true => ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC,
                false => ErrorCode::NONE,
            };
            for index in topic.partitions.iter().filter(|_| code.is_none()) {
                let entry = self.offsets.get(&delete.group_id, &topic.name, *index);
                if entry.and_then(OffsetEntry::latest).is_some() {
                    records.push(Record::Offset {
                        group_id: delete.group_id.clone(),
                        topic: topic.name.clone(),
                        partition: *index,
                        value: None,
                    });
                }
            }
            let partitions = topic.partitions.into_iter();
            codes.push(TopicCodes {
                name: topic.name,
                partitions: partitions.map(|index| (index, code)).collect(),
            });
        }
        let response = Response::DeleteOffsets(Ok(codes));
        self.write_in_parts(records, AfterWrite::Answer(ticket, response));
    }

    fn check_delete_offsets(&self, delete: &DeleteOffsets) -> Result<&Group, ErrorCode> {
        if delete.group_id.is_empty() {
            return Err(ErrorCode::INVALID_GROUP_ID);
        }
        let group = self.groups.get(&delete.group_id);
        let group = group.ok_or(ErrorCode::GROUP_ID_NOT_FOUND)?;
        match group.is_empty() || group.is_of_consumers() {
            true => Ok(group),
            false => Err(ErrorCode::NON_EMPTY_GROUP),
        }
    }

    /// Topics are deleted (`OffsetMetadataManager.onPartitionsDeleted`). Their offsets are told to
    /// nobody from now on; should the tombstones not be written, the next load forgets them again.
    pub(super) fn forget_topics(&mut self, ticket: Ticket, gone: Vec<NamedTopic>) {
        let mut ids: BTreeMap<String, BTreeSet<TopicId>> = BTreeMap::new();
        for (name, id) in gone {
            ids.entry(name).or_default().insert(id);
        }
        let mut records = Vec::new();
        for (group_id, of_group) in self.offsets.groups() {
            for (topic, known) in of_group {
                let Some(ids) = ids.get(topic) else { continue };
                let is_gone = |entry: &OffsetEntry| {
                    let mut values = entry.values();
                    values.any(|offset| ids.contains(&offset.topic_id))
                };
                for (index, _) in known.iter().filter(|(_, entry)| is_gone(entry)) {
                    records.push(Record::Offset {
                        group_id: group_id.clone(),
                        topic: topic.clone(),
                        partition: *index,
                        value: None,
                    });
                }
            }
        }
        for record in &records {
            if let Record::Offset {
                group_id,
                topic,
                partition,
                ..
            } = record
            {
                let key = (group_id, topic.as_str(), *partition);
                self.offsets.forget(&mut self.core.charge, key);
            }
        }
        self.write_in_parts(records, AfterWrite::Answer(ticket, Response::ForgetTopics));
    }
}
