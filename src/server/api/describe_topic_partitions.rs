//! DescribeTopicPartitions (75), version 0 (KIP-966): topics page by page, sorted by name.
//!
//! - A page holds at most `max.request.partition.size.limit` partitions and at least one; unknown
//!   topics do not count.
//! - The lists of eligible leaders are empty, never null: null ends kafka-topics with a
//!   NullPointerException.

use std::collections::BTreeSet;

use super::brokers;
use super::operations::TOPIC_OPERATIONS;
use crate::base::error_code::ErrorCode;
use crate::base::ids::PartitionIndex;
use crate::cluster::decide::topic_names;
use crate::cluster::image::{Image, TopicImage};
use crate::server::context::RequestContext;
use crate::wire::header::RequestHeader;
use crate::wire::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let limit = context.config().described_partitions_max;
    respond(&context.image(), &request, limit, &context.listener().name)
}

/// The page that `request` asks for, of at most `limit` partitions. Pure.
#[must_use]
pub fn respond(
    image: &Image,
    request: &DescribeTopicPartitionsRequest,
    limit: usize,
    listener: &str,
) -> DescribeTopicPartitionsResponse {
    let asked: BTreeSet<&str> = request.topics.iter().map(|topic| &*topic.name).collect();
    if let Some(cursor) = &request.cursor {
        let is_foreign = !asked.is_empty() && !asked.contains(&*cursor.topic_name);
        if is_foreign || cursor.partition_index.0 < 0 {
            return refusal(request);
        }
    }
    let from = request
        .cursor
        .as_ref()
        .map_or("", |cursor| &cursor.topic_name);
    let names: Vec<&str> = if asked.is_empty() {
        let topics = image.topics().iter_from(from);
        topics.map(|topic| &*topic.name).collect()
    } else {
        asked.into_iter().filter(|name| *name >= from).collect()
    };
    let wanted = usize::try_from(request.response_partition_limit).unwrap_or_default();
    let mut page = Page {
        image,
        listener,
        room: wanted.min(limit).max(1),
        response: DescribeTopicPartitionsResponse::default(),
    };
    for name in names {
        let first = match &request.cursor {
            Some(cursor) if cursor.topic_name == name => cursor.partition_index,
            _ => PartitionIndex(0),
        };
        if !page.add(name, first) {
            break;
        }
    }
    page.response
}

/// A cursor that names no topic of the request, or a negative partition.
fn refusal(request: &DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter();
    DescribeTopicPartitionsResponse {
        topics: topics
            .map(|topic| DescribeTopicPartitionsResponseTopic {
                error_code: ErrorCode::INVALID_REQUEST,
                name: Some(topic.name.clone()),
                ..DescribeTopicPartitionsResponseTopic::default()
            })
            .collect(),
        ..DescribeTopicPartitionsResponse::default()
    }
}

struct Page<'a> {
    image: &'a Image,
    listener: &'a str,
    /// Partitions that still fit.
    room: usize,
    response: DescribeTopicPartitionsResponse,
}

impl Page<'_> {
    /// Adds a topic from its partition `first` on; false when the page is full.
    fn add(&mut self, name: &str, first: PartitionIndex) -> bool {
        if self.room == 0 {
            self.end_before(name, first);
            return false;
        }
        let Some(topic) = self.image.topics().by_name(name) else {
            self.response.topics.push(unknown(name));
            return true;
        };
        let partitions: Vec<_> = (topic.partitions.range(first..))
            .map(|(index, _)| *index)
            .take(self.room + 1)
            .collect();
        let described = partitions.iter().take(self.room);
        let partitions_on_page = described.filter_map(|index| self.partition(topic, *index));
        let entry = DescribeTopicPartitionsResponseTopic {
            error_code: ErrorCode::NONE,
            name: Some(topic.name.to_string()),
            topic_id: topic.id,
            is_internal: topic_names::is_internal(&topic.name),
            partitions: partitions_on_page.collect(),
            topic_authorized_operations: TOPIC_OPERATIONS,
        };
        self.response.topics.push(entry);
        if let Some(next) = partitions.get(self.room) {
            self.end_before(name, *next);
            return false;
        }
        self.room -= partitions.len();
        true
    }

    fn end_before(&mut self, name: &str, partition_index: PartitionIndex) {
        self.response.next_cursor = Some(Cursor {
            topic_name: name.to_owned(),
            partition_index,
        });
    }

    fn partition(
        &self,
        topic: &TopicImage,
        index: PartitionIndex,
    ) -> Option<DescribeTopicPartitionsResponsePartition> {
        let partition = topic.partition(index)?;
        let (error_code, leader_id) = brokers::leader(self.image, self.listener, partition);
        Some(DescribeTopicPartitionsResponsePartition {
            error_code,
            partition_index: index,
            leader_id,
            leader_epoch: partition.leader_epoch,
            replica_nodes: partition.replicas.clone(),
            isr_nodes: partition.isr.clone(),
            eligible_leader_replicas: Some(partition.eligible_leader_replicas.clone()),
            last_known_elr: Some(partition.last_known_elr.clone()),
            offline_replicas: brokers::offline_replicas(self.image, partition),
        })
    }
}

fn unknown(name: &str) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: match topic_names::check(name) {
            Ok(()) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
        },
        name: Some(name.to_owned()),
        is_internal: topic_names::is_internal(name),
        topic_authorized_operations: TOPIC_OPERATIONS,
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

#[cfg(test)]
#[path = "describe_topic_partitions_test.rs"]
mod describe_topic_partitions_test;
