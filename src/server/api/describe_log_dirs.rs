//! DescribeLogDirs (35), versions 1 to 4 (KIP-113, KIP-827): every log directory, the room on its
//! file system, and the sizes of the logs in it, asked of their shards.
//!
//! As in Kafka (`ReplicaManager.describeLogDirs`) partitions that are not here are left out, and a
//! directory that is offline is KAFKA_STORAGE_ERROR without partitions. A partition that moves has
//! a log in both directories: that in the second is a future one, which lags so many offsets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::alter_replica_log_dirs::absolute;
use crate::base::error_code::ErrorCode;
use crate::base::ids::{PartitionIndex, ShardId, TopicPartition};
use crate::io;
use crate::io::reply::reply_slot;
use crate::server::context::RequestContext;
use crate::shard::{DirectorySizes, LogSize, LogSizesMessage, ShardMessage};
use crate::wire::header::RequestHeader;
use crate::wire::messages::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsPartition, DescribeLogDirsRequest,
    DescribeLogDirsResponse, DescribeLogDirsResult, DescribeLogDirsTopic,
};

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: DescribeLogDirsRequest,
) -> DescribeLogDirsResponse {
    let wanted = match &request.topics {
        None => all(context),
        Some(topics) => named(context, topics),
    };
    drop(request);
    let told = ask(context, wanted).await;
    let directories = &context.fixed_config().log_dirs;
    let mut results = Vec::with_capacity(directories.len());
    for directory in directories {
        let of = told.iter().filter(|told| told.path == *directory);
        results.push(described(directory, of, context).await);
    }
    DescribeLogDirsResponse {
        throttle_time_ms: 0,
        error_code: ErrorCode::NONE,
        results,
    }
}

/// Which logs of which shard; `None` for all of them.
type Wanted = BTreeMap<ShardId, Option<Vec<TopicPartition>>>;

fn all(context: &RequestContext) -> Wanted {
    let shards = context.node().shard().shards();
    shards.map(|shard| (shard, None)).collect()
}

/// Every partition once that is here. Each shard is asked, for the state of the directories.
fn named(context: &RequestContext, topics: &[DescribableLogDirTopic]) -> Wanted {
    let image = context.node().image_ref();
    let mut ids = BTreeSet::new();
    for asked in topics {
        let Some(topic) = image.topics().by_name(&asked.topic) else {
            continue;
        };
        let known = asked.partitions.iter().copied();
        let known = known.filter(|index| topic.partition(*index).is_some());
        ids.extend(known.map(|partition| TopicPartition {
            topic_id: topic.id,
            partition,
        }));
    }
    let mut wanted: Wanted = all(context)
        .into_keys()
        .map(|shard| (shard, Some(Vec::new())))
        .collect();
    for id in ids {
        if let Some(owner) = context.node().shard().owner(id)
            && let Some(Some(of_owner)) = wanted.get_mut(&owner)
        {
            of_owner.push(id);
        }
    }
    wanted
}

/// What each shard has of each directory.
async fn ask(context: &RequestContext, wanted: Wanted) -> Vec<DirectorySizes> {
    let shard = context.node().shard();
    let mut asked = Vec::with_capacity(wanted.len());
    for (owner, partitions) in wanted {
        let (reply, answer) = reply_slot();
        let message = LogSizesMessage { partitions, reply };
        shard.send(owner, ShardMessage::LogSizes(message));
        asked.push(answer);
    }
    let mut told = Vec::new();
    for answer in asked {
        told.extend(answer.await.unwrap_or_default());
    }
    told
}

async fn described<'a>(
    directory: &Path,
    told: impl Iterator<Item = &'a DirectorySizes> + Clone,
    context: &RequestContext,
) -> DescribeLogDirsResult {
    let log_dir = absolute(directory);
    let is_open = told.clone().next().is_some();
    let offline = DescribeLogDirsResult {
        error_code: ErrorCode::KAFKA_STORAGE_ERROR,
        log_dir: log_dir.clone(),
        ..DescribeLogDirsResult::default()
    };
    if !is_open || told.clone().any(|told| told.is_offline) {
        return offline;
    }
    let Ok(space) = io::directory::space(directory).await else {
        return offline;
    };
    let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    DescribeLogDirsResult {
        error_code: ErrorCode::NONE,
        log_dir,
        topics: by_topic(context, told.flat_map(|told| &told.sizes)),
        total_bytes: bytes(space.total_bytes),
        usable_bytes: bytes(space.available_bytes),
    }
}

/// By name and number; what was deleted meanwhile is left out.
fn by_topic<'a>(
    context: &RequestContext,
    sizes: impl Iterator<Item = &'a LogSize>,
) -> Vec<DescribeLogDirsTopic> {
    let image = context.node().image_ref();
    let mut topics: BTreeMap<&str, BTreeMap<PartitionIndex, LogSize>> = BTreeMap::new();
    for size in sizes {
        let id = size.id;
        if let Some(topic) = image.topics().by_id(id.topic_id) {
            let partitions = topics.entry(&topic.name).or_default();
            partitions.insert(id.partition, *size);
        }
    }
    let partition = |(partition_index, size): (PartitionIndex, LogSize)| DescribeLogDirsPartition {
        partition_index,
        partition_size: i64::try_from(size.bytes).unwrap_or(i64::MAX),
        offset_lag: size.future_lag.unwrap_or(0),
        is_future_key: size.future_lag.is_some(),
    };
    let topic = |(name, partitions): (&str, BTreeMap<_, _>)| DescribeLogDirsTopic {
        name: name.to_owned(),
        partitions: partitions.into_iter().map(partition).collect(),
    };
    topics.into_iter().map(topic).collect()
}
