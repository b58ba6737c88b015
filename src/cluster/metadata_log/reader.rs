//! A window that moves over a file of batches: a segment or a snapshot.

use std::path::PathBuf;

use bytes::{Bytes, BytesMut};

use super::batch::{self, BATCH_BYTES_MAX, Scan};
use super::error::MetadataLogError;
use crate::base::ids::Offset;
use crate::io::{AlignedBuffer, File, OpenOptions};
use crate::wire::record_batch::BatchHeader;

/// Bytes read at a time.
const READ_BYTES: usize = 1024 * 1024;

/// What comes next in the file.
pub enum Next {
    /// A whole batch.
    Batch(BatchHeader, Bytes),
    /// No batch, and why.
    Bad(String),
    /// Nothing: the file ends.
    End,
}

/// The window.
pub struct BatchReader {
    file: File,
    /// The file.
    pub path: PathBuf,
    /// Its length in bytes when it was opened.
    pub len: u64,
    /// Where the window begins; moved by the caller over each batch that it accepts.
    pub position: u64,
    window_at: u64,
    window: BytesMut,
}

impl BatchReader {
    /// The file at `path` from its start on.
    pub async fn open(path: PathBuf) -> Result<Self, MetadataLogError> {
        let file = File::open(&path, OpenOptions::default())
            .await
            .map_err(MetadataLogError::io("open", &path))?;
        let len = file.len().await;
        let len = len.map_err(MetadataLogError::io("measure", &path))?;
        Ok(Self {
            file,
            path,
            len,
            position: 0,
            window_at: 0,
            window: BytesMut::new(),
        })
    }

    /// Reads `bytes` from `at`, fewer at the end of the file.
    async fn read(&self, at: u64, bytes: usize) -> Result<AlignedBuffer, MetadataLogError> {
        let (result, mut buffer) = self.file.read_at(at, AlignedBuffer::zeroed(bytes)).await;
        let read = result.map_err(MetadataLogError::io("read", &self.path))?;
        buffer.resize_within_capacity(read.min(bytes));
        Ok(buffer)
    }

    /// The next batch.
    pub async fn next(&mut self) -> Result<Next, MetadataLogError> {
        loop {
            let need = match batch::scan(&self.window) {
                Scan::Batch(header) => {
                    let bytes = self.window.split_to(header.total_bytes()).freeze();
                    self.window_at += bytes.len() as u64;
                    return Ok(Next::Batch(header, bytes));
                }
                Scan::Bad(reason) => return Ok(Next::Bad(reason)),
                Scan::More(need) => need,
            };
            let at = self.window_at + self.window.len() as u64;
            let left = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
            let missing = need.saturating_sub(self.window.len());
            if left < missing {
                let is_end = self.window.is_empty() && left == 0;
                let reason = format!("the file ends {} bytes short of a batch", missing - left);
                return Ok(if is_end { Next::End } else { Next::Bad(reason) });
            }
            let buffer = self.read(at, left.min(missing.max(READ_BYTES))).await?;
            if buffer.is_empty() {
                return Ok(Next::Bad(
                    "the file became shorter while it was read".to_owned(),
                ));
            }
            self.window.extend_from_slice(&buffer);
        }
    }

    /// Judges what stands at `position`, which is no batch that could come next: the length of a
    /// torn append, or damage.
    pub async fn judge_end(
        &self,
        durable_to: u64,
        next_offset: Offset,
        reason: String,
    ) -> Result<u64, MetadataLogError> {
        let left = self.len.saturating_sub(self.position);
        let mut is_damage = self.position < durable_to || left > BATCH_BYTES_MAX as u64;
        if !is_damage {
            let rest = self.read(self.position, left as usize).await?;
            is_damage = batch::holds_a_batch_past(&rest, next_offset.plus(1));
        }
        if is_damage {
            return Err(self.damaged(reason));
        }
        Ok(left)
    }

    /// The file is damaged where the window begins.
    pub fn damaged(&self, reason: String) -> MetadataLogError {
        MetadataLogError::Damaged {
            path: self.path.clone(),
            position: self.position,
            reason,
        }
    }
}
