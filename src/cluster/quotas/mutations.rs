//! What clients may change of partitions (KIP-599, `ControllerMutationQuotaManager`): the
//! controller's buckets, one for each whose changes count together.
//!
//! A strict asker's topic is refused where its bucket is overdrawn already; of others everything is
//! done, and they are throttled afterwards.

use std::collections::HashMap;
use std::time::Duration;

use super::limits::{LatestLimits, Limit, QuotaAccount};
use super::tokens::TokenBucket;
use super::{ANONYMOUS, QuotaKind, Windows};
use crate::base::error_code::ErrorCode;
use crate::base::time::MonotonicNs;
use crate::cluster::decide::Refusal;
use crate::cluster::image::Image;
use crate::wire::header::RequestHeader;

/// Most buckets. Past it those are forgotten that are full, which changes nothing, and then those
/// that were used longest ago.
pub const MUTATION_ACCOUNTS_MAX: usize = 10_000;

/// Who asks for changes of partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The user.
    pub user: String,
    /// What the client calls itself.
    pub client_id: String,
    /// Whether what is past the limit is refused, as the request's version has it.
    pub is_strict: bool,
}

impl Asker {
    /// The client of a request, which is refused what is past its limit from version `strict_from`
    /// on.
    #[must_use]
    pub fn of(header: &RequestHeader, strict_from: i16) -> Self {
        let is_strict = header.api_version >= strict_from;
        Self::anonymous(header.client_id.as_deref(), is_strict)
    }

    /// A client that does not say which user it is.
    #[must_use]
    pub fn anonymous(client_id: Option<&str>, is_strict: bool) -> Self {
        Self {
            user: ANONYMOUS.to_owned(),
            client_id: client_id.unwrap_or_default().to_owned(),
            is_strict,
        }
    }
}

/// The buckets.
#[derive(Debug)]
pub struct MutationQuotas {
    limits: LatestLimits,
    windows: Windows,
    buckets: HashMap<QuotaAccount, (TokenBucket, f64)>,
}

impl MutationQuotas {
    /// None yet; `windows` are the controller's own (`controller.quota.window.…`).
    #[must_use]
    pub fn new(windows: Windows) -> Self {
        Self {
            limits: LatestLimits::default(),
            windows,
            buckets: HashMap::new(),
        }
    }

    /// What `asker` may change now.
    pub fn permits(&mut self, image: &Image, asker: &Asker, now: MonotonicNs) -> Permits<'_> {
        let limits = self.limits.of(image);
        let kind = QuotaKind::ControllerMutation;
        let limit = limits.limit(kind, &asker.user, &asker.client_id);
        let bucket = limit.map(|limit| self.bucket(limit, now));
        Permits {
            bucket,
            is_strict: asker.is_strict,
            throttle: Duration::ZERO,
        }
    }

    fn bucket(&mut self, limit: Limit, now: MonotonicNs) -> Bucket<'_> {
        let windows = self.windows;
        let Limit { account, bound } = limit;
        if self.buckets.len() >= MUTATION_ACCOUNTS_MAX && !self.buckets.contains_key(&account) {
            self.make_room(now);
        }
        let fresh = || (TokenBucket::full(bound, now, windows), bound);
        let (tokens, known_bound) = self.buckets.entry(account).or_insert_with(fresh);
        *known_bound = bound;
        Bucket {
            tokens,
            bound,
            windows,
            now,
        }
    }

    fn make_room(&mut self, now: MonotonicNs) {
        let windows = self.windows;
        let mut left: Vec<(f64, QuotaAccount)> = Vec::new();
        self.buckets.retain(|account, (bucket, bound)| {
            let part = bucket.tokens(*bound, now, windows) / *bound;
            let is_full = part >= windows.seconds(windows.count);
            if !is_full {
                left.push((part, account.clone()));
            }
            !is_full
        });
        if left.len() >= MUTATION_ACCOUNTS_MAX {
            // The fullest half has least to lose.
            left.sort_by(|one, other| other.0.total_cmp(&one.0));
            for (_, account) in left.into_iter().take(MUTATION_ACCOUNTS_MAX / 2) {
                self.buckets.remove(&account);
            }
        }
    }
}

/// One bucket while a request is decided.
#[derive(Debug)]
struct Bucket<'a> {
    tokens: &'a mut TokenBucket,
    bound: f64,
    windows: Windows,
    now: MonotonicNs,
}

/// What one request may change.
#[derive(Debug)]
pub struct Permits<'a> {
    bucket: Option<Bucket<'a>>,
    is_strict: bool,
    throttle: Duration,
}

impl Permits<'_> {
    /// Anything.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            bucket: None,
            is_strict: false,
            throttle: Duration::ZERO,
        }
    }

    /// Takes the partitions of one topic.
    ///
    /// # Errors
    /// THROTTLING_QUOTA_EXCEEDED where the asker is strict and has taken too many before.
    pub fn take(&mut self, partitions: usize) -> Result<(), Refusal> {
        let Some(bucket) = &mut self.bucket else {
            return Ok(());
        };
        let (bound, now, windows) = (bucket.bound, bucket.now, bucket.windows);
        let count = partitions as f64;
        if !self.is_strict {
            bucket.tokens.tokens(bound, now, windows);
            bucket.tokens.take(count);
            self.throttle = bucket.tokens.wait(bound, now, windows);
            return Ok(());
        }
        // Who has waited for as long as it was told, in whole milliseconds, is let in.
        let wait = bucket.tokens.wait(bound, now, windows);
        if !wait.is_zero() {
            self.throttle = wait;
            return Err(Refusal::new(
                ErrorCode::THROTTLING_QUOTA_EXCEEDED,
                "The throttling quota has been exceeded.",
            ));
        }
        bucket.tokens.take(count);
        Ok(())
    }

    /// How long the asker is to be throttled.
    #[must_use]
    pub fn throttle_time_ms(&self) -> i32 {
        i32::try_from(self.throttle.as_millis()).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
#[path = "mutations_test.rs"]
mod mutations_test;
