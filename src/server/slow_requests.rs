//! The log lines about slow requests (`coreline.slow.request.ms`): what took how long, where.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use super::log_limit::LogLimit;
use crate::base::ids::ApiKey;
use crate::base::time::MonotonicNs;
use crate::io;
use crate::metrics::{Stage, StageTimes};
use crate::wire::api;

/// Judges requests by how long they took. One a shard.
#[derive(Debug)]
pub struct SlowRequests {
    slower_than: Duration,
    limit: LogLimit,
}

impl SlowRequests {
    /// Names requests that take longer than `slower_than`, a few lines a second.
    #[must_use]
    pub fn new(slower_than: Duration, now: MonotonicNs) -> Self {
        Self {
            slower_than,
            limit: LogLimit::new(now),
        }
    }

    /// Writes a line about a slow request. The latency is without what the client asked to wait.
    pub fn judge(
        &self,
        api_key: ApiKey,
        (latency, times): (Duration, &StageTimes),
        peer: SocketAddr,
    ) {
        if latency <= self.slower_than {
            return;
        }
        if let Some(suppressed) = self.limit.admit(io::now()) {
            if suppressed > 0 {
                tracing::warn!("{suppressed} slow requests before the next one were not named");
            }
            tracing::warn!("{}", describe(api_key, (latency, times), peer));
        }
    }
}

fn describe(
    api_key: ApiKey,
    (latency, times): (Duration, &StageTimes),
    peer: SocketAddr,
) -> String {
    let name = api::find(api_key).map_or("unknown", |api| api.name);
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    let mut text = format!(
        "slow request: {name} from {peer} took {:.1} ms:",
        ms(latency)
    );
    for stage in Stage::ALL {
        let time = times.get(*stage);
        // A request's parts below a microsecond explain nothing.
        if time >= Duration::from_micros(1) {
            // Writing to a string cannot fail.
            let _ = write!(text, " {} {:.3}", stage.name(), ms(time));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_request_is_told_with_its_stages() {
        let mut times = StageTimes::default();
        times.add(Stage::Decode, Duration::from_nanos(900));
        times.add(Stage::Flush, Duration::from_millis(1_200));
        times.add(Stage::Append, Duration::from_micros(40));
        let peer = "10.0.0.7:1234".parse().expect("an address");
        let text = describe(ApiKey(0), (Duration::from_micros(1_200_040), &times), peer);
        assert_eq!(
            text,
            "slow request: Produce from 10.0.0.7:1234 took 1200.0 ms: append 0.040 flush 1200.000"
        );
    }
}
