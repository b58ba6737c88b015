//! Sessions against the rules of KIP-227 and of Kafka's FetchSession.

use super::*;
use crate::base::ids::{LeaderEpoch, Offset};
use crate::base::random::Random;
use crate::base::time::MonotonicNs;
use std::time::Duration;

fn target(topic: &str, partition: i32, offset: i64) -> FetchTarget {
    FetchTarget {
        topic: TopicKey::Name(topic.into()),
        partition: PartitionIndex(partition),
        fetch_offset: Offset(offset),
        current_leader_epoch: LeaderEpoch::NONE,
        last_fetched_epoch: LeaderEpoch::NONE,
        max_bytes: 1_000,
    }
}

fn summary(high_watermark: i64, bytes: usize) -> PartitionSummary {
    PartitionSummary {
        error: ErrorCode::NONE,
        high_watermark: Offset(high_watermark),
        log_start_offset: Offset(0),
        bytes,
        diverging: false,
    }
}

fn request(session_id: i32, session_epoch: i32, targets: Vec<FetchTarget>) -> SessionRequest {
    SessionRequest {
        session_id,
        session_epoch,
        uses_topic_ids: false,
        targets,
        forgotten: Vec::new(),
    }
}

const START: MonotonicNs = MonotonicNs(1_000);

fn opened(sessions: &mut FetchSessions, partitions: i32) -> i32 {
    let targets = (0..partitions)
        .map(|number| target("t", number, 0))
        .collect();
    let plan = sessions.begin(request(0, 0, targets), START).unwrap();
    let summaries = vec![summary(0, 0); partitions as usize];
    let verdict = sessions.finish(&plan, &summaries, START);
    assert_eq!(
        verdict.included,
        vec![true; partitions as usize],
        "the first answer is full"
    );
    verdict.session_id
}

#[test]
fn an_incremental_answer_holds_only_what_changed() {
    let mut sessions = FetchSessions::new(10, 1);
    let id = opened(&mut sessions, 3);
    assert_ne!(id, NO_SESSION);
    let plan = sessions.begin(request(id, 1, Vec::new()), START).unwrap();
    assert_eq!(plan.targets.len(), 3);
    let quiet = [summary(0, 0), summary(4, 0), summary(0, 0)];
    let verdict = sessions.finish(&plan, &quiet, START);
    assert_eq!(verdict.included, [false, true, false]);
    assert_eq!(verdict.session_id, id);
    let plan = sessions.begin(request(id, 2, Vec::new()), START).unwrap();
    let verdict = sessions.finish(&plan, &quiet, START);
    assert_eq!(verdict.included, [false, false, false], "told once");
}

#[test]
fn a_partition_that_returned_records_moves_to_the_end() {
    let mut sessions = FetchSessions::new(10, 1);
    let id = opened(&mut sessions, 3);
    let plan = sessions.begin(request(id, 1, Vec::new()), START).unwrap();
    sessions.finish(
        &plan,
        &[summary(5, 50), summary(0, 0), summary(0, 0)],
        START,
    );
    let plan = sessions
        .begin(request(id, 2, vec![target("t", 0, 5)]), START)
        .unwrap();
    let order: Vec<_> = plan
        .targets
        .iter()
        .map(|target| target.partition.0)
        .collect();
    assert_eq!(order, [1, 2, 0]);
    assert_eq!(plan.targets[2].fetch_offset, Offset(5), "changed in place");
}

#[test]
fn an_error_is_always_told_and_so_is_its_end() {
    let mut sessions = FetchSessions::new(10, 1);
    let id = opened(&mut sessions, 1);
    let mut failed = summary(0, 0);
    failed.error = ErrorCode::NOT_LEADER_OR_FOLLOWER;
    for (epoch, outcome, told) in [
        (1, failed, true),
        (2, failed, true),
        (3, summary(0, 0), true),
        (4, summary(0, 0), false),
    ] {
        let plan = sessions
            .begin(request(id, epoch, Vec::new()), START)
            .unwrap();
        let verdict = sessions.finish(&plan, &[outcome], START);
        assert_eq!(verdict.included, [told], "epoch {epoch}");
    }
}

#[test]
fn faults_have_kafkas_codes() {
    let mut sessions = FetchSessions::new(10, 1);
    let id = opened(&mut sessions, 1);
    let code = |outcome: Result<FetchPlan, ErrorCode>| outcome.unwrap_err();
    let unknown = sessions.begin(request(id.wrapping_add(1), 1, Vec::new()), START);
    assert_eq!(code(unknown), ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    let late = sessions.begin(request(id, 2, Vec::new()), START);
    assert_eq!(code(late), ErrorCode::INVALID_FETCH_SESSION_EPOCH);
    let mut by_id = request(id, 1, Vec::new());
    by_id.uses_topic_ids = true;
    let mixed = sessions.begin(by_id, START);
    assert_eq!(code(mixed), ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
    assert!(
        sessions.begin(request(id, 1, Vec::new()), START).is_ok(),
        "none of it did harm"
    );
}

#[test]
fn an_overtaken_answer_is_refused() {
    let mut sessions = FetchSessions::new(10, 1);
    let id = opened(&mut sessions, 1);
    let first = sessions.begin(request(id, 1, Vec::new()), START).unwrap();
    let second = sessions.begin(request(id, 2, Vec::new()), START).unwrap();
    let verdict = sessions.finish(&first, &[summary(1, 0)], START);
    assert_eq!(verdict.error, ErrorCode::INVALID_FETCH_SESSION_EPOCH);
    assert!(
        sessions
            .finish(&second, &[summary(1, 0)], START)
            .error
            .is_none()
    );
}

#[test]
fn forgetting_everything_ends_the_session() {
    let mut sessions = FetchSessions::new(10, 1);
    let id = opened(&mut sessions, 1);
    let mut last = request(id, 1, Vec::new());
    last.forgotten = vec![(TopicKey::Name("t".into()), PartitionIndex(0))];
    let plan = sessions.begin(last, START).unwrap();
    assert!(plan.targets.is_empty());
    assert_eq!(sessions.finish(&plan, &[], START).session_id, NO_SESSION);
    assert!(sessions.is_empty());
}

#[test]
fn a_full_request_ends_the_session_that_it_names() {
    let mut sessions = FetchSessions::new(10, 1);
    let id = opened(&mut sessions, 1);
    let plan = sessions
        .begin(request(id, FINAL_EPOCH, vec![target("t", 0, 0)]), START)
        .unwrap();
    assert_eq!(
        sessions.finish(&plan, &[summary(0, 0)], START).session_id,
        NO_SESSION
    );
    assert!(sessions.is_empty());
}

#[test]
fn at_the_limit_only_a_stale_or_a_smaller_old_session_gives_way() {
    let mut sessions = FetchSessions::new(2, 1);
    let (first, second) = (opened(&mut sessions, 2), opened(&mut sessions, 3));
    assert_eq!(opened(&mut sessions, 9), NO_SESSION, "one past the limit");
    let later = START.after(SESSION_EVICTION_MIN + Duration::from_secs(1));
    // Both are used, so that neither is stale, but both are old.
    for id in [first, second] {
        sessions.begin(request(id, 1, Vec::new()), later).unwrap();
    }
    let big = |sessions: &mut FetchSessions, partitions: i32| {
        let targets = (0..partitions)
            .map(|number| target("b", number, 0))
            .collect();
        let plan = sessions.begin(request(0, 0, targets), later).unwrap();
        let summaries = vec![summary(0, 0); partitions as usize];
        sessions.finish(&plan, &summaries, later).session_id
    };
    assert_eq!(
        big(&mut sessions, 2),
        NO_SESSION,
        "not larger than the smallest"
    );
    assert_ne!(big(&mut sessions, 3), NO_SESSION);
    let gone = sessions
        .begin(request(first, 2, Vec::new()), later)
        .unwrap_err();
    assert_eq!(gone, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    let stale = later.after(SESSION_EVICTION_MIN + Duration::from_secs(1));
    let plan = sessions
        .begin(request(0, 0, vec![target("s", 0, 0)]), stale)
        .unwrap();
    assert_ne!(
        sessions.finish(&plan, &[summary(0, 0)], stale).session_id,
        NO_SESSION
    );
    assert_eq!(sessions.len(), 2);
}

#[test]
fn too_many_partitions_get_no_session() {
    let mut sessions = FetchSessions::new(10, 1);
    let half = i32::try_from(SESSION_PARTITIONS_MAX / 2).unwrap();
    assert_ne!(opened(&mut sessions, half), NO_SESSION);
    assert_ne!(opened(&mut sessions, half), NO_SESSION, "the limit itself");
    assert_eq!(opened(&mut sessions, 1), NO_SESSION, "one past it");
}

#[test]
fn sessions_take_no_more_memory_than_they_are_given() {
    let mut sessions = FetchSessions::new(10, 1).within(20 * SESSION_PARTITION_BYTES);
    assert_ne!(opened(&mut sessions, 20), NO_SESSION, "the limit itself");
    assert_eq!(opened(&mut sessions, 1), NO_SESSION, "one past it");
}

#[test]
fn epochs_wrap_past_zero() {
    assert_eq!(next_epoch(0), 1);
    assert_eq!(next_epoch(i32::MAX), 1);
    assert_eq!(next_epoch(-1), FINAL_EPOCH);
}

/// Random additions, removals and answers against an ordered list.
#[test]
fn the_order_is_that_of_a_list_whose_answered_items_go_last() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let mut sessions = FetchSessions::new(4, seed);
        let id = opened(&mut sessions, 1);
        let mut model = vec![0];
        for epoch in 1..100 {
            let mut step = request(id, epoch, Vec::new());
            let number = random.below(12) as i32;
            if random.chance(2, 3) || model.len() < 2 {
                step.targets.push(target("t", number, i64::from(epoch)));
                if !model.contains(&number) {
                    model.push(number);
                }
            } else {
                step.forgotten
                    .push((TopicKey::Name("t".into()), PartitionIndex(number)));
                model.retain(|known| *known != number);
            }
            let plan = sessions.begin(step, START).unwrap();
            let order: Vec<_> = plan
                .targets
                .iter()
                .map(|target| target.partition.0)
                .collect();
            assert_eq!(order, model, "seed {seed} epoch {epoch}");
            let answers: Vec<_> = model
                .iter()
                .map(|_| summary(0, random.below(2) as usize))
                .collect();
            sessions.finish(&plan, &answers, START);
            let pairs: Vec<_> = model.iter().copied().zip(&answers).collect();
            let (moved, kept): (Vec<_>, Vec<_>) =
                pairs.into_iter().partition(|pair| pair.1.bytes > 0);
            model = kept.into_iter().chain(moved).map(|pair| pair.0).collect();
        }
    }
}
