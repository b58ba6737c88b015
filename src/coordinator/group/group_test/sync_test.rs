//! Syncs, heartbeats, failing writes.

use super::*;

/// Two members that have joined and not synced; the leader first.
fn completing(harness: &mut Harness) -> Vec<JoinResponse> {
    let tickets = [harness.join(old_client()), harness.join(old_client())];
    harness.pass_ms(7_000);
    let mut joined: Vec<_> = tickets.into_iter().map(|one| harness.joined(one)).collect();
    joined.sort_by_key(|one| one.member_id != one.leader);
    joined
}

#[test]
fn an_assignment_counts_when_it_is_stored() {
    let mut harness = Harness::new();
    let joined = completing(&mut harness);
    let second = harness.sync(&joined[1], &[]);
    harness.holds = true;
    let given = (joined[1].member_id.clone(), "mine".to_owned());
    let first = harness.sync(&joined[0], &[(&given.0, &given.1), ("nobody", "x")]);
    assert!(harness.answers.is_empty());
    assert_eq!(harness.state(), GroupState::CompletingRebalance);
    harness.commit();
    assert_eq!(harness.synced(second).assignment, "mine");
    assert_eq!(harness.synced(first).assignment, "");
    assert_eq!(harness.state(), GroupState::Stable);
    let described = harness.described("g");
    assert_eq!(
        (described.members.len(), described.protocol.as_str()),
        (2, "range")
    );
    assert_eq!(
        described.members[0].metadata,
        consumer("range", "topic").metadata
    );
}

#[test]
fn an_assignment_that_is_not_stored_is_asked_for_again() {
    let mut harness = Harness::new();
    let joined = completing(&mut harness);
    harness.holds = true;
    let second = harness.sync(&joined[1], &[]);
    let first = harness.sync(&joined[0], &[]);
    harness.fail(ErrorCode::MESSAGE_TOO_LARGE);
    for ticket in [first, second] {
        assert_eq!(
            harness.synced(ticket).error_code,
            ErrorCode::UNKNOWN_SERVER_ERROR
        );
    }
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
}

#[test]
fn an_assignment_of_a_generation_that_is_over_does_not_count() {
    let mut harness = Harness::new();
    let joined = completing(&mut harness);
    harness.holds = true;
    let first = harness.sync(&joined[0], &[]);
    let third = harness.join(old_client());
    assert_eq!(
        harness.synced(first).error_code,
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    harness.commit();
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
    harness.join(known(&joined[0].member_id));
    harness.join(known(&joined[1].member_id));
    assert_eq!(harness.joined(third).generation_id.0, 2);
}

#[test]
fn syncs_and_heartbeats_of_others_are_refused_with_kafkas_codes() {
    let mut harness = Harness::new();
    let joined = harness.stable(2);
    let mut code = |change: &dyn Fn(&mut Sync)| {
        let mut sync = sync_of(&joined[1], &[]);
        change(&mut sync);
        let ticket = harness.ask(Operation::Sync(Box::new(sync)));
        harness.synced(ticket).error_code
    };
    assert!(code(&|_| ()).is_none(), "a stable group tells again");
    assert_eq!(
        code(&|one| one.group_id = "".into()),
        ErrorCode::INVALID_GROUP_ID
    );
    assert_eq!(
        code(&|one| one.group_id = "x".into()),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    assert_eq!(
        code(&|one| one.member_id = "x".into()),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    assert_eq!(
        code(&|one| one.generation_id = GenerationId(0)),
        ErrorCode::ILLEGAL_GENERATION
    );
    assert_eq!(
        code(&|one| one.protocol_name = Some("x".into())),
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL
    );
    assert!(code(&|one| one.protocol_type = None).is_none());
    assert_eq!(
        code(&|one| one.instance_id = Some("x".into())),
        ErrorCode::UNKNOWN_MEMBER_ID
    );
    let second = &joined[1].member_id;
    assert_eq!(harness.heartbeat(second, 0), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(harness.heartbeat("x", 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(harness.heartbeat(second, 1).is_none());
    harness.join(old_client());
    let ticket = harness.sync(&joined[1], &[]);
    assert_eq!(
        harness.synced(ticket).error_code,
        ErrorCode::REBALANCE_IN_PROGRESS
    );
}

#[test]
fn a_member_that_never_syncs_is_out_after_the_rebalance_timeout() {
    let mut harness = Harness::new();
    let joined = completing(&mut harness);
    // The leader never syncs, but its heart beats.
    let second = harness.sync(&joined[1], &[]);
    for _ in 0..12 {
        harness.pass_ms(5_000);
        harness.heartbeat(&joined[0].member_id, 1);
    }
    assert_eq!(
        harness.synced(second).error_code,
        ErrorCode::REBALANCE_IN_PROGRESS
    );
    let again = harness.join(known(&joined[1].member_id));
    let told = harness.joined(again);
    assert_eq!((told.generation_id.0, told.members.len()), (2, 1));
}

#[test]
fn also_in_a_stable_group() {
    let mut harness = Harness::new();
    let joined = completing(&mut harness);
    let first = harness.sync(&joined[0], &[]);
    assert!(harness.synced(first).error_code.is_none());
    assert_eq!(harness.state(), GroupState::Stable);
    for _ in 0..12 {
        harness.pass_ms(5_000);
        for one in &joined {
            harness.heartbeat(&one.member_id, 1);
        }
    }
    assert_eq!(harness.state(), GroupState::PreparingRebalance);
    let code = harness.heartbeat(&joined[1].member_id, 1);
    assert_eq!(code, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_group_is_known_again_after_a_restart_and_its_members_go_on() {
    let mut harness = Harness::new();
    let joined = harness.stable(3);
    harness.coordinator = harness.replayed(GroupConfig::default());
    let effects = harness.coordinator.loaded(harness.now());
    harness.take(effects);
    assert_eq!(harness.state(), GroupState::Stable);
    for (place, one) in joined.iter().enumerate() {
        assert!(harness.heartbeat(&one.member_id, 1).is_none());
        let ticket = harness.sync(one, &[]);
        assert_eq!(harness.synced(ticket).assignment, format!("part {place}"));
    }
    harness.pass_ms(70_000);
    assert_eq!(harness.state(), GroupState::Empty);
}
