//! The time that threads were at a produce, towards its client's limit (KIP-124).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::cluster::quotas::QuotaKind;
use crate::cluster::quotas::limits::Limit;
use crate::server::context::RequestContext;
use crate::server::quota::Charging;

/// A produce that counts towards a limit of threads' time.
pub struct Metering {
    limit: Option<Limit>,
    client_id: Option<String>,
    charging: Charging,
}

impl Metering {
    /// A produce that has been started.
    #[must_use]
    pub fn new(limit: Limit, client_id: Option<String>) -> Self {
        Self {
            limit: Some(limit),
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
            of.work().add(appended);
            self.charging = of.charge_time(Some(limit));
        }
        let polled = Pin::new(&mut self.charging).poll(context);
        if let Poll::Ready(wait) = polled {
            of.mute((QuotaKind::Request, self.client_id.as_deref()), wait);
        }
        polled
    }
}
