//! The way to a group's coordinator: the partition of its id, the shard of the partition, one hop.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::context::RequestContext;
use super::node::Node;
use crate::base::config::BrokerConfig;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{PartitionIndex, TopicId, TopicPartition};
use crate::base::limits::MIB;
use crate::cluster::image::Image;
use crate::coordinator::group::{GroupConfig, GroupMemory, Operation, Response};
use crate::coordinator::group_service::{GroupAnswer, GroupServiceOptions};
use crate::io::reply::{ReplyReceiver, reply_slot};
use crate::shard::{Shard, ShardMessage};
use crate::wire::compression::Codec;

/// The topic of groups and their offsets (`Topic.GROUP_METADATA_TOPIC_NAME`).
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";
/// How long a group's records may wait for room in the log (`offsets.commit.timeout.ms`).
const COMMIT_TIMEOUT: Duration = Duration::from_secs(5);
/// What is read at a time while groups are loaded (`offsets.load.buffer.size`).
const LOAD_BYTES: usize = 5 * MIB;
/// Groups and offsets may take such a part of what a shard has for requests, beside it.
const GROUPS_DIVISOR: usize = 4;

/// How coordinators work under these settings.
#[must_use]
pub fn options(config: &BrokerConfig, requests_bytes: usize) -> GroupServiceOptions {
    let settings = &config.groups;
    GroupServiceOptions {
        groups: GroupConfig {
            session_timeout_min: settings.session_timeout_min,
            session_timeout_max: settings.session_timeout_max,
            initial_rebalance_delay: settings.initial_rebalance_delay,
            members_max: settings.members_max,
            offset_metadata_max: settings.offset_metadata_max,
            offsets_retention: settings.offsets_retention,
            retention_check_interval: settings.retention_check_interval,
        },
        memory: GroupMemory::new(requests_bytes / GROUPS_DIVISOR),
        commit_timeout: COMMIT_TIMEOUT,
        load_bytes: LOAD_BYTES,
        codec: Codec::from_id(settings.topic_codec).unwrap_or_default(),
        has_topic,
    }
}

fn has_topic(shard: &Rc<Shard>, name: &str, id: TopicId) -> bool {
    let Some(node) = shard.attachment::<Node>() else {
        return true;
    };
    knows(&node.image_ref(), name, id)
}

/// Whether there is such a topic. One who names no id means whichever has the name.
fn knows(image: &Image, name: &str, id: TopicId) -> bool {
    let known = image.topics().by_name(name);
    known.is_some_and(|known| id == TopicId::ZERO || known.id == id)
}

/// The partition of a group's records (`GroupCoordinatorService.partitionFor`).
#[must_use]
pub fn partition_for(group_id: &str, partitions: usize) -> PartitionIndex {
    let hash = group_id.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    });
    // The one number without a counterpart counts as none.
    let hash = hash.checked_abs().unwrap_or(0);
    let partitions = i32::try_from(partitions).unwrap_or(i32::MAX).max(1);
    PartitionIndex(hash % partitions)
}

/// The partition of `__consumer_offsets` that has the group; `None` while there is no such topic.
#[must_use]
pub fn home_of(image: &Image, group_id: &str) -> Option<TopicPartition> {
    let topic = image.topics().by_name(OFFSETS_TOPIC)?;
    Some(TopicPartition {
        topic_id: topic.id,
        partition: partition_for(group_id, topic.partitions.len()),
    })
}

/// Asks the coordinator of the group `group_id`. The answer may take long.
pub async fn ask(context: &RequestContext, group_id: &str, operation: Operation) -> GroupAnswer {
    let home = home_of(&context.node().image_ref(), group_id);
    match home {
        Some(home) => ask_home(context, home, operation).await,
        None => Err(ErrorCode::NOT_COORDINATOR),
    }
}

/// Asks the coordinator of one partition's groups.
pub async fn ask_home(
    context: &RequestContext,
    home: TopicPartition,
    operation: Operation,
) -> GroupAnswer {
    match send(context, home, operation) {
        Some(answer) => answer.await.unwrap_or(Err(ErrorCode::NOT_COORDINATOR)),
        None => Err(ErrorCode::NOT_COORDINATOR),
    }
}

/// Sends an operation to the shard that owns the partition.
pub fn send(
    context: &RequestContext,
    home: TopicPartition,
    operation: Operation,
) -> Option<ReplyReceiver<GroupAnswer>> {
    let owner = context.owner(home).ok()?;
    let (reply, answer) = reply_slot();
    let ask = move |shard: &Rc<Shard>| {
        if let Some(node) = shard.attachment::<Node>() {
            node.groups().ask(home, operation, reply);
        }
    };
    let shard = context.node().shard();
    shard.send(owner, ShardMessage::Run(Box::new(ask)));
    Some(answer)
}

/// All partitions of `__consumer_offsets`.
#[must_use]
pub fn homes(image: &Image) -> Vec<TopicPartition> {
    let topic = image.topics().by_name(OFFSETS_TOPIC);
    let of_topic = topic.into_iter().flat_map(|topic| {
        let partitions = topic.partitions.keys();
        partitions.map(|index| TopicPartition {
            topic_id: topic.id,
            partition: *index,
        })
    });
    of_topic.collect()
}

/// Groups of one partition, if there is one, each with its place in the request.
pub type OfHome = (Option<TopicPartition>, Vec<(usize, String)>);

/// Groups that are asked for, by the partition that has them.
pub fn by_home<'a>(image: &Image, groups: impl Iterator<Item = &'a str>) -> Vec<OfHome> {
    let mut homes: BTreeMap<Option<TopicPartition>, Vec<(usize, String)>> = BTreeMap::new();
    for (place, group_id) in groups.enumerate() {
        let home = home_of(image, group_id);
        let of_home = homes.entry(home).or_default();
        of_home.push((place, group_id.to_owned()));
    }
    homes.into_iter().collect()
}

/// A client's address as Java prints one.
#[must_use]
pub fn java_address(context: &RequestContext) -> String {
    format!("/{}", context.peer().ip().to_canonical())
}

/// The answer of another kind than was asked for cannot be.
pub fn expect<T>(
    answer: GroupAnswer,
    take: impl FnOnce(Response) -> Option<T>,
) -> Result<T, ErrorCode> {
    take(answer?).ok_or(ErrorCode::UNKNOWN_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{BrokerId, Uuid};
    use crate::cluster::records::{MetadataRecord, TopicRecord};

    #[test]
    fn a_topic_is_known_by_its_name_and_its_id_where_one_is_named() {
        let [one, other] = [1, 2].map(|number| Uuid([number; 16]));
        let mut image = Image::new("cluster", BrokerId(1));
        let topic = TopicRecord {
            name: "t".into(),
            topic_id: one,
        };
        image.apply(&MetadataRecord::Topic(topic)).expect("applied");
        assert!(knows(&image, "t", one) && knows(&image, "t", TopicId::ZERO));
        assert!(!knows(&image, "t", other), "an earlier or a later one");
        assert!(!knows(&image, "u", one) && !knows(&image, "u", TopicId::ZERO));
    }

    /// Hashes as `java.lang.String.hashCode` gives them, over UTF-16 code units.
    #[test]
    fn a_group_has_the_partition_that_kafka_gives_it() {
        let all = i32::MAX as usize;
        for (group_id, hash) in [("", 0), ("g", 103), ("ab", 31 * 97 + 98)] {
            assert_eq!(partition_for(group_id, all).0, hash);
        }
        // "polygenelubricants" has the least number of all, which has no counterpart.
        assert_eq!(partition_for("polygenelubricants", 50).0, 0);
        let pair = 0xd83d * 31 + 0xde00;
        assert_eq!(partition_for("\u{1f600}", all).0, pair);
    }
}
