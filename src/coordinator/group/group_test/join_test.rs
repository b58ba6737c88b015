//! Joins, generations, timeouts.

use super::*;

#[test]
fn the_first_rebalance_waits_for_more_members_up_to_the_rebalance_timeout() {
    let mut harness = Harness::new();
    let first = harness.join(Join {
        rebalance_timeout_ms: 7_000,
        ..old_client()
    });
    let mut later = Vec::new();
    for _ in 0..2 {
        harness.pass_ms(2_000);
        later.push(harness.join(Join {
            rebalance_timeout_ms: 7_000,
            ..old_client()
        }));
    }
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
    harness.pass_ms(2_999);
    assert!(
        harness.answers.is_empty(),
        "3 s, prolonged by 3 s and by 1 s"
    );
    harness.pass_ms(1);
    let first = harness.joined(first);
    assert_eq!((first.generation_id.0, first.error_code.0), (1, 0));
    assert_eq!(first.protocol_name.as_deref(), Some("range"));
    let mut told: Vec<_> = later.into_iter().map(|one| harness.joined(one)).collect();
    told.push(first);
    let leader = told.iter().filter(|one| one.leader == one.member_id);
    assert_eq!(leader.map(|one| one.members.len()).collect::<Vec<_>>(), [3]);
    assert_eq!(harness.state(), GroupState::CompletingRebalance);
}

#[test]
fn without_a_delay_the_first_member_needs_not_wait() {
    let mut harness = Harness::with(GroupConfig {
        initial_rebalance_delay: Duration::ZERO,
        ..GroupConfig::default()
    });
    let ticket = harness.join(old_client());
    harness.pass_ms(0);
    assert_eq!(harness.joined(ticket).generation_id.0, 1);
}

#[test]
fn who_has_no_id_is_given_one_and_comes_back() {
    let mut harness = Harness::new();
    let new_client = Join {
        requires_known_member_id: true,
        ..old_client()
    };
    let ticket = harness.join(new_client.clone());
    let told = harness.joined(ticket);
    assert_eq!(told.error_code, ErrorCode::MEMBER_ID_REQUIRED);
    assert!(told.member_id.starts_with("client-"), "{}", told.member_id);
    assert_eq!(told.member_id.len(), "client-".len() + 36);
    assert_eq!(harness.state(), GroupState::Empty);
    assert!(
        matches!(&harness.log[..], [Record::Group { value: Some(value), .. }]
        if value.members.is_empty() && value.protocol_type.is_empty())
    );
    let again = harness.join(Join {
        member_id: told.member_id.as_str().into(),
        ..new_client
    });
    harness.pass_ms(3_000);
    assert_eq!(harness.joined(again).member_id, told.member_id);
}

#[test]
fn an_id_that_nobody_comes_back_with_ends_with_the_session_timeout() {
    let mut harness = Harness::new();
    let joined = harness.stable(1);
    let ticket = harness.join(Join {
        requires_known_member_id: true,
        ..old_client()
    });
    let pending = harness.joined(ticket).member_id;
    // A rebalance waits for whoever was given an id.
    let again = harness.join(known(&joined[0].member_id));
    assert!(harness.answers.is_empty());
    harness.pass_ms(10_000);
    assert_eq!(harness.joined(again).generation_id.0, 2);
    assert_eq!(
        harness.join_code(known(&pending)),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
}

#[test]
fn what_cannot_join_is_refused_with_kafkas_codes() {
    let mut harness = Harness::new();
    let nameless = Join {
        group_id: "".into(),
        ..old_client()
    };
    assert_eq!(harness.join_code(nameless), ErrorCode::INVALID_GROUP_ID);
    for (session_timeout_ms, is_refused) in [
        (5_999, true),
        (6_000, false),
        (1_800_000, false),
        (1_800_001, true),
        (-1, true),
    ] {
        let ticket = harness.join(Join {
            group_id: "s".into(),
            session_timeout_ms,
            ..old_client()
        });
        assert_eq!(harness.answers.contains_key(&ticket), is_refused);
        if is_refused {
            let told = harness.joined(ticket).error_code;
            assert_eq!(told, ErrorCode::INVALID_SESSION_TIMEOUT);
        }
    }
    assert_eq!(harness.join_code(known("x")), ErrorCode::UNKNOWN_MEMBER_ID);
    let without = Join {
        protocols: Vec::new(),
        ..old_client()
    };
    let code = harness.join_code(without);
    assert_eq!(code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    harness.stable(1);
    assert_eq!(harness.join_code(known("x")), ErrorCode::UNKNOWN_MEMBER_ID);
    for (protocol_type, protocol) in [("connect", "range"), ("consumer", "other")] {
        let other = Join {
            protocol_type: protocol_type.into(),
            protocols: vec![consumer(protocol, "topic")],
            ..old_client()
        };
        let code = harness.join_code(other);
        assert_eq!(code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    }
}

#[test]
fn the_protocol_that_most_want_of_those_that_all_support_is_chosen() {
    let mut harness = Harness::new();
    let with = |names: &[&str]| Join {
        protocols: names.iter().map(|name| consumer(name, "topic")).collect(),
        ..old_client()
    };
    let tickets = [
        harness.join(with(&["sticky", "range", "robin"])),
        harness.join(with(&["robin", "range"])),
        harness.join(with(&["robin", "robin", "range"])),
    ];
    harness.pass_ms(60_000);
    for ticket in tickets {
        let joined = harness.joined(ticket);
        assert_eq!(joined.protocol_name.as_deref(), Some("robin"));
    }
}

#[test]
fn a_new_member_has_the_others_join_again() {
    let mut harness = Harness::new();
    let joined = harness.stable(2);
    let third = harness.join(old_client());
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
    let code = harness.heartbeat(&joined[1].member_id, 1);
    assert_eq!(code, ErrorCode::REBALANCE_IN_PROGRESS);
    let first = harness.join(known(&joined[0].member_id));
    let second = harness.join(known(&joined[1].member_id));
    let told = [third, first, second].map(|ticket| harness.joined(ticket));
    assert!(told.iter().all(|one| one.generation_id.0 == 2));
    assert_eq!(told[1].members.len(), 3, "the leader stays the leader");
}

#[test]
fn who_does_not_join_again_in_time_is_out() {
    let mut harness = Harness::new();
    let joined = harness.stable(2);
    let third = harness.join(old_client());
    let second = harness.join(known(&joined[1].member_id));
    for _ in 0..7 {
        // Heartbeats keep the session, not the place in the next generation.
        harness.pass_ms(8_000);
        let code = harness.heartbeat(&joined[0].member_id, 1);
        assert_eq!(code, ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert!(harness.answers.is_empty());
    harness.pass_ms(4_000);
    let told = [third, second].map(|ticket| harness.joined(ticket));
    let leaders = told.iter().filter(|one| one.leader == one.member_id);
    assert_eq!(
        leaders.map(|one| one.members.len()).collect::<Vec<_>>(),
        [2]
    );
    let code = harness.heartbeat(&joined[0].member_id, 2);
    assert_eq!(code, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn without_heartbeats_a_session_ends_and_a_group_becomes_empty() {
    let mut harness = Harness::new();
    let joined = harness.stable(2);
    harness.pass_ms(8_000);
    assert!(harness.heartbeat(&joined[0].member_id, 1).is_none());
    harness.pass_ms(2_000);
    let code = harness.heartbeat(&joined[0].member_id, 1);
    assert_eq!(code, ErrorCode::REBALANCE_IN_PROGRESS);
    harness.pass_ms(60_000);
    assert_eq!(harness.state(), GroupState::Empty);
    let Some(Record::Group {
        value: Some(value), ..
    }) = harness.log.last()
    else {
        panic!("{:?}", harness.log.last());
    };
    assert_eq!((value.generation_id.0, value.members.len()), (2, 0));
    assert_eq!(
        (value.protocol_type.as_str(), &value.protocol),
        ("consumer", &None)
    );
}

#[test]
fn a_member_that_asks_again_is_told_again_unless_something_changed() {
    let mut harness = Harness::new();
    let joined = harness.stable(2);
    let again = harness.join(known(&joined[1].member_id));
    let told = harness.joined(again);
    assert_eq!((told.generation_id.0, told.members.len()), (1, 0));
    assert_eq!(harness.state(), GroupState::Stable);
    harness.join(Join {
        protocols: vec![consumer("range", "another")],
        ..known(&joined[1].member_id)
    });
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_leader_that_joins_again_starts_a_rebalance() {
    let mut harness = Harness::new();
    let joined = harness.stable(2);
    harness.join(known(&joined[0].member_id));
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_second_join_of_a_member_ends_the_first() {
    let mut harness = Harness::new();
    let joined = harness.stable(2);
    let first = harness.join(known(&joined[0].member_id));
    let second = harness.join(known(&joined[0].member_id));
    assert_eq!(
        harness.joined(first).error_code,
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    harness.join(known(&joined[1].member_id));
    assert_eq!(harness.joined(second).generation_id.0, 2);
}

#[test]
fn who_leaves_makes_room_and_the_last_one_leaves_an_empty_group() {
    let mut harness = Harness::new();
    let joined = harness.stable(2);
    let left = harness.leave(&[("nobody", None), (&joined[0].member_id, None)]);
    let codes: Vec<_> = left.members.iter().map(|one| one.error_code.0).collect();
    assert_eq!((left.error_code.0, codes), (0, vec![25, 0]));
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
    harness.holds = true;
    let leave = Operation::Leave(Leave {
        group_id: "g".into(),
        members: vec![LeavingMember {
            member_id: joined[1].member_id.as_str().into(),
            instance_id: None,
        }],
    });
    let ticket = harness.ask(leave);
    assert_eq!(harness.state(), GroupState::Empty);
    assert!(
        !harness.answers.contains_key(&ticket),
        "not before it is stored"
    );
    harness.commit();
    assert!(harness.answers.contains_key(&ticket));
    harness.holds = false;
    let unknown = Operation::Leave(Leave {
        group_id: "other".into(),
        members: vec![LeavingMember {
            member_id: "a".into(),
            instance_id: None,
        }],
    });
    let Response::Leave(left) = harness.answer(unknown) else {
        panic!("another answer");
    };
    assert_eq!(left.members[0].error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_waiting_join_of_a_member_that_leaves_is_answered() {
    let mut harness = Harness::new();
    let joined = harness.stable(2);
    let waiting = harness.join(known(&joined[0].member_id));
    harness.leave(&[(&joined[0].member_id, None)]);
    assert_eq!(
        harness.joined(waiting).error_code,
        ErrorCode::UNKNOWN_MEMBER_ID
    );
}
