//! The limits of an image as they are looked up (`ClientQuotaManager.DefaultQuotaCallback`).
//!
//! The first of these that has a limit of the kind counts, and all that it covers count together
//! where the last column says so:
//!
//! | | limit of | counted by |
//! |---|---|---|
//! | 1 | a user's client | user and client |
//! | 2 | any client of a user | user and client |
//! | 3 | a user | user |
//! | 4 | a client of any user | user and client |
//! | 5 | any client of any user | user and client |
//! | 6 | any user | user |
//! | 7 | a client | client |
//! | 8 | any client | client |
//!
//! A client without a name has the limits of users alone.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use super::{CONNECTION_CREATION_RATE, QuotaKind};
use crate::cluster::image::{Image, QuotaEntity, QuotaValues};

/// Whose use counts together; an empty name stands for all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuotaAccount {
    /// What is limited.
    pub kind: QuotaKind,
    /// The user.
    pub user: Box<str>,
    /// The client.
    pub client_id: Box<str>,
}

/// A limit and whose use counts towards it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Whose.
    pub account: QuotaAccount,
    /// How much a second; above 0 and finite.
    pub bound: f64,
}

/// Every limit.
#[derive(Debug, Default)]
pub struct QuotaLimits {
    kinds: [UserLimits; QuotaKind::ALL.len()],
    addresses: AddressRates,
}

/// Limits of one kind.
#[derive(Debug, Default)]
struct UserLimits {
    is_set: bool,
    named: HashMap<String, ClientLimits>,
    of_any_user: ClientLimits,
    /// Whoever the user is, and wherever nothing is set for users.
    of_clients: ClientLimits,
}

/// Limits of one user, of every user, or of none.
#[derive(Debug, Default)]
struct ClientLimits {
    whole: Option<f64>,
    named: HashMap<String, f64>,
    of_any_client: Option<f64>,
}

impl ClientLimits {
    fn of_client(&self, client_id: &str) -> Option<f64> {
        self.named.get(client_id).copied().or(self.of_any_client)
    }
}

/// Connections that addresses may open a second.
#[derive(Debug, Default)]
pub struct AddressRates {
    of_any: Option<f64>,
    named: HashMap<IpAddr, f64>,
    /// By names that are no addresses.
    of_hosts: Vec<(String, f64)>,
}

impl AddressRates {
    /// The limit of an address, if it has one.
    #[must_use]
    pub fn of(&self, address: IpAddr) -> Option<f64> {
        self.named.get(&address).copied().or(self.of_any)
    }
}

/// The addresses of hosts that limits name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostAddresses {
    /// Which of several counts: the one that was asked for last.
    pub order: u64,
    /// By the hosts' names.
    pub known: BTreeMap<String, Vec<IpAddr>>,
}

/// The limits of hosts that are named by what is no address.
#[must_use]
pub fn of_host_names(quotas: &BTreeMap<QuotaEntity, QuotaValues>) -> BTreeMap<String, QuotaValues> {
    let named = quotas.iter().filter_map(|(entity, values)| {
        let name = entity.get("ip")?.as_ref()?;
        let is_name = name.parse::<IpAddr>().is_err();
        is_name.then(|| (name.clone(), values.clone()))
    });
    named.collect()
}

impl QuotaLimits {
    /// The limits of an image. What is no positive number limits nothing. A host's name stands for
    /// its addresses, each of which has the limit for itself; one's own limit counts before it.
    #[must_use]
    pub fn of(quotas: &BTreeMap<QuotaEntity, QuotaValues>, hosts: &HostAddresses) -> Self {
        let mut limits = Self::default();
        for (entity, values) in quotas {
            for (key, value) in values {
                if value.0.is_finite() && value.0 > 0.0 {
                    limits.set(entity, key, value.0);
                }
            }
        }
        for (name, bound) in std::mem::take(&mut limits.addresses.of_hosts) {
            let addresses = hosts.known.get(&name).into_iter().flatten();
            for address in addresses.map(IpAddr::to_canonical) {
                limits.addresses.named.entry(address).or_insert(bound);
            }
        }
        limits
    }

    fn set(&mut self, entity: &QuotaEntity, key: &str, bound: f64) {
        let kinds = QuotaKind::ALL.iter().zip(&mut self.kinds);
        if let Some((_, limits)) = kinds.into_iter().find(|(kind, _)| kind.key() == key) {
            limits.set(entity, bound);
        } else if key == CONNECTION_CREATION_RATE {
            match entity.get("ip") {
                Some(Some(name)) => match name.parse::<IpAddr>() {
                    Ok(address) => {
                        self.addresses.named.insert(address.to_canonical(), bound);
                    }
                    Err(_) => self.addresses.of_hosts.push((name.clone(), bound)),
                },
                Some(None) => self.addresses.of_any = Some(bound),
                None => {}
            }
        }
    }

    /// The limit of one kind that counts for a user's client.
    #[must_use]
    pub fn limit(&self, kind: QuotaKind, user: &str, client_id: &str) -> Option<Limit> {
        let limits = self.kinds.get(kind as usize).filter(|one| one.is_set)?;
        let (bound, user, client_id) = limits.find(user, client_id)?;
        let account = QuotaAccount {
            kind,
            user: user.into(),
            client_id: client_id.into(),
        };
        Some(Limit { account, bound })
    }

    /// What addresses may open.
    #[must_use]
    pub fn addresses(&self) -> &AddressRates {
        &self.addresses
    }
}

impl UserLimits {
    fn set(&mut self, entity: &QuotaEntity, bound: f64) {
        let of_user = match entity.get("user") {
            Some(Some(name)) => self.named.entry(name.clone()).or_default(),
            Some(None) => &mut self.of_any_user,
            None => &mut self.of_clients,
        };
        match entity.get("client-id") {
            Some(Some(name)) => {
                of_user.named.insert(name.clone(), bound);
            }
            Some(None) => of_user.of_any_client = Some(bound),
            None => of_user.whole = Some(bound),
        }
        self.is_set = true;
    }

    /// The limit, and the names by which use is counted.
    fn find<'a>(&self, user: &'a str, client_id: &'a str) -> Option<(f64, &'a str, &'a str)> {
        let own = self.named.get(user);
        let of_any = Some(&self.of_any_user);
        for limits in [own, of_any].into_iter().flatten() {
            let of_client = limits.of_client(client_id);
            if let Some(bound) = of_client.filter(|_| !client_id.is_empty()) {
                return Some((bound, user, client_id));
            }
            if let Some(bound) = limits.whole {
                return Some((bound, user, ""));
            }
        }
        let of_client = self.of_clients.of_client(client_id);
        let bound = of_client.filter(|_| !client_id.is_empty())?;
        Some((bound, "", client_id))
    }
}

/// The limits of the image that was last looked at.
#[derive(Debug, Default)]
pub struct LatestLimits {
    of: Arc<BTreeMap<QuotaEntity, QuotaValues>>,
    hosts: Arc<HostAddresses>,
    limits: Rc<QuotaLimits>,
}

impl LatestLimits {
    /// Those of `image`, worked out anew only where they are others.
    pub fn of(&mut self, image: &Image) -> &Rc<QuotaLimits> {
        let quotas = image.client_quotas();
        if !Arc::ptr_eq(quotas, &self.of) {
            self.of = Arc::clone(quotas);
            self.limits = Rc::new(QuotaLimits::of(quotas, &self.hosts));
        }
        &self.limits
    }

    /// Goes by what is known of hosts now, unless that is older.
    pub fn set_hosts(&mut self, hosts: &Arc<HostAddresses>) {
        if hosts.order > self.hosts.order {
            self.hosts = Arc::clone(hosts);
            self.limits = Rc::new(QuotaLimits::of(&self.of, hosts));
        }
    }

    /// Those that were last looked at.
    #[must_use]
    pub fn known(&self) -> &Rc<QuotaLimits> {
        &self.limits
    }
}

#[cfg(test)]
#[path = "limits_test.rs"]
mod limits_test;
