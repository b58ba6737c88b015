//! The time that threads were at a produce, towards its client's limit (KIP-124).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::cluster::quotas::QuotaKind;
use crate::cluster::quotas::limits::Limit;
use crate::server::api::thread_percent;
use crate::server::context::RequestContext;
use crate::server::quota::{Charge, ChargeMode, Charging, charge};

/// A produce that counts towards a limit of threads' time.
pub struct Metering {
    limit: Option<Limit>,
    /// On the connection's own thread.
    busy: Duration,
    client_id: Option<String>,
    charging: Charging,
}

impl Metering {
    /// A produce that has been started, for which the thread took `busy`.
    #[must_use]
    pub fn new(limit: Limit, busy: Duration, client_id: Option<String>) -> Self {
        Self {
            limit: Some(limit),
            busy,
            client_id,
            charging: Charging::Free,
        }
    }

    /// Counts what it took, appends included, once they are answered. Answers for how long the
    /// client is throttled.
    pub fn poll(
        &mut self,
        of: &RequestContext,
        appended: Duration,
        context: &mut Context<'_>,
    ) -> Poll<Duration> {
        if let Some(limit) = self.limit.take() {
            let used = Charge {
                value: thread_percent(self.busy + appended),
                mode: ChargeMode::Always,
            };
            self.charging = charge(of.node(), limit, used);
        }
        let polled = Pin::new(&mut self.charging).poll(context);
        if let Poll::Ready(wait) = polled {
            of.mute((QuotaKind::Request, self.client_id.as_deref()), wait);
        }
        polled
    }
}
