//! The listeners of one shard. Every shard listens on every port (SO_REUSEPORT); the kernel deals
//! connections out.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::base::config::Listener;
use crate::io::{self, TaskClass, TcpListener};
use crate::server::connection::Connection;
use crate::server::context::ListenerInfo;
use crate::server::node::Node;

/// How long a shard waits after an accept that failed (descriptors have run out, mostly).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

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
        count: &ConnectionCount,
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
            let accepting = accept(Rc::clone(node), Rc::clone(&bound), info, count.clone());
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
    count: ConnectionCount,
) {
    while !node.is_stopping() {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let Some(permit) = count.admit() else {
                    if node.log_limit().admit(io::now()).is_some() {
                        tracing::warn!("refused {peer}: max.connections is reached");
                    }
                    continue;
                };
                let config = node.config();
                let (send, receive) = (
                    config.socket_send_buffer_bytes,
                    config.socket_receive_buffer_bytes,
                );
                // A peer that is gone already fails here; its connection ends at the first read.
                let _ = stream.set_buffer_sizes(send, receive);
                Connection::open(&node, Rc::clone(&info), (stream, peer), permit);
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_past_the_limit_are_refused_and_closing_makes_room() {
        let count = ConnectionCount::new(2);
        let first = count.admit();
        let second = count.admit();
        assert!(first.is_some() && second.is_some());
        assert!(count.admit().is_none());
        drop(first);
        assert!(count.admit().is_some());
    }
}
