//! Whether the listeners' ports are free, and which address they are.
//!
//! Shards bind with SO_REUSEPORT, which also succeeds beside another broker of the same user: the
//! two would then share the clients between them. So each port is first bound without that option,
//! which fails as long as anybody else has it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::time::{Duration, Instant};

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

/// Fills in what the system chooses: ports of 0, hosts that are names, advertised names.
pub(super) fn settle(listeners: &mut [Listener]) -> Result<(), StartupError> {
    // All are held until the last is known, so that two ports of 0 differ.
    let mut held = Vec::with_capacity(listeners.len());
    for listener in listeners {
        let address = resolve(&listener.host, listener.port)?;
        let probe =
            bind_in_time(address).map_err(|source| refusal(address, source, "listeners"))?;
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

/// Binds, and tries again for a while where the port is in use: the kernel takes a killed broker's
/// rings apart, and with them its listening sockets, a little after the process has gone.
fn bind_in_time(address: SocketAddr) -> io::Result<TcpListener> {
    let began = Instant::now();
    let mut is_told = false;
    loop {
        match TcpListener::bind(address) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && (began.elapsed() < RELEASE_MAX
                        || began.elapsed() < ORPHAN_MAX
                            && !port_owners::is_open(address.port())) =>
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
    let bound = bind_in_time(address).and_then(|listener| {
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
