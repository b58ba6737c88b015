//! AlterReplicaLogDirs (34), versions 1 and 2 (KIP-113): moves partitions into other log
//! directories of this broker. Answered when the copies are there, empty; how far they are
//! DescribeLogDirs tells.
//!
//! As in Kafka (`ReplicaManager.alterReplicaLogDirs`): a partition is answered once, and of several
//! mentions the last counts; a topic whose name leaves no room for that of a copy's folder is
//! INVALID_TOPIC_EXCEPTION, a path that is none of `log.dirs` LOG_DIR_NOT_FOUND, one that is
//! offline KAFKA_STORAGE_ERROR, and so is a move while any of them is; a partition that there is
//! not is UNKNOWN_TOPIC_OR_PARTITION, and is made in that directory when it comes. The directory
//! that a partition is in calls a move off, the one that it is on its way to changes nothing.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::base::error_code::ErrorCode;
use crate::base::ids::{PartitionIndex, ShardId, TopicPartition, Uuid};
use crate::cluster::controller::Preferred;
use crate::cluster::decide::PREFERRED_MAX;
use crate::io::reply::reply_slot;
use crate::io::{self, TaskClass};
use crate::log::format::file_names::{FolderState, NAME_BYTES_MAX, marked_partition_folder_bytes};
use crate::server::context::RequestContext;
use crate::server::moves::{Moves, Whose};
use crate::server::node::Node;
use crate::shard::ShardMessage;
use crate::wire::header::RequestHeader;
use crate::wire::messages::alter_replica_log_dirs::{
    AlterReplicaLogDir, AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse,
};

/// Partitions on their way to one shard, each with its place in the response.
#[derive(Default)]
struct Outgoing {
    moves: Vec<(TopicPartition, Uuid)>,
    places: Vec<(usize, usize)>,
}

/// Answers a request.
pub async fn handle(
    context: &RequestContext,
    _header: &RequestHeader,
    request: AlterReplicaLogDirsRequest,
) -> AlterReplicaLogDirsResponse {
    let (mut results, wanted) = merged(&request.dirs);
    let (outgoing, preferred) = sort(context, &request.dirs, &mut results, &wanted);
    drop(request);
    if !preferred.is_empty() {
        // What is not kept is told like what is.
        let _ = context.control().prefer_directories(preferred).await;
    }
    let mut asked = Vec::with_capacity(outgoing.len());
    for (owner, Outgoing { moves, places }) in outgoing {
        asked.push((ask(context, owner, moves), places));
    }
    for (answers, places) in asked {
        let mut answers = answers.await.unwrap_or_default().into_iter();
        for (topic, partition) in places {
            let slot = results
                .get_mut(topic)
                .and_then(|topic| topic.partitions.get_mut(partition));
            if let Some(slot) = slot {
                slot.error_code = answers.next().unwrap_or(ErrorCode::REPLICA_NOT_AVAILABLE);
            }
        }
    }
    AlterReplicaLogDirsResponse {
        throttle_time_ms: 0,
        results,
    }
}

type Answers = io::reply::ReplyReceiver<Vec<ErrorCode>>;

fn ask(context: &RequestContext, owner: ShardId, moves: Vec<(TopicPartition, Uuid)>) -> Answers {
    let (reply, answers) = reply_slot();
    let work: crate::shard::Work = Box::new(move |shard| {
        let Some(node) = shard.attachment::<Node>() else {
            return;
        };
        io::spawn_detached(TaskClass::Background, async move {
            reply.send(Moves::alter_all(&node, moves, Whose::Client).await);
        });
    });
    context.node().shard().send(owner, ShardMessage::Run(work));
    answers
}

/// Every partition once, in the order of first mentions, with the place of the directory that is
/// named last.
fn merged(
    directories: &[AlterReplicaLogDir],
) -> (Vec<AlterReplicaLogDirTopicResult>, Vec<Vec<usize>>) {
    let mut results: Vec<AlterReplicaLogDirTopicResult> = Vec::new();
    let mut wanted: Vec<Vec<usize>> = Vec::new();
    let mut places: HashMap<&str, (usize, HashMap<PartitionIndex, usize>)> = HashMap::new();
    for (number, directory) in directories.iter().enumerate() {
        for topic in directory
            .topics
            .iter()
            .filter(|one| !one.partitions.is_empty())
        {
            let (place, within) = places.entry(&topic.name).or_insert_with(|| {
                results.push(AlterReplicaLogDirTopicResult {
                    topic_name: topic.name.clone(),
                    partitions: Vec::new(),
                });
                wanted.push(Vec::new());
                (results.len() - 1, HashMap::new())
            });
            let (Some(result), Some(wanted)) = (results.get_mut(*place), wanted.get_mut(*place))
            else {
                continue;
            };
            for index in &topic.partitions {
                let at = *within.entry(*index).or_insert(wanted.len());
                match wanted.get_mut(at) {
                    Some(known) => *known = number,
                    None => {
                        wanted.push(number);
                        result.partitions.push(AlterReplicaLogDirPartitionResult {
                            partition_index: *index,
                            error_code: ErrorCode::NONE,
                        });
                    }
                }
            }
        }
    }
    (results, wanted)
}

/// Answers what no shard needs to be asked for; the rest by its owner.
fn sort(
    context: &RequestContext,
    asked: &[AlterReplicaLogDir],
    results: &mut [AlterReplicaLogDirTopicResult],
    wanted: &[Vec<usize>],
) -> (BTreeMap<ShardId, Outgoing>, Vec<Preferred>) {
    let mut preferred = Vec::new();
    let targets = asked.iter().map(|one| directory_of(context, &one.path));
    let targets: Vec<Result<Uuid, ErrorCode>> = targets.collect();
    let mut outgoing: BTreeMap<ShardId, Outgoing> = BTreeMap::new();
    for ((topic_place, topic), wanted) in results.iter_mut().enumerate().zip(wanted) {
        let name = topic.topic_name.clone();
        for ((place, partition), number) in topic.partitions.iter_mut().enumerate().zip(wanted) {
            let index = partition.partition_index;
            let unknown = Err(ErrorCode::LOG_DIR_NOT_FOUND);
            let found = check_name(&name, index)
                .and_then(|()| targets.get(*number).copied().unwrap_or(unknown))
                .map(|to| (to, owner_of(context, &name, index)));
            match found {
                Err(code) => partition.error_code = code,
                Ok((to, Err(code))) => {
                    partition.error_code = code;
                    let is_new = code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                    if is_new && preferred.len() < PREFERRED_MAX {
                        preferred.push((name.clone(), index, to));
                    }
                }
                Ok((to, Ok((owner, id)))) => {
                    let outgoing = outgoing.entry(owner).or_default();
                    outgoing.moves.push((id, to));
                    outgoing.places.push((topic_place, place));
                }
            }
        }
    }
    (outgoing, preferred)
}

/// Whether the name of a copy's folder would be one that a file system takes (KAFKA-4893).
fn check_name(topic: &str, index: PartitionIndex) -> Result<(), ErrorCode> {
    match marked_partition_folder_bytes(topic, index, FolderState::Future) <= NAME_BYTES_MAX {
        true => Ok(()),
        false => Err(ErrorCode::INVALID_TOPIC_EXCEPTION),
    }
}

/// The directory whose absolute path a client names.
fn directory_of(context: &RequestContext, path: &str) -> Result<Uuid, ErrorCode> {
    let directories = &context.fixed_config().log_dirs;
    let found = directories.iter().find(|one| absolute(one) == path);
    let found = found.ok_or(ErrorCode::LOG_DIR_NOT_FOUND)?;
    let logs = context.node().shard().logs();
    match logs.is_online(found) {
        true => logs.id_of(found).ok_or(ErrorCode::KAFKA_STORAGE_ERROR),
        false => Err(ErrorCode::KAFKA_STORAGE_ERROR),
    }
}

/// A directory's path as clients are told it: absolute, without a slash at the end.
pub(super) fn absolute(directory: &Path) -> String {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    absolute.components().as_path().display().to_string()
}

fn owner_of(
    context: &RequestContext,
    topic: &str,
    index: PartitionIndex,
) -> Result<(ShardId, TopicPartition), ErrorCode> {
    let owner = context.owner_by_name(topic, index);
    owner.map_err(|code| match code {
        ErrorCode::NOT_LEADER_OR_FOLLOWER => ErrorCode::REPLICA_NOT_AVAILABLE,
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::messages::alter_replica_log_dirs::AlterReplicaLogDirTopic;

    fn directory(path: &str, topics: &[(&str, &[i32])]) -> AlterReplicaLogDir {
        let topic = |(name, partitions): &(&str, &[i32])| AlterReplicaLogDirTopic {
            name: (*name).to_owned(),
            partitions: partitions.iter().copied().map(PartitionIndex).collect(),
        };
        AlterReplicaLogDir {
            path: path.to_owned(),
            topics: topics.iter().map(topic).collect(),
        }
    }

    #[test]
    fn of_several_mentions_the_last_counts_at_the_place_of_the_first() {
        let asked = [
            directory("/a", &[("t", &[1, 0]), ("none", &[]), ("u", &[0])]),
            directory("/b", &[("t", &[2, 1])]),
        ];
        let (results, wanted) = merged(&asked);
        let names: Vec<&str> = results.iter().map(|one| one.topic_name.as_str()).collect();
        assert_eq!(names, ["t", "u"]);
        let indexes = results[0]
            .partitions
            .iter()
            .map(|one| one.partition_index.0);
        assert_eq!(indexes.collect::<Vec<_>>(), [1, 0, 2]);
        assert_eq!(wanted, [vec![1, 0, 1], vec![0]]);
    }

    #[test]
    fn a_request_that_names_one_partition_a_million_times_asks_for_it_once() {
        let many = vec![3; 1_000_000];
        let (results, wanted) = merged(&[directory("/a", &[("t", &many)])]);
        assert_eq!((results[0].partitions.len(), wanted[0].len()), (1, 1));
    }

    #[test]
    fn a_name_leaves_room_for_a_copys_folder_up_to_its_limit() {
        // `-0.`, 32 digits and `-future` are the rest of 255 bytes.
        let name = |len: usize| check_name(&"t".repeat(len), PartitionIndex(0));
        assert_eq!(name(213), Ok(()));
        assert_eq!(name(214), Err(ErrorCode::INVALID_TOPIC_EXCEPTION));
    }
}
