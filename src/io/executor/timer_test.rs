//! The wheel against a plain sorted map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::io::executor::task::TaskKey;

fn waker(number: u32) -> LocalWaker {
    LocalWaker::for_test(TaskKey {
        index: number,
        generation: 0,
    })
}

fn fired(wheel: &mut TimerWheel, now: u64) -> Vec<u32> {
    let mut wakers = Vec::new();
    wheel.fire(MonotonicNs(now), &mut wakers);
    wakers
        .iter()
        .map(|waker| waker.task_for_test().index)
        .collect()
}

const TICK: u64 = 1 << TICK_BITS;

#[test]
fn never_early_and_at_most_a_tick_late() {
    for start in [0, 1, TICK - 1, 123_456_789, u64::MAX / 4] {
        for delay in [
            0,
            1,
            TICK,
            64 * TICK,
            64 * TICK + 1,
            4_096 * TICK,
            1 << 40,
            1 << 58,
        ] {
            let mut wheel = TimerWheel::new(MonotonicNs(start));
            wheel.insert(MonotonicNs(start + delay), waker(7));
            if delay > 0 {
                assert!(
                    fired(&mut wheel, start + delay - 1).is_empty(),
                    "{start} {delay}"
                );
            }
            let at = wheel.next_deadline().expect("one timer");
            assert!(at.0 <= start + delay + TICK, "{start} {delay} {at:?}");
            assert_eq!(fired(&mut wheel, start + delay + TICK), vec![7]);
            assert_eq!(wheel.next_deadline(), None);
            assert_eq!(wheel.len(), 0);
        }
    }
}

#[test]
fn a_removed_timer_does_not_fire_and_its_key_is_dead() {
    let mut wheel = TimerWheel::new(MonotonicNs(0));
    let first = wheel.insert(MonotonicNs(5 * TICK), waker(1));
    wheel.insert(MonotonicNs(5 * TICK), waker(2));
    wheel.remove(first);
    wheel.remove(first);
    let third = wheel.insert(MonotonicNs(5 * TICK), waker(3));
    assert!(!wheel.set_waker(first, waker(9)));
    assert!(wheel.set_waker(third, waker(4)));
    assert_eq!(fired(&mut wheel, 7 * TICK), vec![2, 4]);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Remove(usize),
    Advance(u64),
    ToNext,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let span = prop_oneof![
        0..3 * TICK,
        0..200 * TICK,
        0..300_000 * TICK,
        0..(1u64 << 45)
    ];
    let step = prop_oneof![
        4 => span.clone().prop_map(Step::Insert),
        1 => (0..50usize).prop_map(Step::Remove),
        1 => span.prop_map(Step::Advance),
        2 => Just(Step::ToNext),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #[test]
    fn behaves_as_a_sorted_map(start in 0..(1u64 << 50), steps in steps()) {
        let mut now = start;
        let mut wheel = TimerWheel::new(MonotonicNs(now));
        let mut model: BTreeMap<u32, (u64, TimerKey)> = BTreeMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            let number = number as u32;
            match step {
                Step::Insert(delay) => {
                    let key = wheel.insert(MonotonicNs(now + delay), waker(number));
                    model.insert(number, (now + delay, key));
                }
                Step::Remove(place) => {
                    if let Some((&number, &(_, key))) = model.iter().nth(place) {
                        wheel.remove(key);
                        model.remove(&number);
                    }
                }
                Step::Advance(by) => now += by,
                Step::ToNext => {
                    if let Some(next) = wheel.next_deadline() {
                        let earliest = model.values().map(|(deadline, _)| *deadline).min();
                        prop_assert!(next.0 <= earliest.expect("as many as in the wheel") + TICK);
                        now = now.max(next.0);
                    }
                }
            }
            for number in fired(&mut wheel, now) {
                let (deadline, _) = model.remove(&number).expect("fires once");
                prop_assert!(deadline <= now, "early");
            }
            for (deadline, _) in model.values() {
                prop_assert!(*deadline + TICK > now, "late");
            }
            prop_assert_eq!(wheel.len(), model.len());
        }
    }
}
