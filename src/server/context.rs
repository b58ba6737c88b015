//! What a request's handler may look at and ask.

use std::net::SocketAddr;
use std::rc::Rc;

/// The listener through which a client came; clients are told the advertised name of the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerInfo {
    /// Kafka's listener name, `PLAINTEXT` by default.
    pub name: String,
    /// Host that Metadata names to clients of this listener.
    pub advertised_host: String,
    /// Port that Metadata names to clients of this listener.
    pub advertised_port: u16,
}

/// The surroundings of one connection's requests. One a connection, shared by its requests.
#[derive(Clone, Debug)]
pub struct RequestContext {
    listener: Rc<ListenerInfo>,
    peer: SocketAddr,
}

impl RequestContext {
    /// The context of a connection from `peer`.
    #[must_use]
    pub fn new(listener: Rc<ListenerInfo>, peer: SocketAddr) -> Self {
        Self { listener, peer }
    }

    /// The listener that accepted the connection.
    #[must_use]
    pub fn listener(&self) -> &ListenerInfo {
        &self.listener
    }

    /// The client's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }
}
