//! Which stages the slowest requests spent their time in: sums per stage, by the request's latency.
//!
//! Percentiles of stages do not add up to those of requests. Here every request counts as a whole,
//! so that the time of the slowest thousandth can be divided among its stages.

use super::stage::{STAGES, Stage, StageTimes};

/// Steps of latency: four to a doubling, up to 2^40 ns (18 minutes).
const STEPS: usize = 4 * 40;

/// The stage times of one API key's requests, by latency.
#[derive(Clone, Debug)]
pub struct Tail {
    steps: Vec<TailStep>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailStep {
    requests: u64,
    ns: [u64; STAGES],
}

impl TailStep {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        for (sum, ns) in self.ns.iter_mut().zip(&other.ns) {
            *sum = sum.saturating_add(*ns);
        }
    }
}

/// How the time of the requests at and above a latency divides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TailShares {
    /// How many such requests there were.
    pub requests: u64,
    /// Stages and their part of the time, 0 to 1, largest first; none that took no time.
    pub shares: Vec<(Stage, f64)>,
}

impl Default for Tail {
    fn default() -> Self {
        Self {
            steps: vec![TailStep::default(); STEPS],
        }
    }
}

/// The step of a latency.
fn step_of(ns: u64) -> usize {
    let ns = ns.max(4);
    let doubling = ns.ilog2();
    let quarter = (ns >> (doubling - 2)) & 3;
    (4 * doubling as usize + quarter as usize).min(STEPS - 1)
}

impl Tail {
    /// Counts one request.
    pub(super) fn record(&mut self, latency_ns: u64, times: &StageTimes) {
        if let Some(step) = self.steps.get_mut(step_of(latency_ns)) {
            step.requests += 1;
            for (sum, ns) in step.ns.iter_mut().zip(times.as_ns()) {
                *sum = sum.saturating_add(*ns);
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (sum, step) in self.steps.iter_mut().zip(&other.steps) {
            sum.add(step);
        }
    }

    /// The steps that are not empty, with their places.
    pub(super) fn steps(&self) -> Vec<(usize, TailStep)> {
        let all = self.steps.iter().copied().enumerate();
        all.filter(|(_, step)| step.requests > 0).collect()
    }

    pub(super) fn merge_steps(&mut self, steps: &[(usize, TailStep)]) {
        for (place, step) in steps {
            if let Some(sum) = self.steps.get_mut(*place) {
                sum.add(step);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.steps.fill(TailStep::default());
    }

    /// Where the requests of at least this latency spent their time, to the nearest step (19 %)
    /// below. What a client asked to wait for is left out.
    #[must_use]
    pub fn shares_from(&self, latency_ns: u64) -> TailShares {
        let mut sum = TailStep::default();
        for step in self.steps.iter().skip(step_of(latency_ns)) {
            sum.add(step);
        }
        let counted = |stage: &Stage| *stage != Stage::Park;
        let of = |stage: Stage| sum.ns.get(stage as usize).copied().unwrap_or(0);
        let stages = Stage::ALL.iter().copied().filter(counted);
        let whole: u64 = stages.clone().map(of).sum();
        let mut shares: Vec<(Stage, f64)> = stages
            .filter(|stage| of(*stage) > 0)
            .map(|stage| (stage, of(stage) as f64 / whole.max(1) as f64))
            .collect();
        shares.sort_by(|left, right| right.1.total_cmp(&left.1));
        TailShares {
            requests: sum.requests,
            shares,
        }
    }
}

impl TailShares {
    /// For people: the stages that took a twentieth or more, at least one.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (place, (stage, share)) in self.shares.iter().enumerate() {
            if place > 0 && *share < 0.05 {
                break;
            }
            let comma = if place > 0 { ", " } else { "" };
            text += &format!("{comma}{} {:.0} %", stage.name(), share * 100.0);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn steps_rise_with_latency_and_end() {
        let mut before = step_of(0);
        for ns in 0..100_000u64 {
            let step = step_of(ns);
            assert!(step >= before && step <= before + 1, "{ns}: {step}");
            before = step;
        }
        assert_eq!(step_of(u64::MAX), STEPS - 1);
        assert_eq!(step_of(1 << 40), STEPS - 1);
        assert!(step_of((1 << 40) - 1) == STEPS - 1);
    }

    #[test]
    fn the_slowest_divide_their_own_time() {
        let mut tail = Tail::default();
        let mut fast = StageTimes::default();
        fast.add(Stage::Append, Duration::from_millis(1));
        for _ in 0..10_000 {
            tail.record(1_000_000, &fast);
        }
        let mut slow = StageTimes::default();
        slow.add(Stage::Flush, Duration::from_millis(90));
        slow.add(Stage::Queue, Duration::from_millis(10));
        slow.add(Stage::Park, Duration::from_secs(9));
        tail.record(100_000_000, &slow);
        let shares = tail.shares_from(50_000_000);
        assert_eq!(shares.requests, 1);
        assert_eq!(shares.shares, [(Stage::Flush, 0.9), (Stage::Queue, 0.1)]);
        assert_eq!(shares.describe(), "flush 90 %, queue 10 %");
        let all = tail.shares_from(0);
        assert_eq!((all.requests, all.shares[0].0), (10_001, Stage::Append));
        assert_eq!(tail.shares_from(u64::MAX).describe(), "");
        let mut twice = tail.clone();
        twice.merge(&tail);
        assert_eq!(twice.shares_from(50_000_000).requests, 2);
        twice.clear();
        assert_eq!(twice.shares_from(0), TailShares::default());
    }
}
