//! Whether a port is free.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    self, AddressFamily, Backlog, SockFlag, SockProtocol, SockType, SockaddrStorage, sockopt,
};

use super::Refusal;

/// Binds the address alone and lets it go. The listeners themselves share their port
/// (SO_REUSEPORT), so that two brokers of one user would share it silently and split the clients
/// between them: this bind does not share, and fails.
pub fn probe_port(address: SocketAddr) -> Result<(), Refusal> {
    bind_alone(address).map_err(|error| Refusal(explain(address, &error)))
}

fn bind_alone(address: SocketAddr) -> io::Result<()> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_CLOEXEC;
    let probe = socket::socket(family, SockType::Stream, flags, SockProtocol::Tcp)?;
    // Connections of a broker that ended just now must not count.
    socket::setsockopt(&probe, sockopt::ReuseAddr, &true)?;
    socket::bind(probe.as_raw_fd(), &SockaddrStorage::from(address))?;
    socket::listen(&probe, Backlog::new(1).unwrap_or(Backlog::MAXCONN))?;
    Ok(())
}

fn explain(address: SocketAddr, error: &io::Error) -> String {
    let port = address.port();
    match error.raw_os_error() {
        Some(libc::EADDRINUSE) => format!(
            "{address} is in use by another process (`ss -ltnp 'sport = :{port}'` shows which): \
             stop it, or choose another port in listeners="
        ),
        Some(libc::EADDRNOTAVAIL) => format!(
            "{address} is not an address of this machine: correct listeners= \
             (advertised.listeners= is the place for an address that clients use)"
        ),
        Some(libc::EACCES | libc::EPERM) => format!(
            "this user may not listen on {address}: ports below 1024 need CAP_NET_BIND_SERVICE; \
             choose another port in listeners="
        ),
        _ => format!("cannot listen on {address}: {error}"),
    }
}
