//! Deletes the first records of a partition when a client asks for it
//! (`Partition.deleteRecordsOnLeader`).

use super::error::PartitionError;
use super::leadership::LeaderOnly;
use super::replica::Partition;
use std::time::Duration;

use crate::base::ids::{LeaderEpoch, Offset};
use crate::io;

/// Stands for the high watermark (`DeleteRecordsRequest.HIGH_WATERMARK`).
const HIGH_WATERMARK: Offset = Offset(-1);

/// How long a deletion waits while the partition changes its log directory.
const CHANGE_WAIT: Duration = Duration::from_secs(30);

impl Partition {
    /// Moves the start of the log to `offset`, durably; never back. Answers where it starts now.
    /// Segments that lie before it go at the next look for old ones.
    ///
    /// # Errors
    /// [`PartitionError`] when this broker does not lead, the topic is only compacted, the offset
    /// is no place up to the high watermark, or the log takes no change.
    pub async fn delete_records(&self, offset: Offset) -> Result<Offset, PartitionError> {
        self.check_reader(LeaderEpoch::NONE, LeaderOnly::Yes)?;
        let config = self.log().config();
        if config.compacted && !config.deletes {
            return Err(PartitionError::NotDeletable);
        }
        let start = match offset {
            HIGH_WATERMARK => self.high_watermark(),
            offset => offset,
        };
        if start < Offset(0) || start > self.high_watermark() {
            return Err(PartitionError::OffsetOutOfRange);
        }
        let change = self.begin_change(io::now().after(CHANGE_WAIT)).await;
        let _change = change.ok_or(PartitionError::TimedOut)?;
        let before = self.log().log_start_offset();
        let after = self.log().advance_log_start(start).await?;
        if after > before {
            // A fetch that waits for more bytes than it has found may be left without any.
            self.wake_everyone();
        }
        Ok(after)
    }
}
