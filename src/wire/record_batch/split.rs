//! Consecutive batches in one buffer, taken apart without a copy.

use bytes::Bytes;

use super::header::{BatchError, BatchHeader};

/// One batch: its parsed header and its bytes, a slice of the buffer it came from.
#[derive(Clone, Debug)]
pub struct BatchSlice {
    /// The parsed header.
    pub header: BatchHeader,
    /// The whole batch, header included.
    pub bytes: Bytes,
}

/// Yields the batches of a buffer in order; after the first fault it yields that fault once and
/// ends. The checksums are not looked at.
#[derive(Clone, Debug)]
pub struct BatchSplitter {
    rest: Bytes,
    failed: bool,
}

/// Takes `bytes` apart into whole batches. A last batch that is cut short (as a fetch answer's may
/// be) shows as [`BatchError::Truncated`].
#[must_use]
pub const fn split_batches(bytes: Bytes) -> BatchSplitter {
    BatchSplitter {
        rest: bytes,
        failed: false,
    }
}

impl BatchSplitter {
    /// The bytes that have not been yielded; after a fault those from the faulty batch on.
    #[must_use]
    pub const fn rest(&self) -> &Bytes {
        &self.rest
    }

    fn next_batch(&mut self) -> Result<BatchSlice, BatchError> {
        let header = BatchHeader::parse(&self.rest)?;
        let need = header.total_bytes();
        if self.rest.len() < need {
            return Err(BatchError::Truncated {
                have: self.rest.len(),
                need,
            });
        }
        let bytes = self.rest.split_to(need);
        Ok(BatchSlice { header, bytes })
    }
}

impl Iterator for BatchSplitter {
    type Item = Result<BatchSlice, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.rest.is_empty() {
            return None;
        }
        let batch = self.next_batch();
        self.failed = batch.is_err();
        Some(batch)
    }
}
