//! How many connections there may be, as Kafka's `ConnectionQuotas`: past `max.connections` and
//! `max.connection.creation.rate` a connection that was accepted waits, past
//! `max.connections.per.ip` it is closed.

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
use crate::io::reply::reply_slot;
use crate::server::node::Node;
use crate::shard::{Shard, ShardMessage};

/// A limit that is none: Kafka's default.
const UNLIMITED: usize = i32::MAX as usize;
/// Counts the connections of each address, for all shards.
const ADDRESS_KEEPER: ShardId = ShardId(0);
/// Connections of so long a time may come at once.
const RATE_BURST_NS: u64 = 1_000_000_000;

/// Connections of the whole process, counted by all shards (`max.connections`).
#[derive(Clone, Debug)]
pub struct ConnectionCount {
    open: Arc<AtomicUsize>,
    max: usize,
}

impl ConnectionCount {
    /// None open, at most `max`.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            open: Arc::new(AtomicUsize::new(0)),
            max,
        }
    }

    /// One more, unless the limit is reached.
    #[must_use]
    pub fn admit(&self) -> Option<ConnectionPermit> {
        let before = self.open.fetch_add(1, Ordering::Relaxed);
        let permit = ConnectionPermit {
            open: Arc::clone(&self.open),
        };
        (before < self.max).then_some(permit)
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
#[derive(Clone, Debug)]
pub struct CreationRate {
    interval_ns: u64,
    /// When the next one is due; runs behind the clock by at most [`RATE_BURST_NS`].
    next: Arc<AtomicU64>,
}

impl CreationRate {
    /// So many a second.
    #[must_use]
    pub fn new(per_second: usize) -> Self {
        let is_limited = per_second < UNLIMITED;
        let interval_ns = RATE_BURST_NS / per_second.max(1) as u64;
        Self {
            interval_ns: if is_limited { interval_ns } else { 0 },
            next: Arc::default(),
        }
    }

    /// When the connection that came at `now` may begin.
    #[must_use]
    pub fn due(&self, now: MonotonicNs) -> MonotonicNs {
        if self.interval_ns == 0 {
            return now;
        }
        let earliest = now.0.saturating_sub(RATE_BURST_NS);
        let step = |next: u64| Some(next.max(earliest) + self.interval_ns);
        let next = &self.next;
        let before = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        let before = before.unwrap_or_else(|before| before);
        MonotonicNs(now.0.max(before.max(earliest)))
    }
}

/// `max.connections.per.ip` and its overrides.
#[derive(Debug)]
pub struct AddressLimits {
    all: usize,
    overrides: HashMap<IpAddr, usize>,
}

impl AddressLimits {
    /// As set; a host's name stands for the addresses that it has now.
    #[must_use]
    pub fn of(config: &BrokerConfig) -> Self {
        let mut overrides = HashMap::new();
        for (host, limit) in &config.connections_per_ip_overrides {
            match (host.as_str(), 0).to_socket_addrs() {
                Ok(addresses) => {
                    overrides.extend(addresses.map(|at| (at.ip().to_canonical(), *limit)));
                }
                Err(error) => tracing::warn!(
                    "max.connections.per.ip.overrides: {host} cannot be resolved: {error}"
                ),
            }
        }
        Self {
            all: config.connections_per_ip_max,
            overrides,
        }
    }

    /// The limit of an address; `None` for none.
    #[must_use]
    pub fn limit(&self, address: IpAddr) -> Option<usize> {
        let limit = *self.overrides.get(&address).unwrap_or(&self.all);
        (limit < UNLIMITED).then_some(limit)
    }
}

/// Connections by address, kept on one shard for all.
#[derive(Debug, Default)]
pub struct AddressCounts {
    open: RefCell<HashMap<IpAddr, usize>>,
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

/// Counts a connection for its address; `Err` with the limit when that is reached.
///
/// # Errors
/// The limit, when it is reached.
pub async fn admit_address(
    node: &Node,
    limits: &AddressLimits,
    address: IpAddr,
) -> Result<Option<AddressPermit>, usize> {
    let address = address.to_canonical();
    let Some(limit) = limits.limit(address) else {
        return Ok(None);
    };
    let (reply, admitted) = reply_slot();
    let ask = move |keeper: &Rc<Shard>| {
        let node = keeper.attachment::<Node>();
        reply.send(node.is_some_and(|node| node.address_counts().admit(address, limit)));
    };
    let shard = node.shard();
    shard.send(ADDRESS_KEEPER, ShardMessage::Run(Box::new(ask)));
    match admitted.await {
        Some(true) => Ok(Some(AddressPermit {
            shard: Rc::clone(shard),
            address,
        })),
        _ => Err(limit),
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
        let count = ConnectionCount::new(2);
        let first = count.admit();
        let second = count.admit();
        assert!(first.is_some() && second.is_some());
        assert!(count.admit().is_none());
        drop(first);
        assert!(count.admit().is_some());
    }

    #[test]
    fn connections_are_spread_over_the_time_past_the_rate() {
        let second = 1_000_000_000;
        let rate = CreationRate::new(10);
        let at = MonotonicNs(100 * second);
        let due: Vec<u64> = (0..31).map(|_| rate.due(at).0 - at.0).collect();
        assert!(due.iter().take(11).all(|wait| *wait == 0), "{due:?}");
        assert_eq!(due.last(), Some(&(2 * second)), "20 past the burst");
        assert_eq!(CreationRate::new(UNLIMITED).due(at), at);
    }

    #[test]
    fn an_address_has_its_own_limit_or_that_of_all() {
        let config = BrokerConfig {
            connections_per_ip_max: 5,
            connections_per_ip_overrides: vec![("127.0.0.1".to_owned(), 2)],
            ..BrokerConfig::default()
        };
        let limits = AddressLimits::of(&config);
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(limits.limit(local), Some(2));
        assert_eq!(
            limits.limit(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))),
            Some(5)
        );
        let none = AddressLimits::of(&BrokerConfig {
            connections_per_ip_max: UNLIMITED,
            ..BrokerConfig::default()
        });
        assert_eq!(none.limit(local), None);
        let counts = AddressCounts::default();
        assert!(counts.admit(local, 2) && counts.admit(local, 2));
        assert!(!counts.admit(local, 2), "one past the limit");
        counts.release(local);
        assert!(counts.admit(local, 2));
    }
}
