//! Static members (KIP-345, KIP-814).

use super::*;

/// A stable group of the static members "a" and "b"; the leader first.
fn stable(harness: &mut Harness) -> Vec<JoinResponse> {
    let tickets = ["a", "b"].map(|name| harness.join(static_client(name)));
    harness.pass_ms(7_000);
    let mut joined: Vec<_> = tickets.into_iter().map(|one| harness.joined(one)).collect();
    joined.sort_by_key(|one| one.member_id != one.leader);
    let given = joined
        .iter()
        .map(|one| (one.member_id.clone(), one.member_id.clone()));
    let given: Vec<_> = given.collect();
    let given: Vec<_> = given
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    for one in &joined {
        let ticket = harness.sync(one, &given);
        assert_eq!(harness.synced(ticket).assignment, one.member_id);
    }
    joined
}

fn name_of(joined: &JoinResponse) -> &str {
    &joined.member_id[..1]
}

#[test]
fn a_restart_keeps_the_assignment_without_a_rebalance() {
    for place in [0, 1] {
        let mut harness = Harness::new();
        let joined = stable(&mut harness);
        let name = name_of(&joined[place]).to_owned();
        harness.holds = true;
        let ticket = harness.join(static_client(&name));
        assert!(
            harness.answers.is_empty(),
            "not before the new id is stored"
        );
        harness.commit();
        harness.holds = false;
        let told = harness.joined(ticket);
        assert_eq!((told.generation_id.0, told.error_code.0), (1, 0));
        assert_ne!(told.member_id, joined[place].member_id);
        assert_eq!(told.skip_assignment, place == 0);
        assert_eq!(told.members.len(), if place == 0 { 2 } else { 0 });
        assert_eq!(harness.state(), GroupState::Stable);
        let ticket = harness.sync(&told, &[]);
        assert_eq!(harness.synced(ticket).assignment, joined[place].member_id);
        // Both ids belong to the same name: the old one is fenced.
        let old = Heartbeat {
            group_id: "g".into(),
            generation_id: GenerationId(1),
            member_id: joined[place].member_id.as_str().into(),
            instance_id: Some(name.as_str().into()),
        };
        let answer = harness.answer(Operation::Heartbeat(old));
        assert_eq!(answer, Response::Heartbeat(ErrorCode::FENCED_INSTANCE_ID));
        let replayed = harness.replayed(GroupConfig::default());
        let stored = &replayed.groups["g"].members;
        assert!(stored.contains_key(told.member_id.as_str()));
    }
}

#[test]
fn an_old_leader_is_told_that_another_leads() {
    let mut harness = Harness::new();
    let joined = stable(&mut harness);
    let ticket = harness.join(Join {
        supports_skipping_assignment: false,
        ..static_client(name_of(&joined[0]))
    });
    let told = harness.joined(ticket);
    assert_eq!(
        (told.leader, told.members.len()),
        (joined[0].member_id.clone(), 0)
    );
}

#[test]
fn a_restart_that_cannot_be_stored_changes_nothing() {
    let mut harness = Harness::new();
    let joined = stable(&mut harness);
    harness.holds = true;
    let ticket = harness.join(static_client(name_of(&joined[1])));
    harness.fail(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(
        harness.joined(ticket).error_code,
        ErrorCode::NOT_COORDINATOR
    );
    assert!(harness.heartbeat(&joined[1].member_id, 1).is_none());
    assert_eq!(harness.state(), GroupState::Stable);
}

#[test]
fn a_restart_with_another_protocol_rebalances() {
    let mut harness = Harness::new();
    let ticket = harness.join(Join {
        protocols: vec![consumer("range", "t"), consumer("robin", "t")],
        ..static_client("a")
    });
    harness.pass_ms(3_000);
    let joined = harness.joined(ticket);
    harness.sync(&joined, &[]);
    let ticket = harness.join(Join {
        protocols: vec![consumer("robin", "t"), consumer("range", "t")],
        ..static_client("a")
    });
    let told = harness.joined(ticket);
    assert_eq!(
        (told.generation_id.0, told.protocol_name.as_deref()),
        (2, Some("robin"))
    );
}

#[test]
fn a_restart_while_joins_are_awaited_fences_the_waiting_one() {
    let mut harness = Harness::new();
    let joined = stable(&mut harness);
    let first = Join {
        instance_id: Some(name_of(&joined[0]).into()),
        ..known(&joined[0].member_id)
    };
    let waiting = harness.join(first);
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
    let again = harness.join(static_client(name_of(&joined[0])));
    let fenced = harness.joined(waiting);
    assert_eq!(fenced.error_code, ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(
        (fenced.protocol_name, fenced.member_id),
        (None, joined[0].member_id.clone())
    );
    harness.join(Join {
        instance_id: Some(name_of(&joined[1]).into()),
        ..known(&joined[1].member_id)
    });
    assert_eq!(harness.joined(again).generation_id.0, 2);
}

#[test]
fn a_static_member_that_does_not_join_keeps_its_place_until_its_session_ends() {
    let mut harness = Harness::new();
    let joined = stable(&mut harness);
    let third = harness.join(Join {
        rebalance_timeout_ms: 5_000,
        ..old_client()
    });
    let first = harness.join(Join {
        instance_id: Some(name_of(&joined[0]).into()),
        rebalance_timeout_ms: 5_000,
        ..known(&joined[0].member_id)
    });
    for _ in 0..7 {
        harness.pass_ms(8_000);
        let beat = Heartbeat {
            group_id: "g".into(),
            generation_id: GenerationId(1),
            member_id: joined[1].member_id.as_str().into(),
            instance_id: None,
        };
        harness.answer(Operation::Heartbeat(beat));
    }
    harness.pass_ms(4_000);
    assert_eq!(harness.joined(first).members.len(), 3);
    assert_eq!(harness.joined(third).generation_id.0, 2);
}

#[test]
fn static_members_are_removed_by_name_many_at_once() {
    let mut harness = Harness::new();
    let joined = stable(&mut harness);
    let left = harness.leave(&[
        ("", Some("a")),
        ("", Some("nobody")),
        ("x", Some("b")),
        (&joined[0].member_id, Some("nobody")),
        ("", None),
    ]);
    let codes: Vec<_> = left.members.iter().map(|one| one.error_code).collect();
    assert_eq!(
        codes,
        [
            ErrorCode::NONE,
            ErrorCode::UNKNOWN_MEMBER_ID,
            ErrorCode::FENCED_INSTANCE_ID,
            ErrorCode::UNKNOWN_MEMBER_ID,
            ErrorCode::UNKNOWN_MEMBER_ID,
        ]
    );
    assert_eq!(left.members[0].instance_id.as_deref(), Some("a"));
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
}

/// Its end would else come at once, time and again, and no other group had its turn.
#[test]
fn missing_members_without_a_rebalance_timeout_are_waited_for() {
    let mut harness = Harness::new();
    let joined = stable(&mut harness);
    let mut restarted = Vec::new();
    for one in &joined {
        let ticket = harness.join(Join {
            rebalance_timeout_ms: 0,
            ..static_client(name_of(one))
        });
        restarted.push(harness.joined(ticket));
    }
    harness.leave(&[("", Some(name_of(&joined[0])))]);
    harness.pass_ms(1_000);
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
    let ticket = harness.join(Join {
        member_id: restarted[1].member_id.as_str().into(),
        ..static_client(name_of(&joined[1]))
    });
    assert_eq!(harness.joined(ticket).generation_id.0, 2);
    harness.pass_ms(100_000);
    assert_eq!(harness.state(), GroupState::Empty);
}
