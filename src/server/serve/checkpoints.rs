//! Kafka's checkpoint files while the broker runs, each in its own interval: recovery points, log
//! start offsets, high watermarks. Coreline's own recovery goes by the journal; the files are for
//! tools, and for whoever takes over the folder.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::directories::Directories;
use super::publisher::Publisher;
use crate::base::config::BrokerConfig;
use crate::base::ids::{Offset, PartitionIndex};
use crate::io::{self, TaskClass};
use crate::log::{CheckpointFile, LogError, write_checkpoint};
use crate::shard::Shard;

type Offsets = BTreeMap<(String, PartitionIndex), Offset>;

/// Between two looks how far the cleaner came. Kafka writes the file after each cleaning.
const CLEANED_MS: i64 = 5_000;
/// Between two looks whether a write has ended.
const WAIT_STEP: Duration = Duration::from_millis(2);

/// The tasks that write the files.
pub struct Checkpoints {
    publisher: Rc<Publisher>,
    directories: Vec<PathBuf>,
    /// What was written last in each directory, where the file has nothing else: nothing is written
    /// twice.
    written: RefCell<BTreeMap<(PathBuf, CheckpointFile), Offsets>>,
    is_stopping: Cell<bool>,
    writes: Cell<usize>,
}

impl Checkpoints {
    /// Starts a task for each file with an interval.
    pub fn start(
        publisher: &Rc<Publisher>,
        directories: &Directories,
        config: &BrokerConfig,
    ) -> Rc<Self> {
        let online = directories.online.iter();
        let checkpoints = Rc::new(Self {
            publisher: Rc::clone(publisher),
            directories: online.map(|directory| directory.path.clone()).collect(),
            written: RefCell::default(),
            is_stopping: Cell::new(false),
            writes: Cell::new(0),
        });
        for file in CheckpointFile::ALL {
            let ms = match file {
                CheckpointFile::RecoveryPoints => config.recovery_point_checkpoint_ms,
                CheckpointFile::LogStarts => config.log_start_checkpoint_ms,
                CheckpointFile::HighWatermarks => config.high_watermark_checkpoint_ms,
                CheckpointFile::Cleaned => CLEANED_MS,
            };
            let interval = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
            if interval > Duration::ZERO {
                let task = Rc::clone(&checkpoints).write_from_time_to_time(file, interval);
                io::spawn_detached(TaskClass::Background, task);
            }
        }
        checkpoints
    }

    /// No more is written once this answers: the end of a clean shutdown writes the files itself.
    pub async fn stop(&self) {
        self.is_stopping.set(true);
        while self.writes.get() > 0 {
            io::sleep(WAIT_STEP).await;
        }
    }

    async fn write_from_time_to_time(self: Rc<Self>, file: CheckpointFile, interval: Duration) {
        while !self.is_stopping.get() {
            io::sleep(interval).await;
            for directory in &self.directories {
                self.write(directory, file).await;
            }
        }
    }

    async fn write(&self, directory: &Path, file: CheckpointFile) {
        let Some(offsets) = self.gather(directory, file).await else {
            return;
        };
        let key = (directory.to_owned(), file);
        let is_known = self.written.borrow().get(&key) == Some(&offsets);
        // There is no file without a log that is compacted.
        let is_first = !self.written.borrow().contains_key(&key);
        let is_nothing = file == CheckpointFile::Cleaned && offsets.is_empty() && is_first;
        if is_known || is_nothing || self.is_stopping.get() {
            return;
        }
        self.writes.set(self.writes.get() + 1);
        match write_checkpoint(directory, file, &offsets).await {
            // A line of a log that is not open stays as long as its folder: the next look tells.
            Ok(true) => drop(self.written.borrow_mut().remove(&key)),
            Ok(false) => drop(self.written.borrow_mut().insert(key, offsets)),
            Err(error) => tell(&error),
        }
        self.writes.set(self.writes.get() - 1);
    }

    /// Of all shards; `None` when one is stopping or the directory is offline.
    async fn gather(&self, directory: &Path, file: CheckpointFile) -> Option<Offsets> {
        let mut all = Offsets::new();
        for shard in self.publisher.shards() {
            let directory = directory.to_owned();
            let look = move |shard: Rc<Shard>| async move { offsets_of(&shard, &directory, file) };
            all.extend(self.publisher.run(shard, look).await.await??);
        }
        Some(all)
    }
}

fn tell(error: &LogError) {
    tracing::warn!("a checkpoint file is not up to date: {error}");
}

/// Of one shard's partitions in a directory; a damaged log's lines stay as they are.
fn offsets_of(shard: &Shard, directory: &Path, file: CheckpointFile) -> Option<Offsets> {
    if !shard.logs().is_online(directory) {
        return None;
    }
    let partitions = shard.partitions();
    let sound = partitions
        .iter()
        .filter(|partition| partition.log().directory() == directory)
        .filter(|partition| partition.log().damage().is_none());
    let sound = sound
        .filter(|partition| file != CheckpointFile::Cleaned || partition.log().config().compacted);
    let offset = |partition: &crate::partition::Partition| match file {
        CheckpointFile::RecoveryPoints => partition.log().recovery_point(),
        CheckpointFile::LogStarts => partition.log().log_start_offset(),
        CheckpointFile::HighWatermarks => partition.high_watermark(),
        CheckpointFile::Cleaned => {
            let log = partition.log();
            log.cleaned_to().unwrap_or(log.log_start_offset())
        }
    };
    let line = |partition: &Rc<crate::partition::Partition>| {
        let log = partition.log();
        let identity = log.identity();
        (
            (identity.topic.clone(), identity.partition),
            offset(partition),
        )
    };
    Some(sound.map(line).collect())
}
