//! The interval log of the latency histograms (`coreline.latency.log`): every ten seconds a row for
//! each API key and stage, in HdrHistogram's own form. Written by a thread of its own, since a disk
//! that stalls must not hold up the admin port.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::metrics::Recorded;
use crate::metrics::export::{hlog_head, hlog_row};
use crate::wire::api;

/// The span of one row.
const INTERVAL: Duration = Duration::from_secs(10);
/// Past this size the file is set aside as `NAME.1`, in place of an older one, and begun anew.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Gathers what the next rows tell.
pub struct LatencyLog {
    path: PathBuf,
    gathered: Recorded,
    began: (Instant, Duration),
    is_begun: bool,
}

/// Rows to be written.
pub struct Rows {
    path: PathBuf,
    /// When their span began, since the epoch.
    began: Duration,
    text: String,
    is_first: bool,
}

fn since_epoch() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

impl LatencyLog {
    /// A log in this file.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            gathered: Recorded::default(),
            began: (Instant::now(), since_epoch()),
            is_begun: false,
        }
    }

    /// A shard has told this.
    pub fn add(&mut self, recorded: &Recorded) {
        self.gathered.merge(recorded);
    }

    /// The rows that are due.
    pub fn take_rows(&mut self, is_last: bool) -> Option<Rows> {
        let length = self.began.0.elapsed();
        if length < INTERVAL && !is_last {
            return None;
        }
        let span = (self.began.1, length);
        let mut text = String::new();
        for (key, histogram) in self.gathered.requests() {
            let name = api::find(key).map_or("unknown", |api| api.name);
            text += &hlog_row(name, span, histogram).unwrap_or_default();
        }
        for (stage, histogram) in self.gathered.stages() {
            let tag = format!("stage:{}", stage.name());
            text += &hlog_row(&tag, span, histogram).unwrap_or_default();
        }
        self.gathered.clear();
        self.began = (Instant::now(), since_epoch());
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        Some(Rows {
            path: self.path.clone(),
            began: span.0,
            text,
            is_first,
        })
    }
}

impl Rows {
    /// Appends them to the file. Blocks.
    pub fn write(&self) {
        if let Err(error) = self.append() {
            tracing::warn!("coreline.latency.log {}: {error}", self.path.display());
        }
    }

    fn append(&self) -> std::io::Result<()> {
        let path = &self.path;
        let length = std::fs::metadata(path).map_or(0, |found| found.len());
        let is_full = length > FILE_BYTES_MAX;
        if is_full {
            let mut aside = path.as_os_str().to_owned();
            aside.push(".1");
            std::fs::rename(path, aside)?;
        }
        let mut file: File = OpenOptions::new().create(true).append(true).open(path)?;
        if self.is_first || is_full || length == 0 {
            // Readers leave out what began before the file did.
            file.write_all(hlog_head(self.began).as_bytes())?;
        }
        file.write_all(self.text.as_bytes())
    }
}
