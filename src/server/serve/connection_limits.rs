//! How many connections there may be, as Kafka's `ConnectionQuotas`: past `max.connections` and
//! `max.connection.creation.rate` a connection that was accepted waits, past
//! `max.connections.per.ip` it is closed, and past its address's `connection_creation_rate`
//! (KIP-612) it is closed after a while.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::base::config::BrokerConfig;
use crate::base::ids::ShardId;
use crate::base::time::MonotonicNs;
use crate::cluster::quotas::Windows;
use crate::cluster::quotas::limits::HostAddresses;
use crate::io;
use crate::io::reply::reply_slot;
use crate::server::node::Node;
use crate::server::quota::{Accounts, Charge, ChargeMode};
use crate::shard::{Shard, ShardMessage};

/// A limit that is none: Kafka's default.
const UNLIMITED: usize = i32::MAX as usize;
/// Counts the connections of each address, for all shards.
const ADDRESS_KEEPER: ShardId = ShardId(0);
/// Connections of so long a time may come at once.
const RATE_BURST_NS: u64 = 1_000_000_000;

/// Connections of the whole process, counted by all shards (`max.connections`).
#[derive(Clone, Debug, Default)]
pub struct ConnectionCount {
    open: Arc<AtomicUsize>,
}

impl ConnectionCount {
    /// One more, unless there are `max` of them or more: the limit may have been lowered.
    #[must_use]
    pub fn admit(&self, max: usize) -> Option<ConnectionPermit> {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        let permit = ConnectionPermit {
            open: Arc::clone(&self.open),
        };
        (before < max).then_some(permit)
    }
}

/// One open connection; counted until dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    open: Arc<AtomicUsize>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// When connections may begin, for all shards together (`max.connection.creation.rate`).
#[derive(Clone, Debug, Default)]
pub struct CreationRate {
    /// When the next one is due; runs behind the clock by at most [`RATE_BURST_NS`].
    next: Arc<AtomicU64>,
}

impl CreationRate {
    /// When the connection that came at `now` may begin, at so many a second.
    #[must_use]
    pub fn due(&self, now: MonotonicNs, per_second: usize) -> MonotonicNs {
        if per_second >= UNLIMITED {
            return now;
        }
        let interval_ns = RATE_BURST_NS / per_second.max(1) as u64;
        let earliest = now.0.saturating_sub(RATE_BURST_NS);
        let step = |next: u64| Some(next.max(earliest) + interval_ns);
        let next = &self.next;
        let before = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        let before = before.unwrap_or_else(|before| before);
        MonotonicNs(now.0.max(before.max(earliest)))
    }
}

/// `max.connections.per.ip` and its overrides.
#[derive(Debug, Default)]
pub struct AddressLimits {
    all: usize,
    overrides: HashMap<IpAddr, usize>,
}

impl AddressLimits {
    /// As set, without what was set for hosts' names.
    #[must_use]
    pub fn of_addresses(config: &BrokerConfig) -> Self {
        let overrides = config.connections_per_ip_overrides.iter();
        let of_address = |(host, limit): &(String, usize)| {
            let address: IpAddr = host.parse().ok()?;
            Some((address.to_canonical(), *limit))
        };
        Self {
            all: config.connections_per_ip_max,
            overrides: overrides.filter_map(of_address).collect(),
        }
    }

    /// As set; a host's name stands for the addresses that it has now. Asks the system for them,
    /// which may take long: not for a shard's thread while it serves.
    #[must_use]
    pub fn resolved(config: &BrokerConfig) -> Self {
        let mut limits = Self::of_addresses(config);
        for (host, limit) in config.connections_per_ip_overrides.iter().filter(is_name) {
            match (host.as_str(), 0).to_socket_addrs() {
                Ok(addresses) => {
                    let found = addresses.map(|at| (at.ip().to_canonical(), *limit));
                    limits.overrides.extend(found);
                }
                Err(error) => tracing::warn!(
                    "max.connections.per.ip.overrides: {host} cannot be resolved: {error}"
                ),
            }
        }
        limits
    }

    /// Whether hosts' names are among the overrides.
    #[must_use]
    pub fn has_names(config: &BrokerConfig) -> bool {
        config
            .connections_per_ip_overrides
            .iter()
            .any(|one| is_name(&one))
    }

    /// The limit of an address; `None` for none.
    #[must_use]
    pub fn limit(&self, address: IpAddr) -> Option<usize> {
        let limit = *self.overrides.get(&address).unwrap_or(&self.all);
        (limit < UNLIMITED).then_some(limit)
    }
}

/// What the system knows of hosts now. Not for a shard's thread either.
#[must_use]
pub fn addresses_of(names: Vec<String>, order: u64) -> HostAddresses {
    let known = names.into_iter().map(|name| {
        let found = match (name.as_str(), 0).to_socket_addrs() {
            Ok(found) => found.map(|at| at.ip()).collect(),
            Err(error) => {
                tracing::warn!("the connections of {name} are not limited: {error}");
                Vec::new()
            }
        };
        (name, found)
    });
    HostAddresses {
        order,
        known: known.collect(),
    }
}

fn is_name((host, _): &&(String, usize)) -> bool {
    host.parse::<IpAddr>().is_err()
}

/// Connections by address, kept on one shard for all.
#[derive(Debug, Default)]
pub struct AddressCounts {
    open: RefCell<HashMap<IpAddr, usize>>,
    opened: RefCell<Accounts<IpAddr>>,
}

/// Why an address may not open a connection now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressRefusal {
    /// It has this many, as many as it may have.
    TooMany(usize),
    /// It opens them faster than it may, and is to wait.
    TooFast(Duration),
}

/// What an address may do.
#[derive(Clone, Copy, Debug)]
struct AddressBounds {
    /// How many connections it may have.
    open_max: Option<usize>,
    /// How many it may open a second.
    rate_max: Option<f64>,
    windows: Windows,
}

impl AddressCounts {
    fn admit(&self, address: IpAddr, limit: usize) -> bool {
        let mut open = self.open.borrow_mut();
        let count = open.get(&address).copied().unwrap_or(0);
        let fits = count < limit;
        if fits {
            open.insert(address, count + 1);
        }
        fits
    }

    /// One more within its bounds. Only one that is let in counts towards the rate.
    fn admit_within(
        &self,
        address: IpAddr,
        bounds: AddressBounds,
        now: MonotonicNs,
    ) -> Result<(), AddressRefusal> {
        if let Some(rate) = bounds.rate_max {
            let one = Charge {
                value: 1.0,
                mode: ChargeMode::UnlessOver,
            };
            let mut opened = self.opened.borrow_mut();
            let wait = opened.charge((address, rate), one, (now, bounds.windows));
            if !wait.is_zero() {
                return Err(AddressRefusal::TooFast(wait.min(bounds.windows.length)));
            }
        }
        match bounds.open_max {
            Some(limit) if !self.admit(address, limit) => Err(AddressRefusal::TooMany(limit)),
            Some(_) => Ok(()),
            None => {
                self.add(address);
                Ok(())
            }
        }
    }

    /// One more without a limit: counted for the time when there is one.
    fn add(&self, address: IpAddr) {
        *self.open.borrow_mut().entry(address).or_default() += 1;
    }

    fn release(&self, address: IpAddr) {
        let mut open = self.open.borrow_mut();
        match open.get_mut(&address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&address)),
        }
    }
}

/// A connection that is counted for its address until this is dropped.
#[derive(Debug)]
pub struct AddressPermit {
    shard: Rc<Shard>,
    address: IpAddr,
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let address = self.address;
        let release = move |keeper: &Rc<Shard>| {
            if let Some(node) = keeper.attachment::<Node>() {
                node.address_counts().release(address);
            }
        };
        let work = ShardMessage::Run(Box::new(release));
        self.shard.send(ADDRESS_KEEPER, work);
    }
}

/// Counts a connection for its address.
///
/// # Errors
/// Why it may not be opened.
pub async fn admit_address(node: &Node, address: IpAddr) -> Result<AddressPermit, AddressRefusal> {
    let address = address.to_canonical();
    let shard = node.shard();
    let permit = || AddressPermit {
        shard: Rc::clone(shard),
        address,
    };
    let bounds = AddressBounds {
        open_max: node.address_limits().limit(address),
        rate_max: node.quotas().limits().addresses().of(address),
        windows: node.quotas().windows(),
    };
    if bounds.open_max.is_none() && bounds.rate_max.is_none() {
        let count = move |keeper: &Rc<Shard>| {
            if let Some(node) = keeper.attachment::<Node>() {
                node.address_counts().add(address);
            }
        };
        shard.send(ADDRESS_KEEPER, ShardMessage::Run(Box::new(count)));
        return Ok(permit());
    }
    let (reply, admitted) = reply_slot();
    let ask = move |keeper: &Rc<Shard>| {
        if let Some(node) = keeper.attachment::<Node>() {
            reply.send(
                node.address_counts()
                    .admit_within(address, bounds, io::now()),
            );
        }
    };
    shard.send(ADDRESS_KEEPER, ShardMessage::Run(Box::new(ask)));
    // Without an answer the broker stops.
    match admitted.await.unwrap_or(Err(AddressRefusal::TooMany(0))) {
        Ok(()) => Ok(permit()),
        Err(refusal) => Err(refusal),
    }
}

/// How long a connection waits between two looks for a free place.
pub const PLACE_RETRY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn connections_past_the_limit_wait_and_closing_makes_room() {
        let count = ConnectionCount::default();
        let first = count.admit(2);
        let second = count.admit(2);
        assert!(first.is_some() && second.is_some());
        assert!(count.admit(2).is_none() && count.admit(1).is_none());
        assert!(count.admit(3).is_some(), "raised");
        drop(first);
        assert!(count.admit(2).is_some() && count.admit(1).is_none());
    }

    #[test]
    fn connections_are_spread_over_the_time_past_the_rate() {
        let second = 1_000_000_000;
        let rate = CreationRate::default();
        let at = MonotonicNs(100 * second);
        let due: Vec<u64> = (0..31).map(|_| rate.due(at, 10).0 - at.0).collect();
        assert!(due.iter().take(11).all(|wait| *wait == 0), "{due:?}");
        assert_eq!(due.last(), Some(&(2 * second)), "20 past the burst");
        assert_eq!(rate.due(at, UNLIMITED), at);
    }

    #[test]
    fn a_name_stands_for_its_addresses() {
        let config = BrokerConfig {
            connections_per_ip_overrides: vec![("localhost".to_owned(), 2)],
            ..BrokerConfig::default()
        };
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert!(AddressLimits::has_names(&config));
        assert_eq!(AddressLimits::resolved(&config).limit(local), Some(2));
        assert_eq!(AddressLimits::of_addresses(&config).limit(local), None);
    }

    #[test]
    fn an_address_has_its_own_limit_or_that_of_all() {
        let config = BrokerConfig {
            connections_per_ip_max: 5,
            connections_per_ip_overrides: vec![("127.0.0.1".to_owned(), 2)],
            ..BrokerConfig::default()
        };
        let limits = AddressLimits::of_addresses(&config);
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(limits.limit(local), Some(2));
        assert_eq!(
            limits.limit(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))),
            Some(5)
        );
        let none = AddressLimits::of_addresses(&BrokerConfig {
            connections_per_ip_max: UNLIMITED,
            ..BrokerConfig::default()
        });
        assert_eq!(none.limit(local), None);
        let counts = AddressCounts::default();
        assert!(counts.admit(local, 2) && counts.admit(local, 2));
        assert!(!counts.admit(local, 2), "one past the limit");
        counts.release(local);
        assert!(counts.admit(local, 2));
        counts.add(local);
        counts.release(local);
        assert!(!counts.admit(local, 2), "those without a limit count too");
    }

    #[test]
    fn an_address_opens_no_more_a_second_than_it_may() {
        let counts = AddressCounts::default();
        let bounds = AddressBounds {
            open_max: None,
            rate_max: Some(5.0),
            windows: Windows {
                count: 3,
                length: Duration::from_secs(1),
            },
        };
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let open = |ms: u64| counts.admit_within(local, bounds, MonotonicNs(ms * 1_000_000));
        for _ in 0..10 {
            assert_eq!(open(0), Ok(()), "as many as two seconds allow");
        }
        let refused = AddressRefusal::TooFast(Duration::from_millis(200));
        assert_eq!(open(0), Err(refused), "one past it");
        assert_eq!(open(0), Err(refused), "and that did not count");
        assert_eq!(open(200), Ok(()));
        assert!(open(200).is_err());
    }
}
