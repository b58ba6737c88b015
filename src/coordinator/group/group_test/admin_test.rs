//! What tools ask for.

use super::super::config::WRITE_RECORDS_MAX;
use super::*;

fn listed(harness: &mut Harness, states: &[&str], types: &[&str]) -> Vec<String> {
    let texts = |names: &[&str]| -> Vec<String> {
        let names = names.iter();
        names.map(|name| (*name).to_owned()).collect()
    };
    let list = ListGroups::filtered(&texts(states), &texts(types));
    match harness.answer(Operation::ListGroups(list)) {
        Response::ListGroups(groups) => groups
            .iter()
            .map(|one| format!("{} {} {}", one.group_id, one.protocol_type, one.state))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let mut harness = Harness::new();
    harness.stable(1);
    commit_code(&mut harness, commit_of("simple", "topic", 1));
    let both = ["g consumer Stable", "simple  Empty"];
    assert_eq!(listed(&mut harness, &[], &[]), both);
    assert_eq!(
        listed(&mut harness, &["stable", " EMPTY"], &["Classic"]),
        both
    );
    assert_eq!(listed(&mut harness, &["Empty"], &[]), ["simple  Empty"]);
    assert!(listed(&mut harness, &["Nonsense"], &[]).is_empty());
    assert!(listed(&mut harness, &[], &["consumer"]).is_empty());
}

#[test]
fn groups_are_described_as_far_as_their_state_tells() {
    let mut harness = Harness::new();
    assert_eq!(harness.described("none").state, GroupState::Dead);
    let joined = harness.stable(1);
    let stable = harness.described("g");
    assert_eq!(
        (stable.protocol.as_str(), stable.protocol_type.as_str()),
        ("range", "consumer")
    );
    let member = &stable.members[0];
    assert_eq!(
        (member.client_id.as_str(), member.client_host.as_str()),
        ("client", "/127.0.0.1")
    );
    assert_eq!(
        (&member.assignment[..], member.metadata.is_empty()),
        (&b"part 0"[..], false)
    );
    harness.join(old_client());
    let preparing = harness.described("g");
    assert_eq!(
        (preparing.state, preparing.members.len()),
        (GroupState::PreparingRebalance, 2)
    );
    assert!(preparing.protocol.is_empty() && preparing.members[0].metadata.is_empty());
    assert!(!joined.is_empty());
}

fn deleted(harness: &mut Harness, groups: &[&str]) -> Ticket {
    let groups = groups.iter().map(|id| (*id).into()).collect();
    harness.ask(Operation::DeleteGroups(groups))
}

#[test]
fn groups_without_members_are_deleted_with_their_offsets() {
    let mut harness = Harness::new();
    harness.stable(1);
    let mut commit = commit_of("simple", "topic", 1);
    let one = commit.topics[0].partitions[0].clone();
    commit.topics[0].partitions = (0..WRITE_RECORDS_MAX as i32)
        .map(|index| CommitPartition {
            partition: PartitionIndex(index),
            ..one.clone()
        })
        .collect();
    harness.answer(Operation::CommitOffsets(commit));
    harness.holds = true;
    // A commit on its way is deleted with the others.
    let commit = harness.ask(Operation::CommitOffsets(commit_of("simple", "another", 1)));
    let ticket = deleted(&mut harness, &["g", "simple", "none"]);
    assert_eq!(
        harness.held.len(),
        3,
        "a commit, and a deletion in two writes"
    );
    while !harness.held.is_empty() {
        assert!(!harness.answers.contains_key(&ticket));
        harness.commit();
    }
    assert!(harness.answers.contains_key(&commit));
    let Some(Response::DeleteGroups(codes)) = harness.answers.remove(&ticket) else {
        panic!("no answer");
    };
    let codes: Vec<_> = codes.iter().map(|(_, code)| *code).collect();
    assert_eq!(
        codes,
        [
            ErrorCode::NON_EMPTY_GROUP,
            ErrorCode::NONE,
            ErrorCode::GROUP_ID_NOT_FOUND
        ]
    );
    let replayed = harness.replayed(GroupConfig::default());
    assert_eq!((replayed.groups.len(), replayed.offsets.len()), (1, 0));
    assert_eq!(harness.coordinator.counts().offsets, 0);
}

#[test]
fn a_deletion_that_is_not_stored_leaves_the_group() {
    let mut harness = Harness::new();
    commit_code(&mut harness, commit_of("g", "topic", 1));
    harness.holds = true;
    let ticket = deleted(&mut harness, &["g"]);
    harness.fail(ErrorCode::NOT_ENOUGH_REPLICAS);
    let code = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    let refused = Response::DeleteGroups(vec![("g".into(), code)]);
    assert_eq!(harness.answers.remove(&ticket), Some(refused));
    assert_eq!(harness.state(), GroupState::Empty);
    assert_eq!(fetched(&mut harness, "g", "topic"), 1);
}

/// Of 2,500 partitions.
fn large_commit() -> OffsetCommit {
    let mut commit = commit_of("g", "topic", 1);
    let one = commit.topics[0].partitions[0].clone();
    commit.topics[0].partitions = (0..2_500)
        .map(|index| CommitPartition {
            partition: PartitionIndex(index),
            ..one.clone()
        })
        .collect();
    commit
}

/// Many offsets go in several writes: the group is deleted when all of them are stored.
#[test]
fn a_deletion_fails_when_a_part_of_it_does() {
    let mut harness = Harness::new();
    for (failing, left) in [(Some(0), 1_000), (Some(2), 500), (None, 0)] {
        harness.holds = true;
        let ticket = harness.ask(Operation::CommitOffsets(large_commit()));
        assert_eq!(
            harness.held.len(),
            1,
            "a commit is stored whole or not at all"
        );
        harness.commit();
        assert!(harness.answers.remove(&ticket).is_some());
        let ticket = deleted(&mut harness, &["g"]);
        for part in 0..3 {
            assert!(!harness.answers.contains_key(&ticket));
            match failing == Some(part) {
                true => harness.fail(ErrorCode::KAFKA_STORAGE_ERROR),
                false => harness.commit(),
            }
        }
        let code = failing.map_or(ErrorCode::NONE, |_| ErrorCode::NOT_COORDINATOR);
        let told = Response::DeleteGroups(vec![("g".into(), code)]);
        assert_eq!(harness.answers.remove(&ticket), Some(told));
        assert_eq!(harness.coordinator.groups.is_empty(), failing.is_none());
        assert_eq!(harness.coordinator.offsets.len(), left);
        assert!(harness.held.is_empty());
    }
}
