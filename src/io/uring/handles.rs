//! Open descriptors by handle.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use crate::io::driver::Handle;
use crate::io::socket;
pub(super) use crate::io::socket::{peer_address, set_no_delay, tcp_socket};

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
        let (listener, address) = socket::listen(address, backlog)?;
        Ok((self.insert(listener, false), address))
    }

    pub(super) fn shutdown(&mut self, handle: Handle, how: Shutdown) -> io::Result<()> {
        socket::shutdown(self.borrow(handle), how)
    }

    pub(super) fn set_buffer_sizes(
        &mut self,
        handle: Handle,
        send: Option<usize>,
        receive: Option<usize>,
    ) -> io::Result<()> {
        socket::set_buffer_sizes(self.borrow(handle), send, receive)
    }
}
