//! One operation on its way: how it enters the ring, what a result of the kernel means for it, and
//! how it ends. Short reads, writes and sends go on with the rest.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use bytes::{Buf, Bytes, BytesMut};
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{opcode, squeue};
use nix::sys::socket::{SockaddrLike, SockaddrStorage};

use super::blocking::{self, Blocking};
use super::fault::{FaultPoint, OperationKind};
use super::handles::{self, HandleTable};
use crate::base::limits::SECTOR_BYTES;
use crate::io::buffer::AlignedBuffer;
use crate::io::driver::{Completion, Handle, Operation};
use crate::io::file::Durability;

/// Most bytes of one read or write of the ring; the rest follows.
const TRANSFER_BYTES_MAX: usize = 1 << 30;
/// Most slices of one vectored send (the kernel's UIO_MAXIOV); the rest follows.
pub(super) const SLICES_MAX: usize = 1_024;
/// IORING_RECVSEND_POLL_FIRST: do not try before the socket is ready.
const POLL_FIRST: u16 = 1;

/// A read or write of a range of a file.
pub(super) struct Range {
    descriptor: RawFd,
    direct: bool,
    position: u64,
    buffer: AlignedBuffer,
    done: usize,
}

impl Range {
    fn left(&self) -> usize {
        self.buffer.len() - self.done
    }

    fn len(&self, limit: usize) -> u32 {
        self.left().min(limit).min(TRANSFER_BYTES_MAX) as u32
    }

    /// Direct I/O goes on at a whole sector: what was done of a broken one is done again.
    fn note(&mut self, bytes: usize) {
        self.done += bytes;
        if self.direct && self.left() > 0 {
            self.done -= self.done % SECTOR_BYTES;
        }
    }
}

pub(super) struct Sending {
    descriptor: RawFd,
    slices: Vec<Bytes>,
    /// Slices before this one have gone.
    next: usize,
    /// Both are pointed to by the kernel while the send is in the ring; made for several slices.
    vectors: Vec<libc::iovec>,
    header: Option<Box<libc::msghdr>>,
}

// The variants that are large are the frequent ones; boxing them would cost an allocation each.
#[allow(clippy::large_enum_variant)]
pub(super) enum InFlight {
    Read(Range),
    Write(Range, Durability),
    Sync(RawFd, FsyncFlags),
    Preallocate(RawFd, u64, u64),
    Accept(RawFd),
    Connect(OwnedFd, Box<SockaddrStorage>),
    Receive(Handle, RawFd, BytesMut, bool),
    Send(Sending),
    /// With the pool; never in the ring.
    OnPool,
}

pub(super) enum Prepared {
    Ring(InFlight),
    Pool(Blocking),
    Done(Completion),
}

/// What a result of the kernel means.
pub(super) enum Progress {
    /// Something was done; the rest has to enter the ring.
    More,
    /// Nothing was done, for a reason that passes (errno).
    Again(i32),
    Ended(io::Result<usize>),
}

pub(super) enum Completed {
    Done(Completion),
    /// It has to begin anew.
    Again(InFlight),
}

pub(super) fn prepare(operation: Operation, handles: &HandleTable) -> Prepared {
    let range = |file: Handle, position: u64, buffer: AlignedBuffer| Range {
        descriptor: handles.raw(file),
        direct: handles.is_direct(file),
        position,
        buffer,
        done: 0,
    };
    let operation = match operation {
        Operation::Read {
            file,
            position,
            buffer,
        } => InFlight::Read(range(file, position, buffer)),
        Operation::Write {
            file,
            position,
            buffer,
            durability,
        } => InFlight::Write(range(file, position, buffer), durability),
        Operation::Sync { file, metadata } => {
            let flags = if metadata {
                FsyncFlags::empty()
            } else {
                FsyncFlags::DATASYNC
            };
            InFlight::Sync(handles.raw(file), flags)
        }
        Operation::Preallocate {
            file,
            position,
            len,
        } => InFlight::Preallocate(handles.raw(file), position, len),
        Operation::Accept { listener } => InFlight::Accept(handles.raw(listener)),
        Operation::Connect { address } => match handles::tcp_socket(address) {
            Ok(socket) => InFlight::Connect(socket, Box::new(SockaddrStorage::from(address))),
            Err(error) => return Prepared::Done(Completion::Connected(Err(error))),
        },
        Operation::Receive { socket, buffer } => InFlight::Receive(
            socket,
            handles.raw(socket),
            buffer,
            handles.is_likely_empty(socket),
        ),
        Operation::Send { socket, slices } => {
            return prepare_send(handles.raw(socket), slices);
        }
        other => return blocking::prepare(other, handles),
    };
    match operation {
        InFlight::Read(range) if range.left() == 0 => {
            Prepared::Done(Completion::Read(Ok(0), range.buffer))
        }
        InFlight::Write(range, _) if range.left() == 0 => {
            Prepared::Done(Completion::Written(Ok(()), range.buffer))
        }
        operation => Prepared::Ring(operation),
    }
}

fn prepare_send(descriptor: RawFd, mut slices: Vec<Bytes>) -> Prepared {
    slices.retain(|slice| !slice.is_empty());
    if slices.is_empty() {
        return Prepared::Done(Completion::Done(Ok(())));
    }
    Prepared::Ring(InFlight::Send(Sending {
        descriptor,
        slices,
        next: 0,
        vectors: Vec::new(),
        header: None,
    }))
}

impl Sending {
    fn left(&self) -> impl Iterator<Item = &Bytes> {
        self.slices.iter().skip(self.next)
    }

    /// Drops the bytes that have gone; answers whether all have.
    fn note(&mut self, mut bytes: usize) -> bool {
        while let Some(slice) = self.slices.get_mut(self.next) {
            if bytes < slice.len() {
                slice.advance(bytes);
                return false;
            }
            bytes -= slice.len();
            // Frees the memory early when it is not shared.
            *slice = Bytes::new();
            self.next += 1;
        }
        true
    }

    fn entry(&mut self, limit: usize) -> squeue::Entry {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let descriptor = Fd(self.descriptor);
        if let Some([only]) = self.slices.get(self.next..) {
            let len = only.len().min(limit).min(TRANSFER_BYTES_MAX) as u32;
            return opcode::Send::new(descriptor, only.as_ptr(), len)
                .flags(flags)
                .build();
        }
        self.vectors.clear();
        let mut room = limit;
        for slice in self.slices.iter().skip(self.next).take(SLICES_MAX) {
            if room == 0 {
                break;
            }
            let len = slice.len().min(room);
            room -= len;
            self.vectors.push(libc::iovec {
                iov_base: slice.as_ptr().cast_mut().cast(),
                iov_len: len,
            });
        }
        let header = self.header.get_or_insert_with(|| {
            // SAFETY: a msghdr of zeros is a valid one without name, slices and control data.
            Box::new(unsafe { std::mem::zeroed::<libc::msghdr>() })
        });
        header.msg_iov = self.vectors.as_mut_ptr();
        header.msg_iovlen = self.vectors.len();
        opcode::SendMsg::new(descriptor, &raw const **header)
            .flags(flags as u32)
            .build()
    }
}

impl InFlight {
    /// Whether it ends by itself, as file operations do; sockets wait for a peer.
    pub(super) fn is_file(&self) -> bool {
        matches!(
            self,
            Self::Read(_) | Self::Write(..) | Self::Sync(..) | Self::Preallocate(..)
        )
    }

    /// What to tell a fault hook.
    pub(super) fn fault_point(&self) -> FaultPoint {
        let (kind, len) = match self {
            Self::Read(range) => (OperationKind::Read, range.left()),
            Self::Write(range, _) => (OperationKind::Write, range.left()),
            Self::Sync(..) => (OperationKind::Sync, 0),
            Self::Preallocate(..) => (OperationKind::Preallocate, 0),
            Self::Accept(_) => (OperationKind::Accept, 0),
            Self::Connect(..) => (OperationKind::Connect, 0),
            Self::Receive(_, _, buffer, _) => {
                (OperationKind::Receive, buffer.capacity() - buffer.len())
            }
            Self::Send(sending) => (OperationKind::Send, sending.left().map(Bytes::len).sum()),
            Self::OnPool => unreachable!("never enters the ring"),
        };
        let is_stable = matches!(self, Self::Write(_, Durability::Stable));
        let file = match self {
            Self::Read(range) | Self::Write(range, _) => range.descriptor,
            Self::Sync(file, _) | Self::Preallocate(file, ..) => *file,
            _ => -1,
        };
        FaultPoint {
            kind,
            len,
            is_stable,
            file,
        }
    }

    /// The entry for what is left to do, of at most `limit` bytes. It points into buffers that
    /// `self` owns.
    pub(super) fn entry(&mut self, limit: usize) -> squeue::Entry {
        match self {
            Self::Read(range) => {
                let len = range.len(limit);
                let start = range.buffer.as_mut_ptr().wrapping_add(range.done);
                opcode::Read::new(Fd(range.descriptor), start, len)
                    .offset(range.position + range.done as u64)
                    .build()
            }
            Self::Write(range, durability) => {
                let start = range.buffer.as_ptr().wrapping_add(range.done);
                let flags = match durability {
                    Durability::Written => 0,
                    Durability::Stable => libc::RWF_DSYNC,
                };
                opcode::Write::new(Fd(range.descriptor), start, range.len(limit))
                    .offset(range.position + range.done as u64)
                    .rw_flags(flags)
                    .build()
            }
            Self::Sync(descriptor, flags) => {
                opcode::Fsync::new(Fd(*descriptor)).flags(*flags).build()
            }
            Self::Preallocate(descriptor, position, len) => {
                opcode::Fallocate::new(Fd(*descriptor), *len)
                    .offset(*position)
                    .mode(libc::FALLOC_FL_KEEP_SIZE)
                    .build()
            }
            Self::Accept(descriptor) => {
                let nowhere = std::ptr::null_mut();
                opcode::Accept::new(Fd(*descriptor), nowhere, std::ptr::null_mut())
                    .flags(libc::SOCK_CLOEXEC)
                    .build()
            }
            Self::Connect(socket, address) => {
                let descriptor = Fd(std::os::fd::AsRawFd::as_raw_fd(socket));
                opcode::Connect::new(descriptor, address.as_ptr(), address.len()).build()
            }
            Self::Receive(_, descriptor, buffer, likely_empty) => {
                let spare = buffer.spare_capacity_mut();
                let len = spare.len().min(limit).min(TRANSFER_BYTES_MAX) as u32;
                opcode::Recv::new(Fd(*descriptor), spare.as_mut_ptr().cast(), len)
                    .ioprio(if *likely_empty { POLL_FIRST } else { 0 })
                    .build()
            }
            Self::Send(sending) => sending.entry(limit),
            Self::OnPool => unreachable!("never enters the ring"),
        }
    }

    /// The socket that this receives on.
    pub(super) fn received_on(&self) -> Option<Handle> {
        match self {
            Self::Receive(handle, ..) => Some(*handle),
            _ => None,
        }
    }

    /// What a result of the kernel (bytes, or a negative errno) means.
    pub(super) fn advance(&mut self, result: i32) -> Progress {
        let Ok(count) = usize::try_from(result) else {
            return match -result {
                libc::EINTR | libc::EAGAIN | libc::ECANCELED | libc::ENOBUFS => {
                    Progress::Again(-result)
                }
                errno => Progress::Ended(Err(io::Error::from_raw_os_error(errno))),
            };
        };
        match self {
            Self::Read(range) => {
                let ended = count == 0 || (range.direct && !count.is_multiple_of(SECTOR_BYTES));
                if ended {
                    // The end of the file: direct reads stop within a sector only there.
                    range.done += count;
                    return Progress::Ended(Ok(range.done));
                }
                range.note(count);
                more_or_ended(range)
            }
            Self::Write(range, _) if count == 0 => {
                let message = format!("{} bytes could not be written", range.left());
                Progress::Ended(Err(io::Error::new(io::ErrorKind::WriteZero, message)))
            }
            Self::Write(range, _) => {
                range.note(count);
                more_or_ended(range)
            }
            Self::Send(sending) => {
                if sending.note(count) {
                    Progress::Ended(Ok(0))
                } else {
                    Progress::More
                }
            }
            _ => Progress::Ended(Ok(count)),
        }
    }

    /// How it ended; `count` is what the kernel said last, or all bytes of a read.
    pub(super) fn complete(
        self,
        result: io::Result<usize>,
        handles: &mut HandleTable,
    ) -> Completed {
        let completion = match self {
            Self::Read(range) => Completion::Read(result, range.buffer),
            Self::Write(range, _) => Completion::Written(result.map(drop), range.buffer),
            Self::Sync(..) | Self::Preallocate(..) | Self::Send(_) => {
                Completion::Done(result.map(drop))
            }
            Self::Accept(listener) => return complete_accept(listener, result, handles),
            Self::Connect(socket, _) => {
                let connected = result.and_then(|_| handles::set_no_delay(&socket));
                Completion::Connected(connected.map(|()| handles.insert(socket, false)))
            }
            Self::Receive(_, _, mut buffer, _) => {
                if let Ok(count) = result {
                    // SAFETY: the kernel has written `count` bytes into the spare capacity.
                    unsafe { buffer.set_len(buffer.len() + count) };
                }
                Completion::Received(result, buffer)
            }
            Self::OnPool => unreachable!("never enters the ring"),
        };
        Completed::Done(completion)
    }
}

fn more_or_ended(range: &Range) -> Progress {
    if range.left() == 0 {
        Progress::Ended(Ok(range.done))
    } else {
        Progress::More
    }
}

fn complete_accept(
    listener: RawFd,
    result: io::Result<usize>,
    handles: &mut HandleTable,
) -> Completed {
    let descriptor = match result {
        Ok(descriptor) => descriptor as RawFd,
        // A connection that ended while it waited is no error of the listener.
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
            return Completed::Again(InFlight::Accept(listener));
        }
        Err(error) => return Completed::Done(Completion::Accepted(Err(error))),
    };
    // SAFETY: the kernel made this descriptor for us with the accept.
    let connection = unsafe { OwnedFd::from_raw_fd(descriptor) };
    match handles::peer_address(&connection) {
        Some(address) => {
            let handle = handles.insert(connection, false);
            Completed::Done(Completion::Accepted(Ok((handle, address))))
        }
        None => Completed::Again(InFlight::Accept(listener)),
    }
}
