//! What a data directory's file system can do and what it promises.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::Refusal;
use crate::base::limits::BLOCK_BYTES;
use crate::io::buffer::AlignedBuffer;

/// Direct I/O in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectIo {
    /// Reads and writes of aligned blocks of 4 KiB work.
    Supported,
    /// Files will be buffered by the kernel; the text says so to the operator.
    Buffered(String),
    /// It could not be tried because the disk is full; the text says so to the operator.
    Unknown(String),
}

/// Tries a direct write and read in `folder`, in a file that it removes again.
pub fn direct_io(folder: &Path) -> Result<DirectIo, Refusal> {
    let path = folder.join(format!(".coreline-probe-{}", std::process::id()));
    let tried = try_direct(&path);
    // Whatever happened, the probe must not stay.
    let _ = fs::remove_file(&path);
    judge(folder, tried)
}

pub(super) fn judge(folder: &Path, tried: io::Result<()>) -> Result<DirectIo, Refusal> {
    match tried {
        Ok(()) => Ok(DirectIo::Supported),
        // Recovery names the room that it needs and waits for it; what is there can be read.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(DirectIo::Unknown(format!(
            "the file system of {} is full; delete topics or make it larger.",
            folder.display()
        ))),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Ok(DirectIo::Buffered(format!(
                "{} has no direct I/O in blocks of {BLOCK_BYTES} bytes: the kernel's page cache is \
                 used, which costs CPU and memory; prefer ext4 or XFS on a local disk.",
                folder.display()
            )))
        }
        Err(error) => Err(Refusal(format!(
            "Cannot write in {}: {error}. Give the broker's user a directory that it may write to \
             (log.dirs=).",
            folder.display()
        ))),
    }
}

fn try_direct(path: &Path) -> io::Result<()> {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?) | OFlag::O_DIRECT;
    fcntl(&file, FcntlArg::F_SETFL(flags))?;
    let mut block = AlignedBuffer::zeroed(BLOCK_BYTES);
    file.write_all_at(&block, 0)?;
    file.read_exact_at(&mut block, 0)
}

/// The kind of a file system, as far as durability depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// For people: "ext4", "xfs", …
    pub name: String,
    /// What is not promised after a power cut, and why; `None` when all is.
    pub notice: Option<String>,
}

/// Looks at the file system that holds `path`. The promise that acknowledged records survive a
/// power cut is made for ext4 with a journal and for XFS.
pub fn file_system(path: &Path) -> io::Result<FileSystem> {
    let magic = magic(path)?;
    let journal = || ext4_has_journal(path);
    Ok(describe(magic, journal))
}

pub(super) fn describe(magic: i64, has_journal: impl FnOnce() -> bool) -> FileSystem {
    let (name, reason) = match magic {
        0xEF53 if has_journal() => ("ext4", None),
        0xEF53 => ("ext4", Some("it has no journal (mkfs.ext4 -O has_journal)")),
        0x5846_5342 => ("xfs", None),
        0x0102_1994 => ("tmpfs", Some("it lives in memory")),
        0x794C_7630 => (
            "overlayfs",
            Some("it is a container's own layer: mount a volume"),
        ),
        0x9123_683E => ("btrfs", Some("copy-on-write writes blocks anew")),
        0x2FC1_2FC1 => ("zfs", Some("copy-on-write writes blocks anew")),
        0xF2F5_2010 => ("f2fs", Some("it writes blocks anew")),
        0x6969 => ("nfs", Some("it lies on another machine")),
        _ => ("an unknown file system", Some("it was never tested")),
    };
    let notice = reason.map(|reason| {
        format!(
            "{name} is not covered by the promise that acknowledged records survive a power cut: \
             {reason}. They survive the process as everywhere."
        )
    });
    FileSystem {
        name: name.to_owned(),
        notice,
    }
}

fn magic(path: &Path) -> io::Result<i64> {
    let path = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: statfs fills a plain structure, for which zeros are valid, and reads a C string.
    let (result, answer) = unsafe {
        let mut answer = std::mem::zeroed::<libc::statfs>();
        (libc::statfs(path.as_ptr(), &raw mut answer), answer)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(answer.f_type)
}

/// ext4 with a journal has a folder `/proc/fs/jbd2/<device>-<inode>`.
fn ext4_has_journal(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else {
        return false;
    };
    let device = metadata.dev();
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let Ok(link) = fs::read_link(format!("/sys/dev/block/{major}:{minor}")) else {
        return false;
    };
    let Some(name) = link.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let prefix = format!("{name}-");
    fs::read_dir("/proc/fs/jbd2").is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
    })
}
