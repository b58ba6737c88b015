//! TCP sockets with owned buffers.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;

use bytes::{Bytes, BytesMut};

use super::driver::{Completion, Operation};
use super::executor::{self, Core, OpenHandle};
use super::wrong_completion;

/// The owners' end of a socket. When the last of them goes while an operation still waits (its
/// future was dropped), the receiving direction is ended so that the operation completes and the
/// descriptor closes; without this it would stay open until the peer says something.
#[derive(Debug)]
struct Socket {
    open: Rc<OpenHandle>,
}

impl Socket {
    fn new(core: &Rc<Core>, handle: super::driver::Handle) -> Self {
        Self {
            open: OpenHandle::new(core, handle),
        }
    }

    async fn run(&self, operation: Operation) -> Completion {
        let keep = Some(Rc::clone(&self.open) as Rc<dyn std::any::Any>);
        executor::current().submit(operation, keep).await
    }

    /// The runtime that it belongs to, unless that has ended.
    fn core(&self) -> io::Result<Rc<Core>> {
        let core = self.open.core();
        core.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn shutdown(&self, how: Shutdown) {
        let handle = self.open.handle();
        // An error says that the connection is gone already.
        let _ = self
            .core()
            .and_then(|core| core.shutdown_socket(handle, how));
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if Rc::strong_count(&self.open) > 1 {
            self.shutdown(Shutdown::Read);
        }
    }
}

/// A listening socket of this shard (SO_REUSEPORT: every shard has its own on the same port).
#[derive(Debug)]
pub struct TcpListener {
    socket: Socket,
    address: SocketAddr,
}

impl TcpListener {
    /// Binds and listens. The system lets processes of one user share a port silently: probe it
    /// first with a bind that does not share.
    pub fn bind(address: SocketAddr, backlog: u32) -> io::Result<Self> {
        let core = executor::current();
        let (handle, address) = core.listen(address, backlog)?;
        Ok(Self {
            socket: Socket::new(&core, handle),
            address,
        })
    }

    /// The address in force, with the port that the system chose for port 0.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    /// The next connection, TCP_NODELAY set.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let core = executor::current();
        let listener = self.socket.open.handle();
        match self.socket.run(Operation::Accept { listener }).await {
            Completion::Accepted(result) => {
                let (handle, address) = result?;
                Ok((TcpStream::new(&core, handle), address))
            }
            other => wrong_completion(&other),
        }
    }

    /// Stops accepting: an accept under way answers an error.
    pub fn shutdown(&self) {
        self.socket.shutdown(Shutdown::Both);
    }
}

/// A connected socket. Clones share the descriptor, so that one task reads and another writes; it
/// closes with the last clone and the last operation.
#[derive(Clone, Debug)]
pub struct TcpStream {
    socket: Rc<Socket>,
}

impl TcpStream {
    fn new(core: &Rc<Core>, handle: super::driver::Handle) -> Self {
        Self {
            socket: Rc::new(Socket::new(core, handle)),
        }
    }

    /// Connects (tests and tools).
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        let core = executor::current();
        match core.submit(Operation::Connect { address }, None).await {
            Completion::Connected(result) => result.map(|handle| Self::new(&core, handle)),
            other => wrong_completion(&other),
        }
    }

    /// Receives into the spare capacity of `buffer` and lengthens it by what came; 0 at the end of
    /// the stream. Asserts that there is spare capacity: without it 0 would look like the end.
    pub async fn receive(&self, buffer: BytesMut) -> (io::Result<usize>, BytesMut) {
        assert!(
            buffer.len() < buffer.capacity(),
            "receive without spare capacity"
        );
        let socket = self.socket.open.handle();
        let operation = Operation::Receive { socket, buffer };
        match self.socket.run(operation).await {
            Completion::Received(result, buffer) => (result, buffer),
            other => wrong_completion(&other),
        }
    }

    /// Sends all slices in order by vectored sends; short sends are continued. One at a time: the
    /// next send of a stream begins after this one's end.
    pub async fn send_vectored(&self, slices: Vec<Bytes>) -> io::Result<()> {
        let socket = self.socket.open.handle();
        match self.socket.run(Operation::Send { socket, slices }).await {
            Completion::Done(result) => result,
            other => wrong_completion(&other),
        }
    }

    /// Ends both directions; a receive under way answers 0.
    pub fn shutdown(&self) {
        self.socket.shutdown(Shutdown::Both);
    }

    /// Ends the sending direction: the peer reads the end of the stream.
    pub fn finish(&self) {
        self.socket.shutdown(Shutdown::Write);
    }

    /// Bounds the kernel's buffers (`socket.send.buffer.bytes`, `socket.receive.buffer.bytes`);
    /// `None` leaves the system's choice.
    pub fn set_buffer_sizes(&self, send: Option<usize>, receive: Option<usize>) -> io::Result<()> {
        let handle = self.socket.open.handle();
        let core = self.socket.core()?;
        core.set_buffer_sizes(handle, send, receive)
    }
}
