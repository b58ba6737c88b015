//! What was used lately of the limits that this shard keeps.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use crate::base::time::MonotonicNs;
use crate::cluster::quotas::Windows;
use crate::cluster::quotas::rate::WindowedRate;

/// Most accounts of a shard. Past it those are forgotten that have used nothing lately, which
/// changes nothing, and then those that were used longest ago.
pub const ACCOUNTS_MAX: usize = 10_000;

/// What is to become of what was used where it is past the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeMode {
    /// It counts: it has happened.
    Always,
    /// It counts unless it is past the limit, for then it does not happen. What alone is more than
    /// the limit ever allows happens where nothing else has: otherwise it never could.
    UnlessOver,
    /// It does not happen; only the time is asked for.
    Never,
}

/// What a request has used, or is about to use.
#[derive(Clone, Copy, Debug)]
pub struct Charge {
    /// How much.
    pub value: f64,
    /// Whether it counts.
    pub mode: ChargeMode,
}

/// The accounts, by whose they are.
#[derive(Debug)]
pub struct Accounts<K> {
    rates: HashMap<K, WindowedRate>,
}

impl<K> Default for Accounts<K> {
    fn default() -> Self {
        Self {
            rates: HashMap::new(),
        }
    }
}

impl<K: Clone + Eq + Hash> Accounts<K> {
    /// Counts a charge to an account that may use `bound` a second; answers how long it is to wait.
    pub fn charge(
        &mut self,
        (account, bound): (K, f64),
        charge: Charge,
        (now, windows): (MonotonicNs, Windows),
    ) -> Duration {
        if self.rates.len() >= ACCOUNTS_MAX && !self.rates.contains_key(&account) {
            self.make_room(now, windows);
        }
        let rate = self.rates.entry(account).or_default();
        let wait = rate.wait_after(charge.value, bound, (now, windows));
        let counts = match charge.mode {
            ChargeMode::Always => true,
            ChargeMode::UnlessOver => wait.is_zero() || rate.is_at_rest(now, windows),
            ChargeMode::Never => false,
        };
        if counts {
            rate.record(charge.value, now, windows);
        }
        match charge.mode {
            ChargeMode::UnlessOver if counts => Duration::ZERO,
            _ => wait,
        }
    }

    fn make_room(&mut self, now: MonotonicNs, windows: Windows) {
        self.rates.retain(|_, rate| !rate.is_at_rest(now, windows));
        if self.rates.len() < ACCOUNTS_MAX {
            return;
        }
        let used = self.rates.iter();
        let mut used: Vec<_> = used
            .map(|(account, rate)| (rate.last_used(), account))
            .collect();
        used.sort_by_key(|(at, _)| *at);
        let oldest = used.into_iter().take(ACCOUNTS_MAX / 2);
        let oldest: Vec<K> = oldest.map(|(_, account)| account.clone()).collect();
        for account in oldest {
            self.rates.remove(&account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows {
        count: 11,
        length: Duration::from_secs(1),
    };

    fn limit(client: &str) -> (String, f64) {
        (client.to_owned(), 100.0)
    }

    fn charge(accounts: &mut Accounts<String>, value: f64, mode: ChargeMode) -> u128 {
        let at = (MonotonicNs(0), WINDOWS);
        let wait = accounts.charge(limit("app"), Charge { value, mode }, at);
        wait.as_millis()
    }

    #[test]
    fn what_does_not_happen_does_not_count() {
        let mut accounts = Accounts::default();
        assert_eq!(charge(&mut accounts, 999.0, ChargeMode::Always), 0);
        assert_eq!(charge(&mut accounts, 101.0, ChargeMode::UnlessOver), 1_000);
        assert_eq!(charge(&mut accounts, 101.0, ChargeMode::Never), 1_000);
        assert_eq!(
            charge(&mut accounts, 1.0, ChargeMode::UnlessOver),
            0,
            "the limit"
        );
        assert_eq!(charge(&mut accounts, 1.0, ChargeMode::Always), 10);
    }

    #[test]
    fn more_than_a_limit_ever_allows_happens_once_nothing_else_has() {
        let mut accounts = Accounts::default();
        assert_eq!(charge(&mut accounts, 5_000.0, ChargeMode::UnlessOver), 0);
        assert_eq!(charge(&mut accounts, 1.0, ChargeMode::UnlessOver), 40_010);
    }

    #[test]
    fn names_made_up_take_no_more_than_so_many_accounts() {
        let mut accounts = Accounts::default();
        let used = Charge {
            value: 1.0,
            mode: ChargeMode::Always,
        };
        for number in 0..ACCOUNTS_MAX as u64 {
            let at = (MonotonicNs(number), WINDOWS);
            accounts.charge(limit(&number.to_string()), used, at);
        }
        assert_eq!(accounts.rates.len(), ACCOUNTS_MAX, "the limit");
        let at = (MonotonicNs(ACCOUNTS_MAX as u64), WINDOWS);
        accounts.charge(limit("more"), used, at);
        assert_eq!(accounts.rates.len(), ACCOUNTS_MAX / 2 + 1, "one past it");
        let later = (MonotonicNs(60_000_000_000), WINDOWS);
        accounts.make_room(later.0, later.1);
        assert!(accounts.rates.is_empty(), "nobody has used anything lately");
    }
}
