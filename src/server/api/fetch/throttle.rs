//! Whether a client may have what its fetch has found (KIP-13, KIP-124, KIP-219).
//!
//! Bytes are counted before the answer is made, as a session must not take for told what was kept
//! back: the records' own, and a fixed number for the rest of each partition.

use std::time::Duration;

use super::FetchParameters;
use super::targets::Target;
use crate::cluster::quotas::QuotaKind;
use crate::cluster::quotas::limits::Limit;
use crate::server::context::RequestContext;
use crate::server::quota::{Charge, ChargeMode, charge};

/// Bytes of an answer beside its partitions.
const ANSWER_HEAD_BYTES: usize = 32;
/// Bytes that a partition takes in it beside its records.
const PARTITION_HEAD_BYTES: usize = 56;

/// The limits that count for one fetch.
pub struct FetchLimits<'a> {
    client_id: Option<&'a str>,
    bytes: Option<Limit>,
    request: Option<Limit>,
}

impl<'a> FetchLimits<'a> {
    /// Those of a client.
    #[must_use]
    pub fn of(context: &RequestContext, client_id: Option<&'a str>) -> Self {
        Self {
            client_id,
            bytes: context.limit(QuotaKind::Fetch, client_id),
            request: context.limit(QuotaKind::Request, client_id),
        }
    }

    /// Whether there are any.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.bytes.is_some() || self.request.is_some()
    }

    /// No more is read than could ever be had at once.
    pub fn curtail(&self, context: &RequestContext, parameters: &mut FetchParameters) {
        if let Some(limit) = &self.bytes {
            let at_once = context.node().quotas().at_once(limit);
            // What is larger than any number here stays as it is.
            parameters.max_bytes = parameters.max_bytes.min(at_once as usize);
            parameters.min_bytes = parameters.min_bytes.min(parameters.max_bytes);
        }
    }

    /// Counts the time that a fetch took, and what it has found where the client may have that.
    /// Where not, answers for how long it is to wait.
    pub async fn charge(self, context: &RequestContext, targets: &[Target]) -> Option<Duration> {
        let has_time = self.request.is_some();
        let for_time = context.charge_time(self.request).await;
        let mut for_bytes = Duration::ZERO;
        if let Some(limit) = self.bytes {
            let used = Charge {
                value: bytes_of(targets) as f64,
                mode: match for_time.is_zero() {
                    true => ChargeMode::UnlessOver,
                    false => ChargeMode::Never,
                },
            };
            for_bytes = charge(context.node(), limit, used).await;
        }
        let (kind, wait) = match has_time && for_time > for_bytes {
            true => (QuotaKind::Request, for_time),
            false => (QuotaKind::Fetch, for_bytes),
        };
        context.mute((kind, self.client_id), wait);
        (!wait.is_zero()).then_some(wait)
    }
}

fn bytes_of(targets: &[Target]) -> usize {
    let partitions = targets.iter().map(|target| match target {
        Target::Readable {
            read: Some(read), ..
        } if read.bytes > 0 => read.bytes + PARTITION_HEAD_BYTES,
        _ => 0,
    });
    ANSWER_HEAD_BYTES + partitions.sum::<usize>()
}
