//! Commits, fetches, deletions and the age of offsets.

use super::*;

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

#[test]
fn a_client_that_is_no_member_commits_and_fetches() {
    let mut harness = Harness::new();
    assert_eq!(fetched(&mut harness, "g", "topic"), -1);
    assert!(commit_code(&mut harness, commit_of("g", "topic", 7)).is_none());
    assert_eq!(fetched(&mut harness, "g", "topic"), 7);
    let all = FetchOffsets {
        topics: None,
        ..fetch_of("g", "")
    };
    let Response::FetchOffsets(all) = harness.answer(Operation::FetchOffsets(all)) else {
        panic!("another answer");
    };
    let one = &all.topics[0].partitions[0];
    assert_eq!(
        (one.offset.0, one.leader_epoch.0, one.metadata.as_str()),
        (7, 3, "m")
    );
    assert_eq!(harness.state(), GroupState::Empty);
    let replayed = harness.replayed(GroupConfig::default());
    assert_eq!(
        replayed.offsets.of_group("g"),
        harness.coordinator.offsets.of_group("g")
    );
}

#[test]
fn commits_are_refused_with_kafkas_codes() {
    let mut harness = Harness::new();
    let mut unknown = commit_of("other", "topic", 1);
    unknown.generation_id = GenerationId(1);
    let code = commit_code(&mut harness, unknown.clone());
    assert_eq!(code, ErrorCode::GROUP_ID_NOT_FOUND);
    unknown.tells_unknown_group = false;
    assert_eq!(
        commit_code(&mut harness, unknown),
        ErrorCode::ILLEGAL_GENERATION
    );
    let joined = harness.stable(2);
    let commit = commit_of("g", "topic", 1);
    let code = commit_code(&mut harness, commit.clone());
    assert_eq!(code, ErrorCode::UNKNOWN_MEMBER_ID, "there are members");
    assert!(commit_code(&mut harness, by(&joined[1], commit.clone())).is_none());
    let mut stale = by(&joined[1], commit.clone());
    stale.generation_id = GenerationId(0);
    assert_eq!(
        commit_code(&mut harness, stale),
        ErrorCode::ILLEGAL_GENERATION
    );
    let mut fenced = by(&joined[1], commit.clone());
    fenced.instance_id = Some("x".into());
    assert_eq!(
        commit_code(&mut harness, fenced),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    harness.join(known(&joined[0].member_id));
    let last = by(&joined[1], commit.clone());
    assert!(
        commit_code(&mut harness, last).is_none(),
        "before it joins again"
    );
    let ticket = harness.join(known(&joined[1].member_id));
    let next = harness.joined(ticket);
    let code = commit_code(&mut harness, by(&next, commit));
    assert_eq!(code, ErrorCode::REBALANCE_IN_PROGRESS);
}

/// A request may name one partition as often as it has room for: what each costs may not grow with
/// how many there are.
#[test]
fn one_partition_is_set_very_often_at_little_cost() {
    const TIMES: i64 = 50_000;
    let mut many = commit_of("g", "topic", 0);
    let one = many.topics[0].partitions[0].clone();
    let partitions = (0..TIMES).map(|offset| CommitPartition {
        offset: Offset(offset),
        ..one.clone()
    });
    many.topics[0].partitions = partitions.collect();
    let mut harness = Harness::new();
    let began = std::time::Instant::now();
    assert!(commit_code(&mut harness, many.clone()).is_none());
    assert_eq!(fetched(&mut harness, "g", "topic"), TIMES - 1);
    harness.holds = true;
    harness.ask(Operation::CommitOffsets(many.clone()));
    harness.ask(Operation::CommitOffsets(many));
    harness.fail(ErrorCode::NOT_ENOUGH_REPLICAS);
    harness.holds = false;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(fetched(&mut harness, "g", "topic"), TIMES - 1);
    harness.answer(Operation::DeleteGroups(vec!["g".into()]));
    assert_eq!(harness.memory.used(), 0);
}

#[test]
fn a_commit_counts_when_it_is_stored() {
    let mut harness = Harness::new();
    commit_code(&mut harness, commit_of("g", "topic", 1));
    harness.holds = true;
    let commit = harness.ask(Operation::CommitOffsets(commit_of("g", "topic", 2)));
    assert!(!harness.answers.contains_key(&commit));
    assert_eq!(fetched(&mut harness, "g", "topic"), 1);
    let stable = FetchOffsets {
        require_stable: true,
        ..fetch_of("g", "topic")
    };
    let stable = harness.ask(Operation::FetchOffsets(stable));
    let third = harness.ask(Operation::CommitOffsets(commit_of("g", "topic", 3)));
    assert!(
        !harness.answers.contains_key(&stable),
        "it waits for what was before it"
    );
    harness.commit();
    assert!(harness.answers.contains_key(&commit));
    let Some(Response::FetchOffsets(told)) = harness.answers.remove(&stable) else {
        panic!("no answer");
    };
    assert_eq!(told.topics[0].partitions[0].offset.0, 2);
    harness.fail(ErrorCode::KAFKA_STORAGE_ERROR);
    let refused = Response::CommitOffsets(Err(ErrorCode::NOT_COORDINATOR));
    assert_eq!(harness.answers.remove(&third), Some(refused));
    assert_eq!(fetched(&mut harness, "g", "topic"), 2);
}

#[test]
fn a_commit_that_fails_makes_no_group_known() {
    let mut harness = Harness::new();
    let mut large = commit_of("g", "topic", 1);
    large.topics[0].partitions[0].metadata = Some("m".repeat(5_000));
    let code = commit_code(&mut harness, large);
    assert_eq!(code, ErrorCode::OFFSET_METADATA_TOO_LARGE);
    assert_eq!(harness.state(), GroupState::Dead);
    harness.holds = true;
    harness.ask(Operation::CommitOffsets(commit_of("g", "topic", 1)));
    harness.ask(Operation::CommitOffsets(commit_of("g", "topic", 2)));
    harness.fail(ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(harness.state(), GroupState::Empty, "one is on its way");
    harness.fail(ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(harness.state(), GroupState::Dead);
    assert_eq!(harness.memory.used(), 0);
    harness.holds = false;
    assert!(commit_code(&mut harness, commit_of("g", "topic", 3)).is_none());
    harness.holds = true;
    harness.ask(Operation::CommitOffsets(commit_of("g", "topic", 4)));
    harness.fail(ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(fetched(&mut harness, "g", "topic"), 3);
}

fn delete_code(harness: &mut Harness, topic: &str) -> ErrorCode {
    let delete = DeleteOffsets {
        group_id: "g".into(),
        topics: fetch_of("g", topic).topics.unwrap(),
    };
    match harness.answer(Operation::DeleteOffsets(delete)) {
        Response::DeleteOffsets(Ok(codes)) => codes[0].partitions[0].1,
        Response::DeleteOffsets(Err(code)) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn offsets_are_deleted_unless_someone_is_subscribed() {
    let mut harness = Harness::new();
    assert_eq!(
        delete_code(&mut harness, "topic"),
        ErrorCode::GROUP_ID_NOT_FOUND
    );
    let joined = harness.stable(1);
    for topic in ["topic", "old"] {
        commit_code(&mut harness, by(&joined[0], commit_of("g", topic, 5)));
    }
    let code = delete_code(&mut harness, "topic");
    assert_eq!(code, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
    assert!(delete_code(&mut harness, "old").is_none());
    assert_eq!(fetched(&mut harness, "g", "old"), -1);
    assert_eq!(fetched(&mut harness, "g", "topic"), 5);
    harness.leave(&[(&joined[0].member_id, None)]);
    assert!(delete_code(&mut harness, "topic").is_none());
    assert!(
        delete_code(&mut harness, "topic").is_none(),
        "also what is not there"
    );
    assert_eq!(harness.coordinator.counts().offsets, 0);
}

#[test]
fn offsets_of_another_kind_of_group_are_deleted_only_when_it_is_empty() {
    let mut harness = Harness::new();
    harness.join(Join {
        protocol_type: "connect".into(),
        ..old_client()
    });
    assert_eq!(
        delete_code(&mut harness, "topic"),
        ErrorCode::NON_EMPTY_GROUP
    );
}

#[test]
fn offsets_of_a_simple_consumer_expire_after_their_commit_and_the_group_with_them() {
    let mut harness = Harness::new();
    commit_code(&mut harness, commit_of("g", "a", 1));
    harness.pass(WEEK / 2);
    commit_code(&mut harness, commit_of("g", "b", 1));
    harness.pass(WEEK / 2 + Duration::from_secs(600));
    assert_eq!(fetched(&mut harness, "g", "a"), -1);
    assert_eq!(fetched(&mut harness, "g", "b"), 1);
    assert_eq!(harness.state(), GroupState::Empty);
    harness.pass(WEEK);
    assert_eq!(harness.state(), GroupState::Dead);
    assert!(matches!(
        harness.log.last(),
        Some(Record::Group { value: None, .. })
    ));
    assert_eq!(harness.replayed(GroupConfig::default()).groups.len(), 0);
}

#[test]
fn offsets_of_members_expire_when_the_group_has_been_empty_for_long() {
    let mut harness = Harness::with(GroupConfig {
        session_timeout_max: WEEK * 10,
        ..GroupConfig::default()
    });
    let ticket = harness.join(Join {
        session_timeout_ms: (WEEK * 3).as_millis() as i32,
        ..old_client()
    });
    harness.pass_ms(3_000);
    let joined = harness.joined(ticket);
    harness.sync(&joined, &[]);
    for topic in ["topic", "unsubscribed"] {
        commit_code(&mut harness, by(&joined, commit_of("g", topic, 1)));
    }
    harness.pass(WEEK + Duration::from_secs(600));
    assert_eq!(fetched(&mut harness, "g", "topic"), 1, "in use");
    assert_eq!(fetched(&mut harness, "g", "unsubscribed"), -1);
    harness.leave(&[(&joined.member_id, None)]);
    harness.pass(WEEK - Duration::from_secs(600));
    assert_eq!(
        fetched(&mut harness, "g", "topic"),
        1,
        "not yet empty for long"
    );
    harness.pass(Duration::from_secs(1_200));
    assert_eq!(fetched(&mut harness, "g", "topic"), -1);
    assert_eq!(harness.state(), GroupState::Dead);
}

#[test]
fn a_client_may_say_how_long_its_offsets_are_kept() {
    let mut harness = Harness::new();
    let mut commit = commit_of("g", "topic", 1);
    commit.retention_ms = 3_600_000;
    commit_code(&mut harness, commit);
    harness.pass(Duration::from_secs(3_599));
    assert_eq!(fetched(&mut harness, "g", "topic"), 1);
    harness.pass(Duration::from_secs(601));
    assert_eq!(fetched(&mut harness, "g", "topic"), -1);
}

#[test]
fn many_groups_expire_some_at_a_time() {
    let mut harness = Harness::new();
    let count = super::super::config::EXPIRY_GROUPS_MAX * 2 + 1;
    for number in 0..count {
        commit_code(&mut harness, commit_of(&format!("g{number}"), "topic", 1));
    }
    harness.pass(WEEK);
    let left = |harness: &Harness| harness.coordinator.counts().groups[0];
    let mut looks = 0;
    while left(&harness) > 0 {
        let before = left(&harness);
        let next = harness.coordinator.next_deadline().unwrap();
        harness.pass(next.since(harness.now().monotonic));
        assert!(before - left(&harness) <= count / 2);
        looks += 1;
    }
    assert!(looks <= 3, "the next look follows soon");
}

/// The topic `number` of a name.
fn made(topic: &str, number: u8) -> NamedTopic {
    (topic.to_owned(), Uuid([number; 16]))
}

fn commit_for((topic, topic_id): &NamedTopic, offset: i64) -> OffsetCommit {
    let mut commit = commit_of("g", topic, offset);
    commit.topics[0].topic_id = *topic_id;
    commit
}

#[test]
fn offsets_for_deleted_topics_are_forgotten() {
    let mut harness = Harness::new();
    for (group, topic) in [("g", "a"), ("g", "b"), ("h", "a")] {
        commit_code(&mut harness, commit_of(group, topic, 1));
    }
    assert_eq!(harness.coordinator.topics(), [made("a", 1), made("b", 1)]);
    harness.answer(Operation::ForgetTopics(vec![made("a", 1)]));
    assert_eq!(fetched(&mut harness, "g", "a"), -1);
    assert_eq!(fetched(&mut harness, "h", "a"), -1);
    assert_eq!(fetched(&mut harness, "g", "b"), 1);
    let replayed = harness.replayed(GroupConfig::default());
    assert_eq!(replayed.topics(), [made("b", 1)]);
}

#[test]
fn the_next_topic_of_a_name_keeps_its_offsets() {
    let mut harness = Harness::new();
    commit_code(&mut harness, commit_for(&made("a", 2), 7));
    harness.answer(Operation::ForgetTopics(vec![made("a", 1), made("a", 0)]));
    assert_eq!(fetched(&mut harness, "g", "a"), 7);
    // The record of an offset with an end of its own does not say which topic it is for.
    let mut ends = commit_for(&made("a", 2), 8);
    ends.retention_ms = 1_000;
    commit_code(&mut harness, ends);
    assert_eq!(harness.coordinator.topics(), [made("a", 0)]);
    harness.answer(Operation::ForgetTopics(vec![made("a", 2), made("a", 0)]));
    assert_eq!(fetched(&mut harness, "g", "a"), -1);
}

/// A topic made again must not be read from the old one's offsets while tombstones are on their
/// way, nor when they, or what was on its way before them, fail.
#[test]
fn what_is_forgotten_is_told_to_nobody_whatever_becomes_of_the_writes() {
    for is_committed in [true, false] {
        let mut harness = Harness::new();
        commit_code(&mut harness, commit_for(&made("a", 1), 7));
        harness.holds = true;
        harness.ask(Operation::CommitOffsets(commit_for(&made("a", 1), 8)));
        harness.ask(Operation::ForgetTopics(vec![made("a", 1)]));
        assert_eq!(fetched(&mut harness, "g", "a"), -1);
        while !harness.held.is_empty() {
            match is_committed {
                true => harness.commit(),
                false => harness.fail(ErrorCode::REQUEST_TIMED_OUT),
            }
            assert_eq!(fetched(&mut harness, "g", "a"), -1);
        }
        assert_eq!(harness.coordinator.offsets.len(), 0);
    }
}
