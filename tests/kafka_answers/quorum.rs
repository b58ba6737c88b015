//! DescribeQuorum and DescribeUserScramCredentials.

use coreline::base::ids::{LeaderEpoch, Offset, PartitionIndex, Uuid};
use coreline::base::time::TimestampMs;
use coreline::wire::messages::describe_quorum::{
    DescribeQuorumRequest, DescribeQuorumResponse, PartitionData, TopicData,
};
use coreline::wire::messages::describe_user_scram_credentials::{
    DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse, UserName,
};

use crate::session::{ALL, Peer, Session};

/// Partitions by topic.
type Partitions<'a> = &'a [(&'a str, &'a [i32])];

pub fn compare(session: &mut Session) {
    compare_quorum(session);
    compare_credentials(session);
}

/// - Epochs, ends and times are those of each log; directories and ports those of each node.
fn even_quorum(_: &Peer, response: &mut DescribeQuorumResponse) {
    for partition in response
        .topics
        .iter_mut()
        .flat_map(|topic| &mut topic.partitions)
    {
        if !partition.error_code.is_none() {
            continue;
        }
        assert!(partition.leader_epoch > LeaderEpoch(0));
        assert!(partition.high_watermark > Offset(0));
        partition.leader_epoch = LeaderEpoch(1);
        for voter in &mut partition.current_voters {
            assert!(voter.log_end_offset >= partition.high_watermark);
            voter.log_end_offset = Offset(1);
            for time in [
                &mut voter.last_fetch_timestamp,
                &mut voter.last_caught_up_timestamp,
            ] {
                *time = TimestampMs(time.0.min(1));
            }
            if voter.replica_directory_id != Uuid::ZERO {
                voter.replica_directory_id = Uuid([1; 16]);
            }
        }
        partition.high_watermark = Offset(1);
    }
    for listener in response
        .nodes
        .iter_mut()
        .flat_map(|node| &mut node.listeners)
    {
        assert_eq!(listener.name, "CONTROLLER");
        assert!(["127.0.0.1", "localhost"].contains(&listener.host.as_str()));
        listener.host.clear();
        listener.port = 1;
    }
}

fn compare_quorum(session: &mut Session) {
    let cases: [(&str, Partitions<'_>); 7] = [
        ("the metadata log", &[("__cluster_metadata", &[0])]),
        ("nothing", &[]),
        ("no partition", &[("__cluster_metadata", &[])]),
        ("another partition", &[("__cluster_metadata", &[1])]),
        ("two partitions", &[("__cluster_metadata", &[0, 1])]),
        ("another topic", &[("a", &[0])]),
        (
            "two topics",
            &[("__cluster_metadata", &[0]), ("a", &[0, 3])],
        ),
    ];
    for (case, topics) in cases {
        let topic = |(name, partitions): &(&str, &[i32])| TopicData {
            topic_name: (*name).to_owned(),
            partitions: (partitions.iter().copied())
                .map(|index| PartitionData {
                    partition_index: PartitionIndex(index),
                })
                .collect(),
        };
        let request = |_: &Peer| DescribeQuorumRequest {
            topics: topics.iter().map(topic).collect(),
        };
        session.compare(case, ALL, request, even_quorum);
    }
}

fn compare_credentials(session: &mut Session) {
    let cases: [(&str, Option<&[&str]>); 5] = [
        ("all", None),
        ("all by none", Some(&[])),
        ("one", Some(&["alice"])),
        ("several", Some(&["alice", "bob", ""])),
        ("twice", Some(&["alice", "bob", "alice"])),
    ];
    // - Users come in the order of Kafka's hash map there.
    let even = |_: &Peer, response: &mut DescribeUserScramCredentialsResponse| {
        response
            .results
            .sort_by(|one, other| one.user.cmp(&other.user));
    };
    for (case, users) in cases {
        let user = |name: &&str| UserName {
            name: (*name).to_owned(),
        };
        let request = |_: &Peer| DescribeUserScramCredentialsRequest {
            users: users.map(|users| users.iter().map(user).collect()),
        };
        session.compare(case, ALL, request, even);
    }
}
