//! Open descriptors by handle, and the plain socket calls that never block.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::sys::socket::{
    self, AddressFamily, Backlog, SockFlag, SockProtocol, SockType, SockaddrStorage, sockopt,
};

use crate::io::driver::Handle;

struct Entry {
    descriptor: OwnedFd,
    direct: bool,
    likely_empty: bool,
}

#[derive(Default)]
pub(super) struct HandleTable {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
}

impl HandleTable {
    pub(super) fn insert(&mut self, descriptor: OwnedFd, direct: bool) -> Handle {
        let entry = Some(Entry {
            descriptor,
            direct,
            likely_empty: false,
        });
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = entry;
            return Handle(index);
        }
        self.entries.push(entry);
        Handle(self.entries.len() as u32 - 1)
    }

    pub(super) fn remove(&mut self, handle: Handle) {
        let entry = self.entries[handle.0 as usize].take();
        assert!(entry.is_some(), "handle {} closed twice", handle.0);
        self.free.push(handle.0);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    fn entry(&self, handle: Handle) -> &Entry {
        match self.entries.get(handle.0 as usize) {
            Some(Some(entry)) => entry,
            _ => panic!("handle {} is not open", handle.0),
        }
    }

    pub(super) fn raw(&self, handle: Handle) -> RawFd {
        self.entry(handle).descriptor.as_raw_fd()
    }

    pub(super) fn borrow(&self, handle: Handle) -> BorrowedFd<'_> {
        self.entry(handle).descriptor.as_fd()
    }

    pub(super) fn is_direct(&self, handle: Handle) -> bool {
        self.entry(handle).direct
    }

    /// Whether the last receive found the socket empty afterwards: the next one then waits first
    /// instead of trying in vain.
    pub(super) fn is_likely_empty(&self, handle: Handle) -> bool {
        self.entry(handle).likely_empty
    }

    pub(super) fn set_likely_empty(&mut self, handle: Handle, empty: bool) {
        if let Some(Some(entry)) = self.entries.get_mut(handle.0 as usize) {
            entry.likely_empty = empty;
        }
    }

    pub(super) fn listen(
        &mut self,
        address: SocketAddr,
        backlog: u32,
    ) -> io::Result<(Handle, SocketAddr)> {
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
        Ok((self.insert(listener, false), address))
    }

    pub(super) fn shutdown(&mut self, handle: Handle, how: Shutdown) -> io::Result<()> {
        let how = match how {
            Shutdown::Read => socket::Shutdown::Read,
            Shutdown::Write => socket::Shutdown::Write,
            Shutdown::Both => socket::Shutdown::Both,
        };
        Ok(socket::shutdown(self.raw(handle), how)?)
    }

    pub(super) fn set_buffer_sizes(
        &mut self,
        handle: Handle,
        send: Option<usize>,
        receive: Option<usize>,
    ) -> io::Result<()> {
        let descriptor = self.borrow(handle);
        if let Some(bytes) = send {
            socket::setsockopt(&descriptor, sockopt::SndBuf, &bytes)?;
        }
        if let Some(bytes) = receive {
            socket::setsockopt(&descriptor, sockopt::RcvBuf, &bytes)?;
        }
        Ok(())
    }
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
