//! Socket calls that never block, which every backend makes alike.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{
    self, AddressFamily, Backlog, SockFlag, SockProtocol, SockType, SockaddrStorage, sockopt,
};

/// Binds and listens with SO_REUSEPORT; answers the address in force.
pub(super) fn listen(address: SocketAddr, backlog: u32) -> io::Result<(OwnedFd, SocketAddr)> {
    let listener = tcp_socket(address)?;
    socket::setsockopt(&listener, sockopt::ReuseAddr, &true)?;
    socket::setsockopt(&listener, sockopt::ReusePort, &true)?;
    // Inherited by every accepted connection.
    socket::setsockopt(&listener, sockopt::TcpNoDelay, &true)?;
    socket::bind(listener.as_raw_fd(), &SockaddrStorage::from(address))?;
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    socket::listen(&listener, Backlog::new(backlog).unwrap_or(Backlog::MAXCONN))?;
    let name = socket::getsockname::<SockaddrStorage>(listener.as_raw_fd())?;
    let address = socket_address(&name)
        .ok_or_else(|| io::Error::other("the socket has no internet address"))?;
    Ok((listener, address))
}

pub(super) fn shutdown(descriptor: BorrowedFd<'_>, how: Shutdown) -> io::Result<()> {
    let how = match how {
        Shutdown::Read => socket::Shutdown::Read,
        Shutdown::Write => socket::Shutdown::Write,
        Shutdown::Both => socket::Shutdown::Both,
    };
    Ok(socket::shutdown(descriptor.as_raw_fd(), how)?)
}

pub(super) fn set_buffer_sizes(
    descriptor: BorrowedFd<'_>,
    send: Option<usize>,
    receive: Option<usize>,
) -> io::Result<()> {
    if let Some(bytes) = send {
        socket::setsockopt(&descriptor, sockopt::SndBuf, &bytes)?;
    }
    if let Some(bytes) = receive {
        socket::setsockopt(&descriptor, sockopt::RcvBuf, &bytes)?;
    }
    Ok(())
}

/// A new TCP socket for addresses of this family.
pub(super) fn tcp_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let kind = SockType::Stream;
    Ok(socket::socket(
        family,
        kind,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::Tcp,
    )?)
}

/// The peer of a connection; `None` when it is gone already.
pub(super) fn peer_address(connection: &OwnedFd) -> Option<SocketAddr> {
    let name = socket::getpeername::<SockaddrStorage>(connection.as_raw_fd()).ok()?;
    socket_address(&name)
}

fn socket_address(name: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(address) = name.as_sockaddr_in() {
        return Some(SocketAddr::V4((*address).into()));
    }
    name.as_sockaddr_in6()
        .map(|address| SocketAddr::V6((*address).into()))
}

pub(super) fn set_no_delay(connection: &OwnedFd) -> io::Result<()> {
    Ok(socket::setsockopt(connection, sockopt::TcpNoDelay, &true)?)
}
