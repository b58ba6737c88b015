//! The journal of one shard: a ring of files, overwritten in place, through which all its logs
//! become durable together (JOURNAL §3).
//!
//! | File | What |
//! |---|---|
//! | `sizes` | how large ring, cycles and shares are (pure) |
//! | `record`, `cycle` | the bytes (pure) |
//! | `queue` | what one log has queued, in its one order |
//! | `plan` | which queued records make the next cycle (pure) |
//! | `ring` | the files on disk |
//! | `ring_list` | which files there must be |
//! | `room` | what may still be admitted, and which file is reused next (pure) |
//! | `state` | what a journal keeps in memory |
//! | `writer` | the loop: build, write, complete in order |
//! | `witness` | how far it was flushed, for recovery to miss what is gone |
//! | `release` | freeing the oldest file: write back, copy forward, watermark, confirm |

pub mod cycle;
mod pace;
mod plan;
mod queue;
pub mod record;
mod release;
mod ring;
mod ring_list;
mod room;
pub mod sizes;
mod state;
mod witness;
mod writer;

pub(crate) use queue::{Done, Entry, JournalQueue, Signal};
pub(crate) use release::Copied;
pub(crate) use ring::{JOURNAL_FOLDER, RING_FILE_PREFIX, ring_path, shard_folder};
pub(crate) use ring_list::{ListedFile, RING_FILE_NAME, list_path, load as load_ring_list};
pub(crate) use room::reservation;
pub(crate) use witness::load as load_flushed;
pub(crate) use writer::{Journal, JournalOptions};

use std::rc::Rc;

use super::error::LogError;
use super::partition_log::Log;

/// One log in one ring file: what must be durable elsewhere before the file is reused.
#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) log: Rc<Log>,
    pub(crate) segment_base: i64,
    pub(crate) end_position: u64,
}

impl Claim {
    /// Takes in a later record of the same log.
    pub(crate) fn extend(&mut self, segment_base: i64, end_position: u64) {
        if (segment_base, end_position) > (self.segment_base, self.end_position) {
            self.segment_base = segment_base;
            self.end_position = end_position;
        }
    }
}

/// Shorthand of the layer.
pub(crate) type Result<T> = std::result::Result<T, LogError>;
