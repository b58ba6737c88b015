//! What a leader decides, and how members tell each other: opaque to the broker but for the topics.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{BufMut, Bytes, BytesMut};

/// What a member says that it holds, and since which generation.
#[derive(Debug)]
pub struct Claim {
    member_id: String,
    generation: i32,
    owned: BTreeSet<i32>,
}

/// A subscription as Kafka's consumers write it, version 0: topics, then bytes of our own.
pub fn metadata(topic: &str, generation: i32, owned: &BTreeSet<i32>) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_i16(0);
    bytes.put_i32(1);
    bytes.put_i16(topic.len() as i16);
    bytes.put_slice(topic.as_bytes());
    bytes.put_i32(4 + 4 * owned.len() as i32);
    bytes.put_i32(generation);
    owned.iter().for_each(|partition| bytes.put_i32(*partition));
    bytes.freeze()
}

pub fn packed(partitions: &BTreeSet<i32>) -> Bytes {
    let mut bytes = BytesMut::new();
    partitions.iter().for_each(|one| bytes.put_i32(*one));
    bytes.freeze()
}

pub fn unpacked(bytes: &[u8]) -> BTreeSet<i32> {
    let numbers = bytes.chunks_exact(4);
    numbers
        .map(|four| i32::from_be_bytes(four.try_into().unwrap()))
        .collect()
}

impl Claim {
    pub fn of(member_id: &str, metadata: &[u8]) -> Self {
        let topic_len = i16::from_be_bytes(metadata[6..8].try_into().unwrap()) as usize;
        let own = &metadata[8 + topic_len + 4..];
        Self {
            member_id: member_id.to_owned(),
            generation: i32::from_be_bytes(own[..4].try_into().unwrap()),
            owned: unpacked(&own[4..]),
        }
    }
}

type Given = BTreeMap<String, BTreeSet<i32>>;

/// Everything anew, to others than last time.
pub fn eager(claims: &[Claim], partitions: i32, generation: i32) -> Given {
    let mut given: Given = (claims.iter())
        .map(|claim| (claim.member_id.clone(), BTreeSet::new()))
        .collect();
    for partition in 0..partitions {
        if claims.is_empty() {
            break;
        }
        let place = (partition + generation) as usize % claims.len();
        let own = given.get_mut(&claims[place].member_id).unwrap();
        own.insert(partition);
    }
    given
}

/// Members keep what they hold up to their share. What one has too much it gives up first; another
/// gets it in the generation after.
pub fn cooperative(claims: &[Claim], partitions: i32) -> Given {
    let mut given = Given::new();
    if claims.is_empty() {
        return given;
    }
    let share = (partitions as usize).div_ceil(claims.len());
    // Who has slept through a generation holds nothing of what another got since.
    let mut newest: BTreeMap<i32, i32> = BTreeMap::new();
    for claim in claims {
        for partition in &claim.owned {
            let known = newest.entry(*partition).or_insert(claim.generation);
            *known = (*known).max(claim.generation);
        }
    }
    let mut taken = BTreeSet::new();
    for claim in claims {
        let is_own = |one: &&i32| newest.get(*one) == Some(&claim.generation);
        let kept = claim.owned.iter().filter(is_own).take(share).copied();
        let kept: BTreeSet<i32> = kept.filter(|one| taken.insert(*one)).collect();
        given.insert(claim.member_id.clone(), kept);
    }
    for partition in (0..partitions).filter(|one| !newest.contains_key(one)) {
        let least = given.iter_mut().min_by_key(|(_, own)| own.len()).unwrap();
        least.1.insert(partition);
    }
    given
}

#[test]
fn assignments_are_whole_and_what_is_moved_is_free_first() {
    let claim = |id: &str, generation, owned: &[i32]| {
        let owned = owned.iter().copied().collect();
        Claim::of(id, &metadata("topic", generation, &owned))
    };
    let all = |given: &Given| given.values().map(BTreeSet::len).sum::<usize>();
    let fresh = [claim("a", -1, &[]), claim("b", -1, &[])];
    assert_eq!(all(&eager(&fresh, 5, 7)), 5);
    assert_eq!(all(&cooperative(&fresh, 5)), 5);
    // The third comes: two give up one each, and nobody has those yet.
    let three = [
        claim("a", 3, &[0, 1, 2]),
        claim("b", 3, &[3, 4, 5]),
        claim("c", -1, &[]),
    ];
    let given = cooperative(&three, 6);
    assert_eq!((all(&given), given["c"].len()), (4, 0));
    // What a sleeper still claims belongs to who got it since.
    let two = [claim("a", 2, &[0, 1]), claim("b", 3, &[0])];
    let given = cooperative(&two, 2);
    assert_eq!(
        (given["a"].clone(), given["b"].clone()),
        ([1].into(), [0].into())
    );
}
