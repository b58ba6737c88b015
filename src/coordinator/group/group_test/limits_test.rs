//! Limits, each at it and one past it.

use super::super::config::{NEW_MEMBER_JOIN_TIMEOUT, PENDING_MEMBERS_MAX};
use super::super::memory::{GROUP_BYTES, OFFSET_BYTES};
use super::*;

#[test]
fn a_group_takes_as_many_members_as_it_may_have() {
    let mut harness = Harness::with(GroupConfig {
        members_max: 2,
        ..GroupConfig::default()
    });
    harness.stable(2);
    let code = harness.join_code(old_client());
    assert_eq!(code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(harness.state(), GroupState::Stable);
    let mut starting = Harness::with(GroupConfig {
        members_max: 2,
        ..GroupConfig::default()
    });
    starting.join(old_client());
    starting.join(old_client());
    let code = starting.join_code(old_client());
    assert_eq!(code, ErrorCode::GROUP_MAX_SIZE_REACHED);
}

#[test]
fn a_group_that_is_loaded_above_its_size_rebalances() {
    let mut harness = Harness::new();
    let joined = harness.stable(3);
    harness.coordinator = harness.replayed(GroupConfig {
        members_max: 2,
        ..GroupConfig::default()
    });
    let effects = harness.coordinator.loaded(harness.now());
    harness.take(effects);
    let first = harness.join(known(&joined[0].member_id));
    harness.join(known(&joined[1].member_id));
    let code = harness.join_code(known(&joined[2].member_id));
    assert_eq!(code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    harness.pass_ms(60_000);
    assert_eq!(harness.joined(first).generation_id.0, 2);
}

#[test]
fn a_flood_of_joins_without_an_id_forgets_the_oldest() {
    let mut harness = Harness::new();
    let mut ids = Vec::new();
    for number in 0..=PENDING_MEMBERS_MAX as u64 {
        let mut fresh = [0; 16];
        fresh[..8].copy_from_slice(&number.to_be_bytes());
        let ticket = harness.join(Join {
            requires_known_member_id: true,
            fresh_id: Uuid(fresh),
            ..old_client()
        });
        ids.push(harness.joined(ticket).member_id);
    }
    let group = &harness.coordinator.groups["g"];
    assert_eq!(group.pending_len(), PENDING_MEMBERS_MAX);
    assert_eq!(
        harness.coordinator.core.timers.len(),
        PENDING_MEMBERS_MAX + 1
    );
    assert_eq!(
        harness.join_code(known(&ids[0])),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    let second = harness.join(known(&ids[1]));
    harness.pass_ms(10_000);
    assert_eq!(harness.joined(second).generation_id.0, 1);
}

#[test]
fn groups_take_as_much_memory_as_they_may() {
    let member = old_client().member_bytes();
    let group = GROUP_BYTES + 2 * "g".len();
    let mut harness = Harness::within(GroupConfig::default(), group + 2 * member);
    let first = harness.join(old_client());
    harness.join(old_client());
    let code = harness.join_code(old_client());
    assert_eq!(code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    let other = Join {
        group_id: "other".into(),
        ..old_client()
    };
    assert_eq!(
        harness.join_code(other),
        ErrorCode::COORDINATOR_NOT_AVAILABLE
    );
    let code = commit_code(&mut harness, commit_of("other", "topic", 1));
    assert_eq!(code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    // Who is in may join again.
    harness.pass_ms(7_000);
    let joined = harness.joined(first);
    let again = harness.join(known(&joined.member_id));
    assert!(harness.joined(again).error_code.is_none());
    harness.pass_ms(90_000);
    assert_eq!(harness.state(), GroupState::Empty);
    assert_eq!(harness.memory.used(), group + "consumer".len());
    harness.join(old_client());
    harness.pass(Duration::from_secs(1_300));
    assert_eq!(harness.state(), GroupState::Dead);
    assert_eq!(harness.memory.used(), 0);
}

#[test]
fn a_static_member_comes_back_where_there_is_no_room_for_another() {
    let one = static_client("one");
    let group = GROUP_BYTES + 2 * "g".len();
    let mut harness = Harness::within(GroupConfig::default(), group + one.member_bytes());
    let ticket = harness.join(one.clone());
    harness.pass_ms(7_000);
    let joined = harness.joined(ticket);
    let member_id = joined.member_id.clone();
    let ticket = harness.sync(&joined, &[(&member_id, "")]);
    assert!(harness.synced(ticket).error_code.is_none());
    assert_eq!(harness.memory.used(), group + one.member_bytes());
    for _ in 0..3 {
        let ticket = harness.join(static_client("one"));
        let again = harness.joined(ticket);
        assert!(again.error_code.is_none(), "{:?}", again.error_code);
        assert_ne!(again.member_id, member_id);
        assert_eq!(harness.memory.used(), group + one.member_bytes());
    }
    assert_eq!(
        harness.join_code(static_client("two")),
        ErrorCode::COORDINATOR_NOT_AVAILABLE
    );
}

/// Each of these is a name that a client chooses, of up to 32 KiB.
#[test]
fn long_names_count_as_what_they_are() {
    let long = "x".repeat(30_000);
    let protocols = |count: usize| (0..count).map(|one| consumer(&one.to_string(), "t"));
    let joins = [
        Join {
            group_id: long.as_str().into(),
            ..old_client()
        },
        Join {
            client_id: long.clone(),
            ..old_client()
        },
        Join {
            client_id: long.clone(),
            requires_known_member_id: true,
            ..old_client()
        },
        static_client(&long),
        Join {
            protocol_type: long.clone(),
            ..old_client()
        },
        Join {
            protocols: protocols(200).collect(),
            ..old_client()
        },
    ];
    for join in joins {
        let mut harness = Harness::within(GroupConfig::default(), 25_000);
        let code = harness.join_code(join.clone());
        assert_eq!(code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
        assert_eq!(harness.memory.used(), 0);
        let mut harness = Harness::within(GroupConfig::default(), 200_000);
        let group_id = join.group_id.clone();
        harness.join(join);
        assert!(harness.memory.used() > 25_000);
        let left = harness.memory.used();
        assert_eq!(left, harness.coordinator.groups[&group_id].bytes());
        harness.pass(Duration::from_secs(2_000));
        assert_eq!(harness.memory.used(), 0);
    }
    let mut harness = Harness::within(GroupConfig::default(), 25_000);
    let code = commit_code(&mut harness, commit_of(&long, "topic", 1));
    assert_eq!(code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    assert_eq!(harness.memory.used(), 0);
}

/// It could neither be told nor stored.
#[test]
fn a_member_id_that_would_be_too_long_is_none() {
    let mut harness = Harness::new();
    let longest = i16::MAX as usize - 37;
    let of = |bytes: usize| Join {
        client_id: "c".repeat(bytes),
        ..old_client()
    };
    assert_eq!(
        harness.join_code(of(longest + 1)),
        ErrorCode::UNKNOWN_SERVER_ERROR
    );
    let ticket = harness.join(of(longest));
    harness.pass_ms(7_000);
    assert_eq!(harness.joined(ticket).member_id.len(), i16::MAX as usize);
}

#[test]
fn nothing_stays_of_who_was_given_an_id_when_the_group_is_deleted() {
    let mut harness = Harness::new();
    for _ in 0..3 {
        for _ in 0..10 {
            harness.join(Join {
                requires_known_member_id: true,
                ..old_client()
            });
        }
        assert_eq!(harness.coordinator.core.timers.len(), 11);
        harness.answer(Operation::DeleteGroups(vec!["g".into()]));
        assert_eq!(harness.coordinator.core.timers.len(), 1);
        assert_eq!(harness.memory.used(), 0);
    }
}

#[test]
fn ids_that_were_given_back_are_not_kept() {
    let mut harness = Harness::new();
    harness.join(Join {
        requires_known_member_id: true,
        ..old_client()
    });
    for _ in 0..100 {
        let ticket = harness.join(Join {
            requires_known_member_id: true,
            ..old_client()
        });
        let member_id = harness.joined(ticket).member_id;
        harness.leave(&[(&member_id, None)]);
    }
    let group = &harness.coordinator.groups["g"];
    assert_eq!(group.pending_len(), 1);
    assert!(group.pending_order.len() <= 3, "{:?}", group.pending_order);
}

#[test]
fn assignments_take_as_much_memory_as_they_may() {
    let group = GROUP_BYTES + 2 * "g".len() + "consumer".len();
    let room = group + old_client().member_bytes() + 1_000;
    let mut harness = Harness::within(GroupConfig::default(), room);
    let ticket = harness.join(old_client());
    harness.pass_ms(7_000);
    let mut joined = harness.joined(ticket);
    let assignment = |bytes: usize| "a".repeat(bytes);
    for (bytes, code) in [
        (3_000, ErrorCode::COORDINATOR_NOT_AVAILABLE),
        (900, ErrorCode::NONE),
        (3_000, ErrorCode::COORDINATOR_NOT_AVAILABLE),
        (900, ErrorCode::NONE),
        (0, ErrorCode::NONE),
    ] {
        let member_id = joined.member_id.clone();
        let ticket = harness.sync(&joined, &[(&member_id, &assignment(bytes))]);
        let told = harness.synced(ticket);
        assert_eq!(told.error_code, code);
        assert!(harness.memory.used() <= room);
        if code.is_none() {
            assert_eq!(told.assignment.len(), bytes);
            // The leader's join begins the next generation.
            let ticket = harness.join(known(&member_id));
            joined = harness.joined(ticket);
        }
    }
}

#[test]
fn offsets_take_as_much_memory_as_they_may() {
    let one = OFFSET_BYTES + "m".len();
    let group = GROUP_BYTES + 2 * "g".len();
    let mut harness = Harness::within(GroupConfig::default(), group + 2 * one);
    for topic in ["a", "b"] {
        assert!(commit_code(&mut harness, commit_of("g", topic, 1)).is_none());
    }
    let code = commit_code(&mut harness, commit_of("g", "c", 1));
    assert_eq!(code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
    // What is there may move on.
    assert!(commit_code(&mut harness, commit_of("g", "a", 2)).is_none());
    assert_eq!(fetched(&mut harness, "g", "a"), 2);
    harness.answer(Operation::DeleteGroups(vec!["g".into()]));
    assert_eq!(harness.memory.used(), 0);
}

#[test]
fn an_answer_tells_as_many_offsets_as_it_may() {
    let mut harness = Harness::new();
    for topic in ["a", "b"] {
        commit_code(&mut harness, commit_of("g", topic, 1));
    }
    let topic = size_of::<FetchedTopic>() + "a".len();
    let one = topic + size_of::<FetchedOffset>() + "m".len();
    for (bytes_max, code) in [
        (2 * one, ErrorCode::NONE),
        (2 * one - 1, ErrorCode::INVALID_REQUEST),
    ] {
        let all = FetchOffsets {
            topics: None,
            bytes_max,
            ..fetch_of("g", "")
        };
        let some = FetchOffsets {
            topics: Some(
                ["a", "b"]
                    .map(|name| fetch_of("g", name).topics.unwrap().remove(0))
                    .to_vec(),
            ),
            ..all.clone()
        };
        for fetch in [all, some] {
            let Response::FetchOffsets(told) = harness.answer(Operation::FetchOffsets(fetch))
            else {
                panic!("another answer");
            };
            assert_eq!(told.error_code, code);
            assert_eq!(told.topics.is_empty(), !code.is_none());
        }
    }
}

#[test]
fn a_new_member_whose_client_is_gone_does_not_stay_for_ever() {
    let mut harness = Harness::new();
    let joined = harness.stable(1);
    let gone = harness.join(Join {
        rebalance_timeout_ms: 3_600_000,
        ..old_client()
    });
    let mut passed = Duration::ZERO;
    while passed < NEW_MEMBER_JOIN_TIMEOUT {
        assert!(harness.answers.is_empty());
        harness.heartbeat(&joined[0].member_id, 1);
        harness.pass_ms(5_000);
        passed += Duration::from_secs(5);
    }
    assert_eq!(
        harness.joined(gone).error_code,
        ErrorCode::UNKNOWN_MEMBER_ID
    );
}

#[test]
fn metadata_of_a_commit_may_have_as_many_characters_as_java_counts() {
    let mut harness = Harness::new();
    let mut code = |metadata: String| {
        let mut commit = commit_of("g", "topic", 1);
        commit.topics[0].partitions[0].metadata = Some(metadata);
        commit_code(&mut harness, commit)
    };
    assert!(code("ü".repeat(4_096)).is_none());
    assert!(code("😀".repeat(2_048)).is_none());
    assert_eq!(
        code("ü".repeat(4_097)),
        ErrorCode::OFFSET_METADATA_TOO_LARGE
    );
    assert_eq!(
        code("😀".repeat(2_048) + "x"),
        ErrorCode::OFFSET_METADATA_TOO_LARGE
    );
}
