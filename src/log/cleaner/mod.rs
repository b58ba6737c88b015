//! The cleaner: of a log whose `cleanup.policy` names compaction it keeps, of every key, the last
//! record (KIP-58, KIP-354, KIP-534). Offsets never change; what goes leaves holes.
//!
//! ```text
//!  log start      first dirty        end             active segment
//!      |── clean ──|──── dirty ───────|── not yet ────|────────────|
//!                  |<─ key map of ───>|
//!      |<──── rewritten by the map ──>|
//! ```
//!
//! | File | What |
//! |---|---|
//! | `question` | which offsets may be cleaned, and whether it is worth it (pure) |
//! | `groups` | which segments become one (pure) |
//! | `key_map` | the last offset of each key of the dirty part, in bounded memory (pure) |
//! | `transactions` | which batches are of aborted transactions, which markers may go (pure) |
//! | `filter` | one batch: kept, rewritten, emptied or gone (pure) |
//! | `chunks` | a segment's whole batches, some at a time |
//! | `writer` | the new segment's files |
//! | `cleaning` | what a log is asked and answers about it |
//! | `pass` | one cleaning of one log |
//! | `work` | what of it takes the CPU (pure) |
//! | `swap` | the new segment takes the place of the old ones |
//! | `settle` | what a crash left of that |
//! | `pace` | how many clean at a time, and how fast |
//!
//! Where it runs: the shard that owns the log reads and writes through its own ring, one operation
//! at a time, in the background; everything that takes the CPU (checksums, decoding, hashing,
//! encoding) runs on threads that give way to the shards (`io::run_when_idle`), a buffer at a time.
//! So no task of a shard waits for more of a cleaning than some microseconds between two buffers.
//!
//! # Invariants
//!
//! * What is kept is Kafka's choice (`Cleaner`): of each key the last record; records past what the
//!   map covers; tombstones and markers until `delete.retention.ms` after the pass that first saw
//!   nothing older of theirs, which the batch's header says from then on. Broken by random keys,
//!   tombstones, times and passes: `what_is_kept_is_what_the_model_keeps`.
//! * A value never comes back: of a key whose last record is gone no older one is left, whatever
//!   crash, cut or full table came in between. A tombstone's time begins with a pass that covered
//!   it; a log that is cut ends the pass, for the map may hold what is cut off. Broken by lives of
//!   cleanings, cuts and crashes: `compacted_logs_keep_the_last_of_each_key`, and by a cut in the
//!   middle of a pass: `a_log_that_is_cut_ends_the_pass`.
//! * A log that is cut in a hole ends where its last batch does, as the next start will find it.
//!   Broken by `a_log_that_is_cut_in_a_hole_ends_where_a_start_finds_its_end`.
//! * No offset at or past the last stable offset, the recovery point or the active segment is
//!   touched, and nothing younger than `min.compaction.lag.ms`. Broken by questions at each limit:
//!   `question::tests`.
//! * The last batch of a producer that the log knows stays, without records if need be, and so does
//!   that of all that may be cleaned: sequence numbers, epochs and the log's end survive. Broken by
//!   producers whose records all go: `the_last_batch_of_a_producer_stays_without_records`.
//! * So do the offsets of the last batch of a new segment: the file alone tells which segments it
//!   takes the place of. Of such a batch nothing else is known, no time either: a search by time or
//!   a retention finds what it would find without it. Broken by `a_time_index_names_records` and
//!   `of_the_last_batch_of_a_segment_nothing_but_its_offsets_stays`.
//! * What was cleaned is no younger for that: where no record has a time, that of the file counts,
//!   and it stays. Broken by `a_segment_of_which_nothing_is_left_is_as_old_as_it_was`.
//! * A batch that is kept whole keeps its bytes. A rewritten one keeps offsets, producer, sequence,
//!   epoch, flags and codec. Broken by each codec: `filter_test`.
//! * A batch with a wrong checksum, or one that cannot be decoded, is never written anew: the log
//!   is left as it is, named, and not tried again until the broker starts; others go on. Broken by
//!   flips: `a_damaged_log_is_left_alone_and_named`.
//! * A segment is replaced only when it is finished, wholly below the recovery point, and no live
//!   record of the journal names its bytes: a WATERMARK past it is durable, in two cycles, so that
//!   one damaged cycle does not bring the old bytes back over the new ones.
//! * Whoever reads meanwhile reads either the old file or the new one, never one by the other's
//!   positions: both stay open until nobody uses them. Broken by reads beside passes:
//!   `reads_beside_a_cleaning_miss_nothing`.
//! * Retention, deletion, cutting, closing and replacing exclude each other ([`Log::shape`]).
//! * A log on its way into another directory is not cleaned: its copy might have an old value and
//!   miss the tombstone that a pass takes away behind it. Broken by a move of a cleaned log:
//!   `moving_test::a_log_with_holes_moves_with_them_and_is_not_cleaned_meanwhile`.
//! * `coreline.cleaned` names, durably and before the first replacement, the offset below which
//!   there may be holes: above it a hole is damage, for reads and for `coreline log verify`. After
//!   the last replacement of a pass it names how far the log is clean, and before a log is cut no
//!   more than what the cut leaves. A crash before that cleans again. Kafka's
//!   `cleaner-offset-checkpoint` is written for Kafka alone.
//!
//! # Replacing, and a crash at each step
//!
//! | Step | A crash after it |
//! |---|---|
//! | `<base>.….cleaned` written and synced | removed: nothing has happened |
//! | renamed to `….swap`, `.log` last, synced | from here on the next start goes forward |
//! | the log in memory has the new segment | |
//! | the old files renamed to `….deleted`, synced | forward; nothing old is seen beside the new |
//! | `….swap` renamed to their names, `.log` last, synced | missing indexes are made again |
//! | after `file.delete.delay.ms` the old files go | the next start removes them |
//!
//! A start goes forward with a `.log.swap` beside which no file of the same base is `.cleaned`, as
//! Apache Kafka does (`LogLoader`), which can therefore take over such a folder, and we its.
//! Broken by a crash after every operation of passes: `a_crash_at_any_step_of_a_cleaning`.
//!
//! # Failure modes
//!
//! * ENOSPC while a new segment is written: it is removed and the pass ends; tried again after the
//!   pause. While names change: tried again every second until there is room.
//! * another failure of the device: the log directory goes offline, as everywhere.
//! * the map cannot hold the keys of one batch: the log is named uncleanable, with the setting.
//! * a shard that closes, a log that is deleted, cut or emptied: the pass ends at its next buffer
//!   and removes what it wrote.
//!
//! # Where this differs from Apache Kafka
//!
//! * The last batch of every new segment stays, without records and all else but its offsets if
//!   need be: 61 bytes, which clients pass over. Kafka keeps that of the whole round alone, and may
//!   have an empty segment. There a crash between the steps below can leave old segments behind a
//!   new one that ends before them; and a reader, a cut or a start would here meet segments without
//!   one batch that says where they end.
//! * A tombstone past what a full table covers does not get its delete horizon yet. Kafka gives it
//!   one, so that it can go before a reader of the older value has had `delete.retention.ms`.
//! * A segment that holds the last stable offset is not cleaned at all, where Kafka cleans it up to
//!   there.
//! * Each shard takes its dirtiest log; `log.cleaner.threads` bounds how many do at a time.

mod chunks;
mod cleaning;
mod filter;
mod groups;
mod key_map;
mod mark;
mod pace;
mod pass;
mod question;
mod settle;
mod swap;
mod transactions;
mod work;
mod writer;

pub(crate) use cleaning::Cleaning;
pub use cleaning::{CleanOptions, CleanOutcome, CleanStats};
pub(crate) use mark::CleanedMark;
pub use pace::CleanerPace;
pub use question::Cleanable;
pub(crate) use settle::{Ending, Leftovers, has_leftovers, settle_swaps, swap_path};

#[cfg(test)]
mod filter_test;
#[cfg(all(test, feature = "sim"))]
mod crash_test;
#[cfg(all(test, feature = "sim"))]
mod cut_test;
#[cfg(all(test, feature = "sim"))]
mod emptied_test;
#[cfg(all(test, feature = "sim"))]
mod model_test;
