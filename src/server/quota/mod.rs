//! Throttling of clients (KIP-13, KIP-124, KIP-219): what a request has used is counted, and who is
//! past a limit gets an answer that says for how long it is to wait, and is not read for so long.
//!
//! Use that counts together is counted on one shard, its *keeper*, whichever shards the connections
//! are on: the limit of a broker is one number, and a share of it for each shard would be wrong
//! whenever load is uneven. Who has no limit asks nobody; who has one pays a message to the keeper
//! and back for each request, and none where the keeper is the connection's own shard.
//!
//! A limit is looked up where the connection is, and goes along to the keeper. Of what a limit
//! counted before it was changed nothing is forgotten.

mod accounts;
mod prices;
mod work;

use std::cell::RefCell;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub use accounts::{ACCOUNTS_MAX, Accounts, Charge, ChargeMode};
pub use prices::{Prices, ThreadUse};
pub use work::{ConnectionWork, Work};

use super::node::Node;
use crate::base::ids::ShardId;
use crate::cluster::image::Image;
use crate::cluster::quotas::limits::{
    HostAddresses, LatestLimits, Limit, QuotaAccount, QuotaLimits,
};
use crate::cluster::quotas::{ANONYMOUS, QuotaKind, Windows};
use crate::io;
use crate::io::reply::{ReplyReceiver, reply_slot};
use crate::metrics::Counter;
use crate::shard::{Shard, ShardMessage};

/// The quotas of one shard: every limit, and the use of those whom it keeps.
#[derive(Debug)]
pub struct ClientQuotas {
    limits: RefCell<LatestLimits>,
    accounts: RefCell<Accounts<QuotaAccount>>,
    prices: Prices,
    windows: Windows,
}

impl ClientQuotas {
    /// The limits of an image, nothing used.
    #[must_use]
    pub fn new(image: &Image, windows: Windows) -> Self {
        let quotas = Self {
            limits: RefCell::default(),
            accounts: RefCell::default(),
            prices: Prices::default(),
            windows,
        };
        quotas.set_image(image);
        quotas
    }

    /// Goes by the limits of another image.
    pub fn set_image(&self, image: &Image) {
        self.limits.borrow_mut().of(image);
    }

    /// Takes what the system knows of the hosts that limits name.
    pub fn set_hosts(&self, hosts: &Arc<HostAddresses>) {
        self.limits.borrow_mut().set_hosts(hosts);
    }

    /// All limits.
    #[must_use]
    pub fn limits(&self) -> Rc<QuotaLimits> {
        Rc::clone(self.limits.borrow().known())
    }

    /// The limit that counts for a client, if there is one.
    #[must_use]
    pub fn limit(&self, kind: QuotaKind, client_id: Option<&str>) -> Option<Limit> {
        let limits = self.limits.borrow();
        let client_id = client_id.unwrap_or_default();
        limits.known().limit(kind, ANONYMOUS, client_id)
    }

    /// What may be used at once of a limit: as much as all whole samples allow together.
    #[must_use]
    pub fn at_once(&self, limit: &Limit) -> f64 {
        limit.bound * self.windows.seconds(self.windows.count - 1)
    }

    /// Over which time use is measured.
    #[must_use]
    pub fn windows(&self) -> Windows {
        self.windows
    }

    /// How long this shard's thread was at some work for a client.
    #[must_use]
    pub fn time_of(&self, work: Work) -> Duration {
        self.prices.learn(ThreadUse::now());
        self.prices.time_of(work)
    }

    fn charge(&self, limit: Limit, charge: Charge) -> Duration {
        let mut accounts = self.accounts.borrow_mut();
        accounts.charge(
            (limit.account, limit.bound),
            charge,
            (io::now(), self.windows),
        )
    }

    /// How long a client is throttled at most: one sample where threads' time is concerned, as in
    /// Kafka (`ClientRequestQuotaManager`).
    fn capped(&self, kind: QuotaKind, wait: Duration) -> Duration {
        match kind {
            QuotaKind::Request => wait.min(self.windows.length),
            _ => wait,
        }
    }
}

/// How long a client is to be throttled, once its keeper has answered.
#[derive(Default)]
pub enum Charging {
    /// Known; zero where nobody has to wait.
    #[default]
    Free,
    /// Known here.
    Known(Duration),
    /// The keeper was asked.
    Asked(ReplyReceiver<Duration>),
}

impl Future for Charging {
    type Output = Duration;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Duration> {
        match &mut *self {
            Self::Free => Poll::Ready(Duration::ZERO),
            Self::Known(wait) => Poll::Ready(*wait),
            // A keeper that is gone stops with the whole broker.
            Self::Asked(answer) => Pin::new(answer)
                .poll(context)
                .map(Option::unwrap_or_default),
        }
    }
}

/// Counts what was used towards a limit.
#[must_use]
pub fn charge(node: &Node, limit: Limit, charge: Charge) -> Charging {
    let shard = node.shard();
    let keeper = keeper_of(&limit.account, shard);
    let kind = limit.account.kind;
    if keeper == shard.id() {
        let quotas = node.quotas();
        let wait = quotas.charge(limit, charge);
        return Charging::Known(quotas.capped(kind, wait));
    }
    let (reply, answer) = reply_slot();
    let count = move |keeper: &Rc<Shard>| {
        if let Some(node) = keeper.attachment::<Node>() {
            let quotas = node.quotas();
            let wait = quotas.charge(limit, charge);
            reply.send(quotas.capped(kind, wait));
        }
    };
    shard.send(keeper, ShardMessage::Run(Box::new(count)));
    Charging::Asked(answer)
}

/// Notes that a client is throttled, for those who run the broker.
pub fn note_throttled(node: &Node, (kind, client_id): (QuotaKind, Option<&str>), wait: Duration) {
    node.metrics().add(Counter::RequestsThrottled, 1);
    let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    node.metrics().add(Counter::ThrottleMs, ms);
    if node.log_limit().admit(io::now()).is_some() {
        let client_id = client_id.unwrap_or_default();
        tracing::info!(
            "client {client_id:?} waits for {ms} ms: {} is reached",
            kind.key()
        );
    }
}

fn keeper_of(account: &QuotaAccount, shard: &Shard) -> ShardId {
    let count = shard.shards().count().max(1) as u64;
    let mut hasher = DefaultHasher::new();
    account.hash(&mut hasher);
    // Within the number of shards, which is a u16.
    ShardId((hasher.finish() % count) as u16)
}
