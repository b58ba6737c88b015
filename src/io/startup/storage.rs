//! What a data directory's file system promises, and who else uses the directory.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
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
}

/// Tries a direct write and read in `folder`, in a file that it removes again.
pub fn direct_io(folder: &Path) -> Result<DirectIo, Refusal> {
    let path = folder.join(format!(".coreline-probe-{}", std::process::id()));
    let tried = try_direct(&path);
    // Whatever happened, the probe must not stay.
    let _ = fs::remove_file(&path);
    match tried {
        Ok(()) => Ok(DirectIo::Supported),
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

/// The exclusive use of a data directory; ends with the value or the process.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

/// Takes the data directory for this process: the lock on its file `.lock`, as Apache Kafka does
/// (`LogManager.lockLogDirs`), and of the kind that a running Apache broker's lock conflicts with.
pub fn lock_directory(folder: &Path) -> Result<DirectoryLock, Refusal> {
    let path = folder.join(".lock");
    let refuse = |reason: String| {
        Err(Refusal(format!(
            "The data directory {} {reason}",
            folder.display()
        )))
    };
    let opened = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) => return refuse(format!("cannot be locked: {}: {error}.", path.display())),
    };
    // SAFETY: a flock of zeros is valid: from byte 0 to the end of the file.
    let mut lock = unsafe { std::mem::zeroed::<libc::flock>() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    match fcntl(&file, FcntlArg::F_OFD_SETLK(&lock)) {
        Ok(_) => {}
        Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EACCES) => {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let holder = match holder.trim().parse::<u32>() {
                Ok(process) => format!(" (process {process})"),
                Err(_) => String::new(),
            };
            return refuse(format!(
                "is in use by another broker{holder}: stop that one, or give this one its own \
                 log.dirs=."
            ));
        }
        Err(error) => return refuse(format!("cannot be locked: {error}.")),
    }
    // For the message above; no harm when it fails.
    let _ = file
        .set_len(0)
        .and_then(|()| write!(file, "{}", std::process::id()));
    Ok(DirectoryLock { _file: file })
}
