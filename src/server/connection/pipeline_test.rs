//! The limits of what one connection may have under way.

use bytes::Bytes;

use super::pipeline::*;
use crate::base::ids::ApiKey;
use crate::base::time::MonotonicNs;
use crate::io::{self, Runtime, RuntimeOptions, TaskClass};
use crate::metrics::StageTimes;
use crate::shard::{Budget, SharedBudget};

const PRODUCE: ApiKey = ApiKey(0);
const FETCH: ApiKey = ApiKey(1);

fn request(budget: &SharedBudget, api_key: ApiKey, answer_bytes: usize) -> InFlight {
    let mut credit = budget.credit();
    assert!(credit.try_take(1_000));
    InFlight {
        api_key,
        received_at: MonotonicNs(0),
        times: StageTimes::default(),
        progress: Progress::Ready(Ok(Answer::from(vec![Bytes::from(vec![0; answer_bytes])]))),
        credit,
        owed_bytes: 0,
    }
}

fn budget() -> SharedBudget {
    SharedBudget::new(Budget::new(2_000_000, 1_000_000))
}

#[test]
fn produce_is_pipelined_up_to_its_limit() {
    let (pipeline, budget) = (Pipeline::default(), budget());
    for _ in 0..REQUESTS_IN_FLIGHT_MAX {
        assert!(pipeline.has_room(Some(PRODUCE)));
        pipeline.push(request(&budget, PRODUCE, 10));
    }
    assert!(!pipeline.has_room(Some(PRODUCE)), "one past the limit");
    pipeline.sent(&Sent {
        requests: 1,
        ..Sent::default()
    });
    assert!(pipeline.has_room(Some(PRODUCE)));
    assert!(pipeline.has_room(Some(FETCH)));
}

#[test]
fn other_requests_are_handled_one_by_one() {
    let (pipeline, budget) = (Pipeline::default(), budget());
    for _ in 0..HANDLED_IN_FLIGHT_MAX {
        assert!(pipeline.has_room(Some(FETCH)) && pipeline.has_room(None));
        pipeline.push(request(&budget, FETCH, 10));
    }
    assert!(!pipeline.has_room(Some(FETCH)), "one past the limit");
    assert!(!pipeline.has_room(None), "it may be another of them");
    assert!(pipeline.has_room(Some(PRODUCE)));
    pipeline.sent(&Sent {
        requests: 1,
        handled: 1,
        bytes: 0,
    });
    assert!(pipeline.has_room(Some(FETCH)));
}

#[test]
fn owed_bytes_have_a_limit() {
    let pipeline = Pipeline::default();
    pipeline.owes(OWED_BYTES_MAX - 1);
    assert!(pipeline.has_room(Some(PRODUCE)));
    pipeline.owes(1);
    assert!(!pipeline.has_room(Some(PRODUCE)));
    pipeline.sent(&Sent {
        bytes: 1,
        ..Sent::default()
    });
    assert!(pipeline.has_room(Some(PRODUCE)));
}

/// What is settled holds its answer's bytes alone, and once.
#[test]
fn settling_frees_what_requests_hold() {
    let mut runtime = Runtime::start(RuntimeOptions::for_tests()).expect("io_uring is allowed");
    runtime.block_on(async {
        let (pipeline, budget) = (Pipeline::default(), budget());
        let handler = io::spawn(TaskClass::Fetch, async {
            io::yield_now().await;
            Ok(Answer::from(vec![Bytes::from(vec![0; 40])]))
        });
        let mut handled = request(&budget, PRODUCE, 0);
        handled.progress = Progress::Handler(handler);
        pipeline.push(handled);
        pipeline.settle();
        assert_eq!(budget.common_bytes_used(), 1_000, "not made yet");
        io::yield_now().await;
        io::yield_now().await;
        pipeline.settle();
        pipeline.settle();
        assert_eq!(budget.common_bytes_used(), 40);
        assert_eq!(pipeline.owed_bytes(), 40);
        pipeline.close();
        assert_eq!(budget.common_bytes_used(), 0);
    });
}
