//! Many files of one file system made durable together. A few are flushed one by one; where many
//! wait at the same time, one flush of the whole file system (syncfs) serves all that had been
//! written before it began. Each caller has the same promise either way: what it wrote before it
//! asked is on stable storage when it is answered.
//!
//! Errors. fsync tells each descriptor of every write-back of its file that failed since it was
//! opened. syncfs tells a descriptor of every one in the file system, and only once: so the group
//! keeps one descriptor open from before the first write to its end; one opened for each flush
//! would miss what another shard or program had been told before. What failed is not named: it may
//! be another program's file, or one of a process that is gone, for a descriptor is told of a
//! failure before its time too if no syncfs has told anybody (a failed fsync does not count as
//! told). So a failed round fails nobody: all who asked before it ended flush their own file, whose
//! descriptor they opened before they wrote and which is told what that file lost, whoever heard of
//! the round. And rounds are over for good: whoever wrote before the failure and asks after it
//! would not hear of it from a later round.
//!
//! One a log directory and executor; everything that is asked of it must lie in that directory's
//! file system.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};

use super::directory;
use super::file::{File, OpenOptions};
use super::sync::Notify;
use super::task::yield_now;

/// Flushes of single files and directories under way; whoever comes beyond that joins a round.
pub const FLUSHES_ALONE_MAX: usize = 8;

/// A small file to be put in place whole: its path and its bytes.
pub type NewFile = (PathBuf, Vec<u8>);

/// Whether a round served the caller, or it is to flush what it wrote itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// All that was written in the file system before the call is durable.
    Everything,
    /// A flush has failed, so there are no rounds any more.
    Nothing,
}

/// See the head of the module.
#[derive(Debug)]
pub struct FlushGroup {
    /// Any regular file of the file system.
    descriptor: File,
    alone: Cell<usize>,
    /// Rounds begun and ended; they differ by one while a round is under way.
    begun: Cell<u64>,
    ended: Cell<u64>,
    /// Whether rounds are over: some flush has failed.
    is_over: Cell<bool>,
    turn: Notify,
}

/// A flush of one file; counted until dropped.
struct Alone<'a>(&'a FlushGroup);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.alone.set(self.0.alone.get() - 1);
    }
}

/// A round under way.
struct Round<'a>(&'a FlushGroup);

impl Drop for Round<'_> {
    fn drop(&mut self) {
        let group = self.0;
        if group.ended.get() < group.begun.get() {
            // Its leader went away, and with it what the kernel told that once.
            let error = io::Error::other("the flush of the file system was given up");
            group.end_round(Err(error));
        }
        group.turn.notify_all();
    }
}

impl FlushGroup {
    /// A group for what lies in the file system of the regular file `path`, which is created if
    /// it is missing. Nothing that it is to flush may have been written before.
    ///
    /// # Errors
    /// What the file system answers.
    pub async fn open(path: &Path) -> io::Result<Self> {
        let options = OpenOptions {
            write: true,
            create: true,
            ..OpenOptions::default()
        };
        Ok(Self {
            descriptor: File::open(path, options).await?,
            alone: Cell::new(0),
            begun: Cell::new(0),
            ended: Cell::new(0),
            is_over: Cell::new(false),
            turn: Notify::new(),
        })
    }

    /// Rounds that have ended: flushes of the whole file system.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.ended.get()
    }

    /// Makes a file's bytes and size durable.
    ///
    /// # Errors
    /// What the flush of this file answers.
    pub async fn file(&self, file: &File) -> io::Result<()> {
        match self.flush_together().await {
            Some(counted) => counted.settle(file.sync_all().await),
            None => Ok(()),
        }
    }

    /// Makes a directory's names durable.
    ///
    /// # Errors
    /// As [`Self::file`].
    pub async fn names(&self, path: &Path) -> io::Result<()> {
        match self.flush_together().await {
            Some(counted) => counted.settle(directory::sync(path).await),
            None => Ok(()),
        }
    }

    /// Makes durable all that was written in the file system before, if it can.
    pub async fn everything(&self) -> Flushed {
        if self.is_over.get() {
            return Flushed::Nothing;
        }
        self.join().await
    }

    /// As [`directory::write_file_durably`].
    ///
    /// # Errors
    /// What the file system answers.
    pub async fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = (path.to_owned(), bytes.to_vec());
        self.write_files(vec![vec![file]]).await
    }

    /// Puts files of one directory in place, atomically and durably each, stage by stage: no file
    /// of a stage has its name before those of the stage before have theirs durably.
    ///
    /// # Errors
    /// What the file system answers; files of earlier stages may be in place then.
    pub async fn write_files(&self, stages: Vec<Vec<NewFile>>) -> io::Result<()> {
        let mut written = Vec::new();
        for (path, bytes) in stages.iter().flatten() {
            written.push(directory::write_beside(path, bytes).await?);
        }
        if let Some(counted) = self.flush_together().await {
            for (file, _) in &written {
                counted.settle(file.sync_all().await)?;
            }
        }
        let mut temporaries = written.into_iter();
        for stage in &stages {
            let mut parent = None;
            for (path, _) in stage {
                if let Some((file, temporary)) = temporaries.next() {
                    drop(file);
                    directory::rename(&temporary, path).await?;
                }
                parent = path.parent();
            }
            if let Some(parent) = parent {
                self.names(parent).await?;
            }
        }
        Ok(())
    }

    /// Where many wait, a round makes durable what the caller wrote. Where none did, a place
    /// among those that flush on their own.
    async fn flush_together(&self) -> Option<Alone<'_>> {
        let is_round_under_way = self.begun.get() > self.ended.get();
        let is_crowded = is_round_under_way || self.alone.get() >= FLUSHES_ALONE_MAX;
        let joins = is_crowded && !self.is_over.get();
        if joins && self.join().await == Flushed::Everything {
            return None;
        }
        self.alone.set(self.alone.get() + 1);
        Some(Alone(self))
    }

    /// Waits for a round that begins after this call, or leads it.
    async fn join(&self) -> Flushed {
        let own = self.begun.get() + 1;
        // Those who are about to ask come along.
        yield_now().await;
        loop {
            if self.is_over.get() {
                return Flushed::Nothing;
            }
            if self.ended.get() >= own {
                return Flushed::Everything;
            }
            if self.begun.get() > self.ended.get() {
                self.turn.notified().await;
                continue;
            }
            self.begun.set(self.begun.get() + 1);
            let round = Round(self);
            let flushed = self.descriptor.sync_filesystem().await;
            self.end_round(flushed);
            drop(round);
        }
    }

    fn end_round(&self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            tracing::warn!(%error, "flushing the file system failed: files are flushed singly now");
            self.is_over.set(true);
        }
        self.ended.set(self.begun.get());
    }
}

impl Alone<'_> {
    /// A failed flush ends the rounds: the file system would report it again in the next.
    fn settle(&self, outcome: io::Result<()>) -> io::Result<()> {
        // A directory that is gone was not flushed and lost nothing.
        if let Err(error) = &outcome
            && error.kind() != io::ErrorKind::NotFound
        {
            self.0.is_over.set(true);
        }
        outcome
    }
}

#[cfg(test)]
#[path = "flush_group_test.rs"]
mod tests;
