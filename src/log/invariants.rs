//! The page of invariants and failure modes. The code asserts them where they can be seen; the
//! simulation (`tests/journal_simulation*`) breaks each on purpose, by the seeded bug of the same
//! name in [`super::seeded`] or by the fault named, and must notice.
//!
//! # Positions
//!
//! * segment end ≤ durable end ≤ appended end, for every log. Broken by an acknowledgement
//!   before its flush: `seeded_ack_before_flush`.
//! * none of the three goes back except by TRUNCATE or RESET. Broken by late completions:
//!   `model_every_seed`.
//! * the durable end of a write-cached log that stands in a record is its last flushed end.
//!   Broken by power cut under `write.caching`: `write_caching_leaves_a_tear`.
//! * a duplicate is acknowledged only when its original is durable. Broken by retry while the
//!   original is in flight: `seeded_duplicate_answered_early`.
//!
//! # Cycles
//!
//! * cycle n is durable only when all cycles ≤ n are. Broken by completions out of order:
//!   `seeded_cycle_durable_out_of_order`.
//! * a cycle never rewrites a block of an earlier cycle of its lap. Broken by torn write of
//!   the later cycle: `model_every_seed`.
//! * only cycles of the named incarnation count, from the lowest live sequence on. Broken by
//!   leftovers of an earlier life or lap: `seeded_stale_incarnation_accepted`.
//! * "highest flushed" names only cycles on stable storage. Broken by plain cycles of write-
//!   cached logs: `write_caching_leaves_a_tear`.
//! * acknowledged work is vouched for by a later durable cycle once the shard is idle. Broken
//!   by a flip in the last cycle: `flips_and_zeroed_blocks`.
//!
//! # Room
//!
//! * an admitted append never fails for room: segment range, ring, copies, memory are
//!   reserved before. Broken by full disk, full ring: `full_disk`, `full_ring`.
//! * one ring file is free beside what is admitted, so that the oldest can always be
//!   released. Broken by full ring with many quiet logs: `full_ring`.
//! * the release of a file writes less into the ring than it frees, however many logs the file
//!   names: those without room for a WATERMARK leave the ring, their id files say where they stand.
//!   Broken by more logs than the ring can name: `more_logs_than_the_ring_can_name`.
//! * whoever waits for room looks again whenever some has come, also where records shared blocks
//!   and so took less than was reserved. Broken by more small appends at once than the ring has
//!   blocks: `one_request_for_many_partitions_needs_no_more_than_some_cycles`.
//! * an append answered REQUEST_TIMED_OUT is not in the log. Broken by deadline during the
//!   wait: `full_ring`, `what_times_out_is_not_in_the_log`.
//! * files are reused strictly oldest first, each when a durable cycle has named a lowest
//!   live sequence past it and all that its logs need lies elsewhere, durably. Broken by
//!   power cut right after the reuse: `seeded_file_reused_before_directory_sync`.
//!
//! # Segments
//!
//! * segment writes of one log are issued in order, whole blocks, never two in flight on one
//!   block. Broken by reordering by the device: `seeded_partial_block_rewritten_in_flight`.
//! * no block is written into a segment while or after its file is cut to its last byte. Broken by
//!   asking for memory around a roll:
//!   `no_partial_block_lengthens_a_segment_that_came_to_its_end`.
//! * a partial block that a later write completes has all its bytes in the live journal.
//!   Broken by torn rewrite of the block: `model_every_seed`.
//! * what leaves memory is in its segment, and nobody copies it from memory after that. Broken by
//!   a block completed, written and evicted during a release:
//!   `what_has_left_memory_is_never_missed`.
//! * a segment file is new when it is named: never a recycled one. Broken by valid batches of
//!   another partition past the end: `seeded_recycled_segment`.
//! * the directory is synced before the first record that names a new file. Broken by lost
//!   directory entry: `model_every_seed`. A segment that is rolled to has its file synced under
//!   another name before; until it has its own, durably, its records stay live and no WATERMARK
//!   passes its beginning, so that recovery finds it. Broken by crashes while names are late:
//!   `a_crash_anywhere_around_rolls_loses_nothing_and_leaves_no_file`.
//! * TRUNCATE is durable, then the file is cut, then something is written past that point.
//!   Broken by power cut between them: `seeded_truncate_after_rewrite`.
//! * before a TRUNCATE may leave the journal, the log's id file says where the log ends now. Broken
//!   by letting the journal come round: `a_cut_holds_after_its_record_is_gone`.
//! * a segment goes after the log's start behind it, and a WATERMARK past it, are durable: no
//!   record brings a part of it back. Broken by a crash in between, with the ring gone round:
//!   `a_crash_around_a_retention_keeps_the_start_and_everything_behind_it`.
//!
//! * the recovery point names nothing that is not durable in segments, with a snapshot and indexes
//!   below it. Broken by power cuts around a snapshot:
//!   `the_recovery_point_follows_snapshots_and_never_passes_what_is_durable`.
//!
//! * a segment takes the place of others once it is durable under another name and no live record
//!   names theirs; the head of `log::cleaner` has the steps. Broken by a crash after every
//!   operation: `a_crash_at_any_step_of_a_cleaning`.
//!
//! # Recovery
//!
//! * a file is read only under the lock that a dead process's writes still hold. Broken by
//!   late writes of a killed process: `seeded_late_write_after_recovery`.
//! * a break above the highest flushed sequence is a tear, at or below it damage. Broken by
//!   flips, zeroed blocks: `seeded_damage_cut_as_tear`.
//! * a log ends where its records or WATERMARK end, or at the first invalid batch before
//!   that. Broken by valid but unvouched bytes past the end: `seeded_torn_tail_kept`.
//! * a start that moved within the last minute and that only a damaged journal names falls back to
//!   the checkpoint's: deleted records return, none is lost, and the damage is named. Broken by
//!   flips, zeroed blocks: `flips_and_zeroed_blocks`.
//! * an invalid byte below the recorded durable end is never cut and never served past.
//!   Broken by flips in segments: `flips_and_zeroed_blocks`.
//! * a ring that ends before the cycle that its witness names has lost what followed. The witness
//!   never names a cycle that is not on stable storage, so that no power cut makes an alarm of it.
//!   Broken by zeroed ends: `log_test::damage_test`; by power cuts: `model_every_seed`.
//! * a ring file that was in use, or a journal that was not emptied in order, is missed when it is
//!   gone. Broken by deleted files: `log_test::damage_test`.
//! * a log whose files end before what was closed, or that lost a segment, is marked, never taken
//!   for a shorter one. Broken by cut and deleted segments: `log_test::damage_test`.
//! * after a clean shutdown a segment that is gone, or has another size than it was closed with, is
//!   damage wherever it stands in its log, and so is a folder that is gone. Broken by deleted, cut
//!   and lengthened files: `log_test::closed_test`.
//! * indexes of closed segments are used once their checksums are those noted when they were
//!   written; others are made again from the segment, or, where nothing was noted, compared with
//!   it. No read and no search by time depends on what befell them. Broken by removed, cut,
//!   emptied, flipped and random index files: `index_check_test`,
//!   `spoilt_indexes_change_no_answer_and_are_made_again`.
//! * ring files with damage are kept for repair, whenever a crash comes. Broken by power cuts at
//!   every step of recovery: `a_crash_at_any_step_of_recovery_leaves_the_damaged_ring_for_repair`.
//! * without the name of the incarnation in force nothing is guessed: no start. Broken by a cut
//!   `current`: `a_damaged_name_of_the_incarnation_is_refused_with_what_to_do`.
//! * nothing is written into a journal that was found before the one rename that retires it.
//!   Broken by crashes during recovery: `crash_during_recovery`.
//! * the number of shards plays no part. Broken by changed shard counts:
//!   `crash_during_recovery`.
//! * records of a log id that no directory carries are damage unless a DELETE or RESET names
//!   it. Broken by deletion with a crash: `topic_deletions`.
//!
//! # Moves
//!
//! * of the folders that a move between directories leaves exactly one counts, with all that was
//!   acknowledged: [`super::moving`] says which at each step. Broken by kills and power cuts at
//!   every step: `a_crash_at_any_step_of_a_move_loses_nothing`.
//!
//! # Failure modes
//!
//! * ENOSPC while room is reserved or a derived file is written: that append gets
//!   `AppendError::StorageFull` at once; tried again by the next.
//! * a write into allocated blocks, or a flush, or an error of the device in anything else: the
//!   log directory goes offline, on this shard at once and soon on all: no acknowledgement, no
//!   reuse of a journal file, until restart. Every other directory serves on, for nothing of a log
//!   is shared between directories. Broken by failing files of one of three:
//!   `broker_directories::a_directory_that_fails_takes_its_partitions_alone`.
//! * no ring or memory room: appends wait in order, until their own deadline.
//! * the process dies: the next start replays the journal: nothing that was durable is lost.
//! * a future is dropped: its append stands if it was admitted; its writes finish.
//!
//! # Where this differs from the specification, and why
//!
//! * A cycle's records are headers in one table behind the cycle's header, payloads after it: one
//!   unreadable payload leaves every header readable.
//! * Each DATA and EXTENT that holds whole batches is checked through the batches' own CRC: its
//!   header vouches for the 21 bytes before each batch's checksummed part, the checksum itself
//!   included. One pass over the bytes then serves client, journal and recovery.
//! * A direct write covers whole blocks only. The rest of the batch (less than a block) stands in
//!   the EXTENT record itself, so that direct writes never leave a partial block to be rewritten.
//! * A roll's record does not wait for the directory: see the late names of segments' files above.
//!   A roll then costs the append that causes it no sync.
//! * A log's id belongs to one incarnation of the broker: every start gives a log a new id before
//!   its first record. A folder without an id of the current incarnation is at rest: recovery or a
//!   clean shutdown made it wholly durable and nothing was written since.
//! * The log start offset and the recovery point of a running log stand in its WATERMARKs; Kafka's
//!   checkpoint files, which a running broker writes in Kafka's intervals, are for tools: recovery
//!   goes by the journal.
