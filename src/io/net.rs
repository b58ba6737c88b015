//! TCP sockets with owned buffers.

use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};

/// A listening socket of this shard (SO_REUSEPORT: every shard has its own on the same port).
#[derive(Debug)]
pub struct TcpListener {}

impl TcpListener {
    /// Binds and listens.
    pub fn bind(_address: SocketAddr, _backlog: u32) -> io::Result<Self> {
        unimplemented!()
    }

    /// The address in force, with the port that the system chose for port 0.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        unimplemented!()
    }

    /// The next connection, TCP_NODELAY set.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        unimplemented!()
    }
}

/// A connected socket. Clones share the descriptor, so that one task reads and another writes; it
/// closes with the last clone and the last operation.
#[derive(Clone, Debug)]
pub struct TcpStream {}

impl TcpStream {
    /// Connects (tests and tools).
    pub async fn connect(_address: SocketAddr) -> io::Result<Self> {
        unimplemented!()
    }

    /// Receives into the spare capacity of `buffer` and lengthens it by what came; 0 at the end of
    /// the stream.
    pub async fn receive(&self, _buffer: BytesMut) -> (io::Result<usize>, BytesMut) {
        unimplemented!()
    }

    /// Sends all slices in order by vectored sends; short sends are continued.
    pub async fn send_vectored(&self, _slices: Vec<Bytes>) -> io::Result<()> {
        unimplemented!()
    }

    /// Ends both directions; a receive under way answers 0.
    pub fn shutdown(&self) {
        unimplemented!()
    }

    /// Bounds the kernel's buffers (`socket.send.buffer.bytes`, `socket.receive.buffer.bytes`);
    /// `None` leaves the system's choice.
    pub fn set_buffer_sizes(
        &self,
        _send: Option<usize>,
        _receive: Option<usize>,
    ) -> io::Result<()> {
        unimplemented!()
    }
}
