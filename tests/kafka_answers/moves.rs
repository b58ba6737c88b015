//! AlterReplicaLogDirs: what is refused, what changes nothing, and what a move looks like when it
//! has come to its end.

use std::time::{Duration, Instant};

use coreline::base::ids::PartitionIndex;
use coreline::wire::messages::alter_replica_log_dirs::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic, AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
};
use coreline::wire::messages::describe_log_dirs::{
    DescribeLogDirsRequest, DescribeLogDirsResponse,
};

use crate::data::{self, create, wait_until_led};
use crate::session::{ALL, Peer, Session, from};

const MOVES: &str = "moves";
/// How long a move of next to nothing may take.
const MOVED_WITHIN: Duration = Duration::from_secs(60);

/// Which directory of the two: each broker has its own paths.
#[derive(Clone, Copy)]
enum To<'a> {
    First,
    Second,
    Path(&'a str),
}

/// The paths of a broker's directories, in the order of their names.
fn directories(peer: &mut Peer) -> Vec<String> {
    let request = DescribeLogDirsRequest { topics: None };
    let response: DescribeLogDirsResponse = peer.ask(4, &request);
    let mut paths: Vec<String> = response
        .results
        .into_iter()
        .map(|one| one.log_dir)
        .collect();
    paths.sort();
    paths
}

type Wish<'a> = (To<'a>, &'a str, &'a [i32]);

fn request(paths: &[String], wishes: &[Wish<'_>]) -> AlterReplicaLogDirsRequest {
    let directory = |(to, topic, partitions): &Wish<'_>| AlterReplicaLogDir {
        path: match to {
            To::First => paths[0].clone(),
            To::Second => paths[1].clone(),
            To::Path(path) => (*path).to_owned(),
        },
        topics: vec![AlterReplicaLogDirTopic {
            name: (*topic).to_owned(),
            partitions: partitions.iter().copied().map(PartitionIndex).collect(),
        }],
    };
    AlterReplicaLogDirsRequest {
        dirs: wishes.iter().map(directory).collect(),
    }
}

/// - Topics and partitions come in the order of Kafka's hash maps there.
fn even(_: &Peer, response: &mut AlterReplicaLogDirsResponse) {
    response
        .results
        .sort_by(|one, other| one.topic_name.cmp(&other.topic_name));
    for topic in &mut response.results {
        topic.partitions.sort_by_key(|one| one.partition_index);
    }
}

pub fn compare(session: &mut Session) {
    for peer in [&mut session.kafka, &mut session.coreline] {
        create(peer, MOVES, data::KEPT.to_vec());
        (0..2).for_each(|index| wait_until_led(peer, MOVES, index));
    }
    session.learn();
    let [theirs, ours] = [
        directories(&mut session.kafka),
        directories(&mut session.coreline),
    ];
    let paths = move |peer: &Peer| match peer.is_kafka {
        true => theirs.clone(),
        false => ours.clone(),
    };
    let long = "t".repeat(230);
    // Beside `-0.`, 32 digits and `-future` so much is left of 255 bytes.
    let longest = "t".repeat(213);
    let cases: [(&str, &[Wish<'_>]); 11] = [
        ("nothing", &[]),
        ("no partitions", &[(To::First, MOVES, &[])]),
        ("nowhere", &[(To::Path("/nowhere"), MOVES, &[0])]),
        ("no path", &[(To::Path(""), MOVES, &[0])]),
        ("relative", &[(To::Path("data"), MOVES, &[0])]),
        (
            "unknown",
            &[(To::First, "nope", &[0]), (To::First, MOVES, &[7, -1])],
        ),
        (
            "unknown and nowhere",
            &[(To::Path("/nowhere"), "nope", &[0])],
        ),
        ("too long", &[(To::First, long.as_str(), &[0])]),
        (
            "too long and nowhere",
            &[(To::Path("/nowhere"), long.as_str(), &[0])],
        ),
        ("not too long", &[(To::First, longest.as_str(), &[0])]),
        ("a name that none may have", &[(To::First, "a b", &[0])]),
    ];
    for (case, wishes) in cases {
        session.compare(case, ALL, |peer| request(&paths(peer), wishes), even);
    }
    // There and back, asked again on the way; of two wishes the last counts.
    let journeys: [(&str, &[Wish<'_>], usize); 4] = [
        ("to the second", &[(To::Second, MOVES, &[0, 1])], 1),
        ("where they are", &[(To::Second, MOVES, &[0, 1])], 1),
        (
            "both ways",
            &[(To::First, MOVES, &[0]), (To::Second, MOVES, &[0])],
            1,
        ),
        ("to the first", &[(To::First, MOVES, &[0, 1])], 0),
    ];
    for (case, wishes, end) in journeys {
        session.compare(case, from(2), |peer| request(&paths(peer), wishes), even);
        for peer in [&mut session.kafka, &mut session.coreline] {
            let all = paths(peer);
            wait_until_in(peer, &all[end]);
        }
    }
}

/// Until both partitions are in that directory alone.
fn wait_until_in(peer: &mut Peer, path: &str) {
    let begun = Instant::now();
    loop {
        let request = DescribeLogDirsRequest { topics: None };
        let response: DescribeLogDirsResponse = peer.ask(4, &request);
        let mut here = Vec::new();
        for result in response.results {
            let topics = result.topics.into_iter();
            for topic in topics.filter(|topic| topic.name == MOVES) {
                let logs = topic.partitions.into_iter();
                here.extend(logs.map(|one| (result.log_dir == path, one.is_future_key)));
            }
        }
        if here == [(true, false), (true, false)] {
            return;
        }
        let who = if peer.is_kafka { "Kafka" } else { "Coreline" };
        assert!(begun.elapsed() < MOVED_WITHIN, "{who}: {here:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
