//! What was recorded in a short span, in little memory: only what is not zero.

use std::collections::BTreeMap;

use super::recorded::Recorded;
use super::stage::Stage;
use super::tail::{Tail, TailStep};
use crate::base::ids::ApiKey;

/// Value and count pairs of a histogram.
pub(super) type Counts = Vec<(u64, u64)>;

/// A second of a shard's latencies, kept until it leaves the last minute.
#[derive(Clone, Debug, Default)]
pub struct Compact {
    pub(super) requests: BTreeMap<ApiKey, Counts>,
    pub(super) stages: BTreeMap<Stage, Counts>,
    pub(super) tails: BTreeMap<ApiKey, Vec<(usize, TailStep)>>,
}

impl Compact {
    /// The same values.
    #[must_use]
    pub fn of(recorded: &Recorded) -> Self {
        let counts = |histogram: &hdrhistogram::Histogram<u64>| -> Counts {
            let values = histogram.iter_recorded();
            values
                .map(|value| (value.value_iterated_to(), value.count_at_value()))
                .collect()
        };
        let requests = recorded.requests();
        let stages = recorded.stages();
        let tails = recorded.requests().filter_map(|(key, _)| {
            let steps = recorded.tail(key).map(Tail::steps)?;
            Some((key, steps))
        });
        Self {
            tails: tails.collect(),
            requests: requests.map(|(key, held)| (key, counts(held))).collect(),
            stages: stages.map(|(stage, held)| (stage, counts(held))).collect(),
        }
    }
}
