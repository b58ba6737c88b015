//! Whether the listeners' ports are free, and which address they are.
//!
//! Shards bind with SO_REUSEPORT, which also succeeds beside another broker of the same user: the
//! two would then share the clients between them. So each port is first bound without that option,
//! which fails as long as anybody else listens on it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{self, AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage};

use super::{StartupError, port_owners};
use crate::base::config::{AdminAddress, Listener};

/// How long a port may stay in use: a broker that was told to stop needs a while.
const RELEASE_MAX: Duration = Duration::from_secs(5);
/// How long where no process has it open: it belonged to a killed one, whose rings the kernel takes
/// apart once the disk has answered what was under way.
const ORPHAN_MAX: Duration = Duration::from_secs(60);
/// How long that goes without a word.
const RELEASE_SILENT: Duration = Duration::from_millis(500);
const RELEASE_POLL: Duration = Duration::from_millis(5);
/// How often it is asked which process has a port: that goes through all of them.
const OWNER_POLL: Duration = Duration::from_secs(1);

/// Fills in what the system chooses: ports of 0, hosts that are names, advertised names.
pub(super) fn settle(listeners: &mut [Listener]) -> Result<(), StartupError> {
    // All are held until the last is known, so that two ports of 0 differ.
    let mut held = Vec::with_capacity(listeners.len());
    for listener in listeners {
        let address = resolve(&listener.host, listener.port)?;
        let probe =
            in_time(address, hold).map_err(|source| refusal(address, source, "listeners"))?;
        let bound = probe
            .local_addr()
            .map_err(|source| refusal(address, source, "listeners"))?;
        held.push(probe);
        listener.host = bound.ip().to_string();
        listener.port = bound.port();
        if listener.advertised_port == 0 {
            listener.advertised_port = bound.port();
        }
        if listener.advertised_host.is_empty() {
            listener.advertised_host = own_name();
        }
    }
    Ok(())
}

/// Binds without listening: a client that is connected before anybody serves would be reset when
/// this is dropped. It is refused instead, and tries again.
fn hold(address: SocketAddr) -> io::Result<TcpListener> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let (kind, flags) = (SockType::Stream, SockFlag::SOCK_CLOEXEC);
    let socket = socket::socket(family, kind, flags, SockProtocol::Tcp)?;
    // Connections that an earlier broker closed are no hindrance. Where the system chooses, it
    // chooses a port on which there are none.
    socket::setsockopt(&socket, socket::sockopt::ReuseAddr, &(address.port() != 0))?;
    socket::bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    Ok(socket.into())
}

/// Binds, and tries again for a while where the port is in use: the kernel takes a killed broker's
/// rings apart, and with them its listening sockets, a little after the process has gone.
fn in_time(
    address: SocketAddr,
    bind: fn(SocketAddr) -> io::Result<TcpListener>,
) -> io::Result<TcpListener> {
    let began = Instant::now();
    let mut patience = Patience::default();
    let is_open = || port_owners::is_open(address.port());
    let mut is_told = false;
    loop {
        match bind(address) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && patience.goes_on(began.elapsed(), is_open) =>
            {
                if !is_told && began.elapsed() > RELEASE_SILENT {
                    is_told = true;
                    tracing::info!("waiting for {address}, which is in use");
                }
                std::thread::sleep(RELEASE_POLL);
            }
            outcome => return outcome,
        }
    }
}

/// For how long a port that is in use is waited for.
#[derive(Debug, Default)]
struct Patience {
    /// After which time it was last asked whether a process has the port.
    looked_at: Option<Duration>,
}

impl Patience {
    /// Whether to try again, after this time. `is_open` tells whether a process has the port.
    fn goes_on(&mut self, waited: Duration, is_open: impl FnOnce() -> bool) -> bool {
        if waited < RELEASE_MAX {
            return true;
        }
        if waited >= ORPHAN_MAX {
            return false;
        }
        let is_known = |at: Duration| waited.saturating_sub(at) < OWNER_POLL;
        if self.looked_at.is_some_and(is_known) {
            return true;
        }
        self.looked_at = Some(waited);
        !is_open()
    }
}

/// An empty host stands for all addresses: of both families where the machine has IPv6.
fn resolve(host: &str, port: u16) -> Result<SocketAddr, StartupError> {
    if host.is_empty() {
        let all = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port);
        let has_ipv6 = TcpListener::bind(SocketAddr::new(all.ip(), 0)).is_ok();
        let ipv4 = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
        return Ok(if has_ipv6 { all } else { ipv4 });
    }
    let unknown = |source| StartupError::Host {
        host: host.to_owned(),
        source,
    };
    let mut found = (host, port).to_socket_addrs().map_err(unknown)?;
    found
        .next()
        .ok_or_else(|| unknown(io::ErrorKind::NotFound.into()))
}

/// Binds the admin port. It is held from now on: nobody else listens on it.
pub(super) fn bind_admin(at: &AdminAddress) -> Result<TcpListener, StartupError> {
    let address = resolve(&at.host, at.port)?;
    let bound = in_time(address, TcpListener::bind).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map_err(|source| refusal(address, source, "coreline.admin.listener"))
}

fn refusal(address: SocketAddr, source: io::Error, setting: &'static str) -> StartupError {
    let advice = match source.kind() {
        io::ErrorKind::AddrInUse => {
            "another process has this port (see `ss -ltnp`); stop that one or choose another in"
        }
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need root or CAP_NET_BIND_SERVICE; choose another in"
        }
        _ => "name an address of this machine in",
    };
    StartupError::Port {
        address: address.to_string(),
        source,
        advice,
        setting,
    }
}

/// This machine's name, as other machines would look it up.
fn own_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_port_that_is_held_takes_no_connection_and_is_held_where_nobody_listens() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let held = [hold(any), hold(any)].map(|one| one.expect("free"));
        let [first, second] = held.each_ref().map(|one| one.local_addr().expect("bound"));
        assert_ne!(first, second, "chosen by the system");
        assert!(TcpStream::connect(first).is_err(), "refused");
        drop(held);
        // Closed by the side that listens, its end of the connection lingers.
        let other = TcpListener::bind(first).expect("given up");
        let client = TcpStream::connect(first).expect("connected");
        assert!(hold(first).is_err(), "another's");
        drop((other.accept().expect("one"), other));
        drop(client);
        hold(first).expect("free again");
    }

    /// For how long a port is waited for that a process has from `opened` on, and how often it was
    /// asked.
    fn waited(opened: Duration) -> (Duration, usize) {
        let (mut patience, mut waited, mut looks) = (Patience::default(), Duration::ZERO, 0);
        loop {
            let is_open = || {
                looks += 1;
                waited >= opened
            };
            if !patience.goes_on(waited, is_open) {
                return (waited, looks);
            }
            waited += RELEASE_POLL;
        }
    }

    #[test]
    fn a_port_of_nobody_is_waited_for_longer_and_its_owner_is_looked_for_once_a_second() {
        assert_eq!(waited(Duration::ZERO), (RELEASE_MAX, 1), "another's");
        let seconds = (ORPHAN_MAX - RELEASE_MAX).as_secs() as usize;
        assert_eq!(waited(Duration::MAX), (ORPHAN_MAX, seconds), "nobody's");
        let opened = RELEASE_MAX + RELEASE_POLL;
        let found = RELEASE_MAX + OWNER_POLL;
        assert_eq!(waited(opened), (found, 2), "taken meanwhile");
    }
}
