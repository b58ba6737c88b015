//! The listeners of one shard. Every shard listens on every port (SO_REUSEPORT); the kernel deals
//! connections out.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use super::connection_limits::{AddressRefusal, ConnectionPermit, admit_address};
use super::connection_limits::{ConnectionCount, CreationRate, PLACE_RETRY};
use crate::base::config::Listener;
use crate::base::time::MonotonicNs;
use crate::io::{self, TaskClass, TcpListener, TcpStream};
use crate::server::connection::Connection;
use crate::server::context::ListenerInfo;
use crate::server::node::Node;

/// Connections of one listener and shard that are held for a while before they are closed.
const CLOSING_MAX: usize = 1_000;
/// How long a shard waits after an accept that failed (descriptors have run out, mostly).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// What all shards count together; the limits themselves are the settings in force.
#[derive(Clone, Debug, Default)]
pub struct ConnectionLimits {
    all: Counts,
    listeners: BTreeMap<String, Counts>,
}

/// Connections and when they came.
#[derive(Clone, Debug, Default)]
struct Counts {
    count: ConnectionCount,
    rate: CreationRate,
}

impl ConnectionLimits {
    /// For these listeners.
    #[must_use]
    pub fn new(listeners: &[Listener]) -> Self {
        let names = listeners.iter().map(|listener| listener.name.clone());
        Self {
            all: Counts::default(),
            listeners: names.map(|name| (name, Counts::default())).collect(),
        }
    }

    /// What counts for one listener: its own and those of all.
    fn of(&self, listener: &str) -> AcceptLimits {
        AcceptLimits {
            own: self.listeners.get(listener).cloned().unwrap_or_default(),
            all: self.all.clone(),
            closing: Rc::default(),
        }
    }
}

/// What the connections of one listener are counted by.
struct AcceptLimits {
    own: Counts,
    all: Counts,
    /// Connections of this shard that are closed after a while.
    closing: Rc<Cell<usize>>,
}

impl AcceptLimits {
    /// When a connection that came at `now` may begin.
    fn due(&self, node: &Node, listener: &str, now: MonotonicNs) -> MonotonicNs {
        let config = node.config();
        let limits = config.listener_limits(listener);
        let own = (self.own.rate).due(now, limits.connection_creation_rate_max);
        let all = (self.all.rate).due(now, config.connection_creation_rate_max);
        own.max(all)
    }

    /// A place among the listener's connections and among all.
    fn admit(&self, node: &Node, listener: &str) -> Option<[ConnectionPermit; 2]> {
        let config = node.config();
        let own_max = config.listener_limits(listener).connections_max;
        let own = self.own.count.admit(own_max)?;
        let all = self.all.count.admit(config.connections_max)?;
        Some([own, all])
    }
}

/// The open listeners of one shard.
#[derive(Default)]
pub struct Listening {
    listeners: Vec<Rc<TcpListener>>,
}

impl Listening {
    /// Binds every listener and accepts from now on.
    pub fn open(
        node: &Rc<Node>,
        listeners: &[Listener],
        limits: &ConnectionLimits,
    ) -> Result<Self, String> {
        let mut open = Vec::with_capacity(listeners.len());
        let backlog = u32::try_from(node.config().socket_listen_backlog).unwrap_or(50);
        for listener in listeners {
            let ip = listener.host.parse();
            let ip = ip.map_err(|error| format!("listener {}: {error}", listener.name))?;
            let address = SocketAddr::new(ip, listener.port);
            let bound = TcpListener::bind(address, backlog);
            let bound = bound.map_err(|error| format!("cannot listen on {address}: {error}"))?;
            let bound = Rc::new(bound);
            let info = Rc::new(ListenerInfo {
                name: listener.name.clone(),
                advertised_host: listener.advertised_host.clone(),
                advertised_port: listener.advertised_port,
            });
            let limits = limits.of(&listener.name);
            let accepting = accept(Rc::clone(node), Rc::clone(&bound), info, limits);
            io::spawn(TaskClass::Produce, accepting);
            open.push(bound);
        }
        Ok(Self { listeners: open })
    }

    /// Takes no further connection.
    pub fn close(&mut self) {
        for listener in self.listeners.drain(..) {
            listener.shutdown();
        }
    }
}

async fn accept(
    node: Rc<Node>,
    listener: Rc<TcpListener>,
    info: Rc<ListenerInfo>,
    limits: AcceptLimits,
) {
    while !node.is_stopping() {
        match listener.accept().await {
            Ok(accepted) => begin(&node, &info, accepted, &limits).await,
            Err(error) if !node.is_stopping() => {
                if node.log_limit().admit(io::now()).is_some() {
                    tracing::warn!("cannot accept connections: {error}");
                }
                io::sleep(ACCEPT_RETRY).await;
            }
            Err(_) => break,
        }
    }
}

/// Opens a connection when its turn and a place have come; those behind it wait with it.
async fn begin(
    node: &Rc<Node>,
    info: &Rc<ListenerInfo>,
    (stream, peer): (TcpStream, SocketAddr),
    limits: &AcceptLimits,
) {
    let tell = |what: &dyn std::fmt::Display| {
        if node.log_limit().admit(io::now()).is_some() {
            tracing::info!("{what}");
        }
    };
    let address = match admit_address(node, peer.ip()).await {
        Ok(permit) => permit,
        Err(AddressRefusal::TooFast(wait)) => {
            tell(&format_args!(
                "connections from {} are closed: its connection_creation_rate is reached",
                peer.ip()
            ));
            close_later(stream, wait, &limits.closing);
            return;
        }
        Err(AddressRefusal::TooMany(limit)) => {
            tell(&format_args!(
                "Rejected connection from {peer}, address already has the configured maximum of \
                 {limit} connections."
            ));
            return;
        }
    };
    let now = io::now();
    let due = limits.due(node, &info.name, now);
    if due > now {
        tell(&"connections wait: max.connection.creation.rate is reached");
        io::sleep_until(due).await;
    }
    let Some(place) = place(node, (&info.name, limits), &tell).await else {
        return;
    };
    let Some(room) = node.connection_memory().admit() else {
        tell(&format_args!(
            "refused {peer}: there are as many connections as coreline.memory has room for"
        ));
        return;
    };
    let config = node.config();
    let (send, receive) = (
        config.socket_send_buffer_bytes,
        config.socket_receive_buffer_bytes,
    );
    // A peer that is gone already fails here; its connection ends at the first read.
    let _ = stream.set_buffer_sizes(send, receive);
    let permits = (place, address);
    Connection::open(node, Rc::clone(info), (stream, peer), (permits, room));
}

/// Closes a connection after a while, so that who opens them too fast does not come again at once.
/// Of very many the next are closed at once.
fn close_later(stream: TcpStream, wait: Duration, closing: &Rc<Cell<usize>>) {
    if closing.get() >= CLOSING_MAX {
        return;
    }
    closing.set(closing.get() + 1);
    let closing = Rc::clone(closing);
    io::spawn(TaskClass::Background, async move {
        io::sleep(wait).await;
        drop(stream);
        closing.set(closing.get() - 1);
    });
}

/// A place among `max.connections`, the listener's and all; `None` when the broker stops.
async fn place(
    node: &Node,
    (listener, limits): (&str, &AcceptLimits),
    tell: &impl Fn(&dyn std::fmt::Display),
) -> Option<[ConnectionPermit; 2]> {
    let admit = || limits.admit(node, listener);
    if let Some(permit) = admit() {
        return Some(permit);
    }
    tell(&"connections wait: max.connections is reached");
    while !node.is_stopping() {
        io::sleep(PLACE_RETRY).await;
        if let Some(permit) = admit() {
            return Some(permit);
        }
    }
    None
}
