//! The `.lock` file that keeps a second broker out of a data folder.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::StartupError;

/// A lock on a data folder; released when dropped or when the process ends, however it ends.
///
/// It is an open-file-description lock over the whole `.lock` file: it conflicts with the record
/// lock that Apache Kafka takes on the same file, so that neither opens the other's folder.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
    folder: PathBuf,
}

impl DirectoryLock {
    /// Takes it at once or not at all.
    ///
    /// # Errors
    /// [`StartupError::FolderInUse`], [`StartupError::Folder`].
    pub fn take(folder: &Path) -> Result<Self, StartupError> {
        let path = folder.join(".lock");
        let folder_error = |source| StartupError::Folder {
            path: folder.to_owned(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .read(true)
            .open(&path)
            .map_err(folder_error)?;
        Self::lock(file, libc::F_WRLCK, folder)
    }

    /// Keeps brokers out while the folder is only read; others may read it too. A folder without
    /// the file, which any broker makes first, is not made to have one: `None`.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_for_reading(folder: &Path) -> Result<Option<Self>, StartupError> {
        match File::open(folder.join(".lock")) {
            Ok(file) => Self::lock(file, libc::F_RDLCK, folder).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StartupError::Folder {
                path: folder.to_owned(),
                source,
            }),
        }
    }

    fn lock(file: File, kind: libc::c_int, folder: &Path) -> Result<Self, StartupError> {
        match fcntl(&file, FcntlArg::F_OFD_SETLK(&whole_file(kind))) {
            Ok(_) => Ok(Self {
                _file: file,
                folder: folder.to_owned(),
            }),
            Err(Errno::EAGAIN | Errno::EACCES) => Err(StartupError::FolderInUse {
                path: folder.to_owned(),
                holder: holder(&folder.join(".lock")),
            }),
            Err(errno) => Err(StartupError::Folder {
                path: folder.to_owned(),
                source: errno.into(),
            }),
        }
    }
}

impl DirectoryLock {
    /// The folder, as it was named.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn whole_file(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// The process that has the file open, found by its open files: the kernel does not tell the owner
/// of such a lock. Empty when it cannot be seen.
fn holder(path: &Path) -> String {
    let Ok(path) = path.canonicalize() else {
        return String::new();
    };
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let pid = process.file_name().to_string_lossy().into_owned();
        if pid == own || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let open = std::fs::read_dir(process.path().join("fd"));
        let mut links = open.into_iter().flatten().flatten();
        if links.any(|link| std::fs::read_link(link.path()).is_ok_and(|target| target == path)) {
            return format!(" (pid {pid})");
        }
    }
    String::new()
}
