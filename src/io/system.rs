//! System calls on files and names that every backend makes alike: on the pool, or at once where
//! the call cannot block.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::statvfs::FsFlags;

use super::directory::{DirectoryEntry, Metadata, Space};
use super::driver::{Completion, DirectoryOperation};
use super::file::OpenOptions;
use crate::base::time::TimestampMs;

pub(super) fn try_lock(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: flock takes a descriptor, which is open while it is borrowed, and no memory. (The
    // `nix` wrapper owns the descriptor and gives the lock up with it.)
    let result = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Opens a file close-on-exec; answers whether direct I/O is in effect. What is no regular file is
/// refused at once: a pipe would wait for its other end, and a device has no size.
pub(super) fn open(path: &Path, options: OpenOptions) -> io::Result<(OwnedFd, bool)> {
    let mut open = fs::OpenOptions::new();
    open.read(true)
        .write(options.write)
        .custom_flags(libc::O_NONBLOCK);
    if options.write {
        open.create(options.create)
            .create_new(options.create_new)
            .truncate(options.truncate);
    }
    let file = open.open(path)?;
    if !file.metadata()?.is_file() {
        let message = format!("{} is not a regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let file = OwnedFd::from(file);
    // Asked for after the open: where the file system has none, an open with O_DIRECT fails but
    // may have created the file.
    let direct = options.direct && set_flags(&file, OFlag::O_DIRECT).is_ok();
    if !direct {
        set_flags(&file, OFlag::empty())?;
    }
    Ok((file, direct))
}

/// Sets those flags of an open file that can be changed, and takes all others back: with
/// O_NONBLOCK the ring would answer "not now" instead of waiting for the disk.
fn set_flags(file: &OwnedFd, flags: OFlag) -> io::Result<()> {
    fcntl(file.as_fd(), FcntlArg::F_SETFL(flags))?;
    Ok(())
}

pub(super) fn truncate(file: BorrowedFd<'_>, len: u64) -> io::Result<()> {
    let len = i64::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(nix::unistd::ftruncate(file, len)?)
}

pub(super) fn length(file: BorrowedFd<'_>) -> io::Result<u64> {
    let stat = nix::sys::stat::fstat(file)?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

/// syncfs, and what it leaves open. It answers "nothing to do" where an error has made the file
/// system read-only; before Linux 5.17 it drops what the file system itself answers; XFS flushes no
/// cache of the device where its own log has nothing to write. A flush of one regular file answers
/// and does all three, and what btrfs keeps to itself shows as a read-only mount.
pub(super) fn sync_filesystem(file: BorrowedFd<'_>) -> io::Result<()> {
    nix::unistd::syncfs(file)?;
    nix::unistd::fsync(file)?;
    let mount = nix::sys::statvfs::fstatvfs(file)?;
    if mount.flags().contains(FsFlags::ST_RDONLY) {
        return Err(io::Error::from_raw_os_error(libc::EROFS));
    }
    Ok(())
}

pub(super) fn run_directory(operation: DirectoryOperation) -> Completion {
    let result = match operation {
        DirectoryOperation::List(path) => return Completion::Listed(list(&path)),
        DirectoryOperation::Metadata(path) => return Completion::Described(describe(&path)),
        DirectoryOperation::Space(path) => return Completion::Room(space(&path)),
        DirectoryOperation::SetModified { path, modified } => set_modified(&path, modified),
        DirectoryOperation::Create(path) => fs::create_dir(path),
        DirectoryOperation::CreateAll(path) => fs::create_dir_all(path),
        DirectoryOperation::Rename { from, to } => fs::rename(from, to),
        DirectoryOperation::RemoveFile(path) => fs::remove_file(path),
        DirectoryOperation::RemoveAll(path) => fs::remove_dir_all(path),
        DirectoryOperation::Sync(path) => fs::File::open(path).and_then(|file| file.sync_all()),
    };
    Completion::Done(result)
}

fn list(path: &Path) -> io::Result<Vec<DirectoryEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        // What vanished between the listing and the look is left out.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let is_directory = if kind.is_symlink() {
            fs::metadata(entry.path()).is_ok_and(|target| target.is_dir())
        } else {
            kind.is_dir()
        };
        entries.push(DirectoryEntry { name, is_directory });
    }
    entries.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(entries)
}

fn describe(path: &Path) -> io::Result<Metadata> {
    let metadata = fs::metadata(path)?;
    Ok(Metadata {
        len: metadata.len(),
        is_directory: metadata.is_dir(),
        modified: TimestampMs(
            metadata
                .mtime()
                .saturating_mul(1_000)
                .saturating_add(metadata.mtime_nsec() / 1_000_000),
        ),
    })
}

fn set_modified(path: &Path, modified: TimestampMs) -> io::Result<()> {
    let since = u64::try_from(modified.0).ok().map(Duration::from_millis);
    let time = since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
    let Some(time) = time else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    fs::File::open(path)?.set_modified(time)
}

fn space(path: &Path) -> io::Result<Space> {
    let room = nix::sys::statvfs::statvfs(path)?;
    Ok(Space {
        total_bytes: room.blocks() * room.fragment_size(),
        available_bytes: room.blocks_available() * room.fragment_size(),
    })
}
