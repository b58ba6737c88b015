//! Removing files that left the log, their blocks a few at a time.
//!
//! A file system gives the blocks of a whole segment back in one go: where it tells the device of
//! them (`discard`), or changes its maps under the locks that writes need, those wait for as long
//! as that takes, 40 ms and more for 256 MiB. So a large file is cut from its end, step by step
//! with pauses, before its name goes. Only where nobody reads it any more: a reader that has it
//! open would miss what is cut; one that reads for long has the file removed at once, whose blocks
//! go when it is done. A crash in between leaves a shorter file, whose name says that it does not
//! count.

use std::io::{ErrorKind, Result as IoResult};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::context::ShardContext;
use super::partition_log::Log;
use crate::base::limits::MIB;
use crate::base::time::MonotonicNs;
use crate::io::{self, File, FileUse, OpenOptions, TaskClass};

/// Given back at a time. At 8 MiB in 10 ms a paced producer beside it does not notice.
const STEP_BYTES: u64 = 8 * MIB as u64;
/// Between two steps of a shard on a directory: 800 MiB a second at most.
const STEP_PAUSE: Duration = Duration::from_millis(10);
/// From a file's last name to its first step at least: an open of it may be under way.
const OPEN_WAIT: Duration = Duration::from_secs(1);
/// How long readers are waited for, and between two looks at them.
const READERS_WAIT: Duration = Duration::from_secs(30);
const READERS_LOOK: Duration = Duration::from_millis(100);

/// Files with their last names.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    pub(crate) paths: Vec<Box<Path>>,
    /// Descriptors by which they may be read still.
    pub(crate) uses: Vec<FileUse>,
}

impl Log {
    /// Removes files that have their last names, after `file.delete.delay.ms`.
    pub(crate) fn remove_later(&self, marked: Marked) {
        let delay = Duration::from_millis(self.config().file_delete_delay_ms);
        let shard = Rc::clone(&self.shard);
        io::spawn(TaskClass::Background, async move {
            io::sleep(delay).await;
            let removal = Removal::new(&shard, delay, marked.uses);
            for path in marked.paths {
                if let Err(error) = removal.remove(&path).await {
                    tell(&path, &error);
                }
            }
        });
    }
}

/// Removes a folder that has its last name: small files at once, else in the background.
pub(crate) async fn remove_folder(
    shard: &Rc<ShardContext>,
    folder: &Path,
    uses: Vec<FileUse>,
) -> IoResult<()> {
    if !has_large_files(folder).await? {
        return io::directory::remove_all(folder).await;
    }
    let (shard, folder) = (Rc::clone(shard), folder.to_owned());
    io::spawn(TaskClass::Background, async move {
        let removal = Removal::new(&shard, Duration::ZERO, uses);
        let removed = async {
            for entry in io::directory::list(&folder).await? {
                if !entry.is_directory {
                    removal.remove(&folder.join(&entry.name)).await?;
                }
            }
            io::directory::remove_all(&folder).await
        };
        if let Err(error) = removed.await {
            tell(&folder, &error);
        }
    });
    Ok(())
}

/// Removes a file in one go.
pub(crate) async fn remove_at_once(path: &Path) {
    if let Err(error) = remove_name(path).await {
        tell(path, &error);
    }
}

/// Files that go together.
struct Removal<'a> {
    shard: &'a ShardContext,
    /// Until then none of them is cut.
    not_before: MonotonicNs,
    uses: Vec<FileUse>,
}

impl<'a> Removal<'a> {
    /// Of files that have had their last names for `marked_for`.
    fn new(shard: &'a ShardContext, marked_for: Duration, uses: Vec<FileUse>) -> Self {
        Self {
            shard,
            not_before: io::now().after(OPEN_WAIT.saturating_sub(marked_for)),
            uses,
        }
    }

    async fn remove(&self, path: &Path) -> IoResult<()> {
        let length = match io::directory::metadata(path).await {
            Ok(metadata) => metadata.len,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if length > STEP_BYTES && self.is_unread().await {
            // What cannot be cut may be removed all the same.
            let _ = self.shorten(path, length).await;
        }
        remove_name(path).await
    }

    /// Waits until nobody has the files open; not for ever.
    async fn is_unread(&self) -> bool {
        io::sleep_until(self.not_before).await;
        let until = self.not_before.after(READERS_WAIT);
        loop {
            if self.uses.iter().all(FileUse::is_over) {
                return true;
            }
            if io::now() >= until {
                return false;
            }
            io::sleep(READERS_LOOK).await;
        }
    }

    async fn shorten(&self, path: &Path, mut length: u64) -> IoResult<()> {
        let options = OpenOptions {
            write: true,
            ..OpenOptions::default()
        };
        let file = File::open(path, options).await?;
        while length > STEP_BYTES {
            let _turn = self.shard.removals.take().await;
            length -= STEP_BYTES;
            file.truncate(length).await?;
            io::sleep(STEP_PAUSE).await;
        }
        Ok(())
    }
}

async fn has_large_files(folder: &Path) -> IoResult<bool> {
    for entry in io::directory::list(folder).await? {
        let path = folder.join(&entry.name);
        if io::directory::metadata(&path).await?.len > STEP_BYTES {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn remove_name(path: &Path) -> IoResult<()> {
    match io::directory::remove_file(path).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn tell(path: &Path, error: &std::io::Error) {
    tracing::warn!(
        "removing {}: {error}; the next start tries again",
        path.display()
    );
}

#[cfg(test)]
#[path = "removal_test.rs"]
mod removal_test;
