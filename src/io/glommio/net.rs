//! Sockets over glommio's.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};

use ::glommio::net::TcpStream;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_lite::io::{AsyncRead, AsyncWrite};

use super::handles::Resource;
use super::{Core, system_error};
use crate::io::driver::Handle;

/// Slices of one vectored send (IOV_MAX is 1,024).
const SLICES_MAX: usize = 256;

pub(super) async fn accept(core: &Core, handle: Handle) -> io::Result<(Handle, SocketAddr)> {
    let listener = match core.handles.borrow().get(handle) {
        Resource::Listener(listener) => Rc::clone(listener),
        _ => panic!("handle {} is no listener", handle.0),
    };
    loop {
        let accepted = listener.listener.shared_accept().await;
        // Bound at once: what was accepted does not close by itself.
        let stream = accepted.map_err(system_error)?.bind_to_executor();
        // Without an address the peer is gone already.
        if let Ok(address) = stream.peer_addr() {
            let handle = core.insert(Resource::stream(stream));
            return Ok((handle, address));
        }
    }
}

pub(super) async fn connect(core: &Core, address: SocketAddr) -> io::Result<Handle> {
    let stream = TcpStream::connect(address).await.map_err(system_error)?;
    stream.set_nodelay(true).map_err(system_error)?;
    Ok(core.insert(Resource::stream(stream)))
}

fn stream_of(core: &Core, handle: Handle) -> Rc<RefCell<TcpStream>> {
    match core.handles.borrow().get(handle) {
        Resource::Stream(stream) => Rc::clone(stream),
        _ => panic!("handle {} is no connection", handle.0),
    }
}

fn is_interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

pub(super) async fn receive(
    core: &Core,
    handle: Handle,
    mut buffer: BytesMut,
) -> (io::Result<usize>, BytesMut) {
    let stream = stream_of(core, handle);
    let received = poll_fn(|context| {
        loop {
            let spare = buffer.spare_capacity_mut();
            // SAFETY: glommio hands the slice to recv(2), which writes to it and never reads it.
            let spare = unsafe {
                std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast::<u8>(), spare.len())
            };
            let mut stream = stream.borrow_mut();
            match ready!(Pin::new(&mut *stream).poll_read(context, spare)) {
                Err(error) if is_interrupted(&error) => {}
                other => return Poll::Ready(other),
            }
        }
    })
    .await;
    if let Ok(count) = received {
        // SAFETY: recv(2) has written that many bytes to the spare capacity.
        unsafe { buffer.advance_mut(count) };
    }
    (received, buffer)
}

pub(super) async fn send(core: &Core, handle: Handle, mut slices: Vec<Bytes>) -> io::Result<()> {
    let stream = stream_of(core, handle);
    let mut first = 0;
    loop {
        while slices.get(first).is_some_and(Bytes::is_empty) {
            first += 1;
        }
        let rest = &slices[first..];
        if rest.is_empty() {
            return Ok(());
        }
        let sent = poll_fn(|context| {
            let mut vectors = [IoSlice::new(&[]); SLICES_MAX];
            let count = rest.len().min(SLICES_MAX);
            for (vector, slice) in vectors.iter_mut().zip(rest) {
                *vector = IoSlice::new(slice);
            }
            let mut stream = stream.borrow_mut();
            Pin::new(&mut *stream).poll_write_vectored(context, &vectors[..count])
        })
        .await;
        let mut sent = match sent {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(sent) => sent,
            Err(error) if is_interrupted(&error) => continue,
            Err(error) => return Err(error),
        };
        while sent > 0 {
            let part = sent.min(slices[first].len());
            slices[first].advance(part);
            sent -= part;
            if slices[first].is_empty() {
                first += 1;
            }
        }
        // A fast peer must not keep the others waiting.
        ::glommio::yield_if_needed().await;
    }
}
