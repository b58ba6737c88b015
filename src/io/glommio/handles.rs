//! Open files and sockets by handle.

use std::cell::RefCell;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use ::glommio::net::{TcpListener, TcpStream};

use super::file::OpenFile;
use crate::io::driver::Handle;
use crate::io::socket;

/// A listener with its descriptor, which glommio does not tell.
pub(super) struct Listener {
    pub(super) listener: TcpListener,
    descriptor: RawFd,
}

#[derive(Clone)]
pub(super) enum Resource {
    File(Rc<OpenFile>),
    Listener(Rc<Listener>),
    /// Not split: each direction borrows it for the length of one poll.
    Stream(Rc<RefCell<TcpStream>>),
}

impl Resource {
    pub(super) fn listener(listener: OwnedFd) -> Self {
        let descriptor = listener.into_raw_fd();
        // SAFETY: a listening socket that we own and hand over here.
        let listener = unsafe { TcpListener::from_raw_fd(descriptor) };
        Self::Listener(Rc::new(Listener {
            listener,
            descriptor,
        }))
    }

    pub(super) fn stream(stream: TcpStream) -> Self {
        Self::Stream(Rc::new(RefCell::new(stream)))
    }

    /// Lends the descriptor of a socket.
    pub(super) fn with_socket<T>(
        &self,
        act: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let descriptor = match self {
            Self::File(_) => return Err(io::Error::from_raw_os_error(libc::ENOTSOCK)),
            Self::Listener(listener) => listener.descriptor,
            Self::Stream(stream) => stream.borrow().as_raw_fd(),
        };
        // SAFETY: open for as long as this resource lives, which we borrow.
        act(unsafe { BorrowedFd::borrow_raw(descriptor) })
    }
}

#[derive(Default)]
pub(super) struct HandleTable {
    resources: Vec<Option<Resource>>,
    free: Vec<u32>,
}

impl HandleTable {
    pub(super) fn insert(&mut self, resource: Resource) -> Handle {
        if let Some(index) = self.free.pop() {
            self.resources[index as usize] = Some(resource);
            return Handle(index);
        }
        self.resources.push(Some(resource));
        Handle(self.resources.len() as u32 - 1)
    }

    pub(super) fn remove(&mut self, handle: Handle) -> Resource {
        match self
            .resources
            .get_mut(handle.0 as usize)
            .and_then(Option::take)
        {
            Some(resource) => {
                self.free.push(handle.0);
                resource
            }
            None => panic!("handle {} closed twice", handle.0),
        }
    }

    pub(super) fn get(&self, handle: Handle) -> &Resource {
        match self.resources.get(handle.0 as usize) {
            Some(Some(resource)) => resource,
            _ => panic!("handle {} is not open", handle.0),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.resources.len() - self.free.len()
    }

    /// Ends all sockets, so that what waits for them completes.
    pub(super) fn shut_down_sockets(&self) {
        for resource in self.resources.iter().flatten() {
            // An error says that it is a file, or that the connection is gone already.
            let _ = resource.with_socket(|fd| socket::shutdown(fd, Shutdown::Both));
        }
    }
}
