//! Files over glommio's, with our own handling of short reads, short writes and buffers.
//!
//! glommio takes and gives buffers of its own only, so that every read and write costs a copy here
//! that our driver does not have. It knows no RWF_DSYNC either: stable writes go through a second
//! descriptor of the same file, opened with O_DSYNC by the first such write.

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::rc::Rc;

use ::glommio::GlommioError;
use ::glommio::io::{BufferedFile, DmaFile, ReadResult};

use super::handles::Resource;
use super::operation::on_pool;
use super::{Core, system_error};
use crate::io::buffer::AlignedBuffer;
use crate::io::driver::Opened;
use crate::io::file::{Durability, OpenOptions};
use crate::io::system;

/// How often an operation is tried again when the kernel says "interrupted" or "not now".
const RETRIES_MAX: u16 = 1_000;
/// A direct read that ends between two multiples of this has met the end of the file.
const SECTOR_BYTES: usize = 512;

enum Descriptor {
    Direct(DmaFile),
    Buffered(BufferedFile),
}

/// An open file.
pub(super) struct OpenFile {
    descriptor: Descriptor,
    writable: bool,
    /// The same file with O_DSYNC, once it was needed.
    stable: OnceCell<Descriptor>,
}

impl OpenFile {
    pub(super) async fn open(
        core: &Core,
        path: PathBuf,
        options: OpenOptions,
    ) -> io::Result<Opened> {
        let (file, direct) = on_pool(move || system::open(&path, options)).await?;
        let descriptor = if direct {
            Descriptor::reopen(file.as_raw_fd(), options.write, true, 0).await?
        } else {
            // SAFETY: a file that we own and hand over here.
            Descriptor::Buffered(unsafe { BufferedFile::from_raw_fd(file.into_raw_fd()) })
        };
        let direct = matches!(descriptor, Descriptor::Direct(_));
        let file = Rc::new(Self {
            descriptor,
            writable: options.write,
            stable: OnceCell::new(),
        });
        let handle = core.insert(Resource::File(file));
        Ok(Opened { handle, direct })
    }

    pub(super) fn with_descriptor<T>(&self, act: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        // SAFETY: open for as long as this file lives, which we borrow.
        act(unsafe { BorrowedFd::borrow_raw(self.descriptor.raw()) })
    }

    /// Runs a system call on the pool, on a duplicate: this one may close meanwhile.
    pub(super) async fn on_pool(
        &self,
        call: impl FnOnce(OwnedFd) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let duplicate = self.with_descriptor(|file| file.try_clone_to_owned())?;
        on_pool(move || call(duplicate)).await
    }

    pub(super) async fn sync(&self, metadata: bool) -> io::Result<()> {
        if metadata {
            return self.on_pool(|file| Ok(nix::unistd::fsync(file)?)).await;
        }
        let synced = match &self.descriptor {
            Descriptor::Direct(file) => file.fdatasync().await,
            Descriptor::Buffered(file) => file.fdatasync().await,
        };
        synced.map_err(system_error)
    }

    /// Fills the buffer, short only at the end of the file.
    pub(super) async fn read(
        &self,
        position: u64,
        buffer: &mut AlignedBuffer,
    ) -> io::Result<usize> {
        let mut filled = 0;
        let mut retries = 0;
        while filled < buffer.len() {
            let left = buffer.len() - filled;
            let read = self.descriptor.read(position + filled as u64, left).await;
            let Some(bytes) = unless_momentary(read, &mut retries)? else {
                continue;
            };
            let count = bytes.len().min(left);
            buffer[filled..filled + count].copy_from_slice(&bytes[..count]);
            filled += count;
            let ended = self.is_direct() && !count.is_multiple_of(SECTOR_BYTES);
            if count == 0 || ended {
                break;
            }
        }
        Ok(filled)
    }

    /// Writes the whole buffer.
    pub(super) async fn write(
        &self,
        position: u64,
        buffer: &AlignedBuffer,
        durability: Durability,
    ) -> io::Result<()> {
        let descriptor = match durability {
            Durability::Written => &self.descriptor,
            Durability::Stable => self.stable().await?,
        };
        let mut written = 0;
        let mut retries = 0;
        while written < buffer.len() {
            let rest = &buffer[written..];
            let wrote = descriptor.write(position + written as u64, rest).await;
            match unless_momentary(wrote, &mut retries)? {
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(count) => written += count,
                None => {}
            }
        }
        Ok(())
    }

    fn is_direct(&self) -> bool {
        matches!(self.descriptor, Descriptor::Direct(_))
    }

    async fn stable(&self) -> io::Result<&Descriptor> {
        if let Some(stable) = self.stable.get() {
            return Ok(stable);
        }
        let raw = self.descriptor.raw();
        let opened =
            Descriptor::reopen(raw, self.writable, self.is_direct(), libc::O_DSYNC).await?;
        // Another write may have been faster: then its descriptor serves both.
        Ok(self.stable.get_or_init(|| opened))
    }
}

impl Descriptor {
    /// Opens the file of a descriptor once more, by the name that the kernel gives every open
    /// descriptor: the path may name another file by now, and glommio panics when it names none.
    async fn reopen(raw: RawFd, write: bool, direct: bool, flags: i32) -> io::Result<Self> {
        let path = format!("/proc/self/fd/{raw}");
        let mut options = ::glommio::io::OpenOptions::new();
        options.read(true).write(write).custom_flags(flags);
        let opened = if direct {
            options.dma_open(path).await.map(Self::Direct)
        } else {
            options.buffered_open(path).await.map(Self::Buffered)
        };
        opened.map_err(system_error)
    }

    fn raw(&self) -> RawFd {
        match self {
            Self::Direct(file) => file.as_raw_fd(),
            Self::Buffered(file) => file.as_raw_fd(),
        }
    }

    async fn read(&self, position: u64, len: usize) -> Result<ReadResult, GlommioError<()>> {
        match self {
            Self::Direct(file) => file.read_at_aligned(position, len).await,
            Self::Buffered(file) => file.read_at(position, len).await,
        }
    }

    async fn write(&self, position: u64, bytes: &[u8]) -> Result<usize, GlommioError<()>> {
        match self {
            Self::Direct(file) => {
                let mut buffer = file.alloc_dma_buffer(bytes.len());
                buffer.as_bytes_mut()[..bytes.len()].copy_from_slice(bytes);
                file.write_at(buffer, position).await
            }
            Self::Buffered(file) => file.write_at(bytes.to_vec(), position).await,
        }
    }
}

/// `None` when the same should be tried once more.
fn unless_momentary<T>(
    result: Result<T, GlommioError<()>>,
    retries: &mut u16,
) -> io::Result<Option<T>> {
    match result.map_err(system_error) {
        Ok(value) => {
            *retries = 0;
            Ok(Some(value))
        }
        Err(error) => {
            let momentary = [io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock];
            *retries += 1;
            if momentary.contains(&error.kind()) && *retries <= RETRIES_MAX {
                return Ok(None);
            }
            Err(error)
        }
    }
}
