//! The receive buffer of one connection: how much is reserved for what has come so far.
//!
//! A client that merely claims a large frame gets little: min(frame, 68 KiB) when its length is
//! known, 1 MiB once those have come, and never more than twice what has come after that. Between
//! frames the buffer has room for what the connection's last reads brought, so that a quiet
//! connection costs 4 KiB and a busy one is read in large pieces.

use std::time::Duration;

use bytes::BytesMut;

use crate::base::limits::{FRAME_BYTES_RESERVED, KIB, MIB};
use crate::base::time::MonotonicNs;
use crate::metrics::touched;
use crate::wire::frame::LENGTH_BYTES;

/// Room kept for the next bytes of a quiet connection.
pub const ROOM_BYTES_MIN: usize = 4 * KIB;
/// Room kept for a busy one, unless its frames are a little larger: then for one of them, up to
/// [`FRAME_BYTES_RESERVED`].
const ROOM_BYTES_MAX: usize = 64 * KIB;
const _: () = assert!(ROOM_BYTES_MAX <= FRAME_BYTES_RESERVED);
/// Reserved once [`FRAME_BYTES_RESERVED`] of a larger frame have come.
const GROWN_BYTES: usize = MIB;
/// With less room left an empty buffer is replaced, whatever the last read brought.
const ROOM_LEFT_MIN: usize = 512;
/// Most that is charged with a batch for what earlier ones left unused.
const ABANDONED_BYTES_MAX: usize = 2 * ROOM_BYTES_MAX;
/// Reads in a row that must use little of the room before it shrinks.
const QUIET_READS: u32 = 16;

/// The bytes received and not yet taken as frames.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: BytesMut,
    room: usize,
    last_read: usize,
    quiet_reads: u32,
    /// When the first byte of the frame that comes next was there, and the last byte received.
    began_at: MonotonicNs,
    came_at: MonotonicNs,
    /// Size of the memory in use, and how much of it the log has got.
    allocated: usize,
    logged: usize,
    /// What was left unused of memory that the log keeps alive.
    abandoned: usize,
}

impl Default for FrameBuffer {
    fn default() -> Self {
        Self {
            bytes: BytesMut::new(),
            room: ROOM_BYTES_MIN,
            last_read: 0,
            quiet_reads: 0,
            began_at: MonotonicNs::default(),
            came_at: MonotonicNs::default(),
            allocated: 0,
            logged: 0,
            abandoned: 0,
        }
    }
}

/// What the buffer should hold, in bytes from its front, before the next read of a frame of
/// `frame_bytes` (its length not counted) of which `arrived` bytes have come, length included.
#[must_use]
pub fn capacity_wanted(frame_bytes: usize, arrived: usize) -> usize {
    let total = frame_bytes.saturating_add(LENGTH_BYTES);
    let allowed = if arrived < FRAME_BYTES_RESERVED {
        FRAME_BYTES_RESERVED
    } else {
        GROWN_BYTES.max(arrived.saturating_mul(2))
    };
    total.min(allowed)
}

impl FrameBuffer {
    /// Bytes have come.
    pub fn note_arrival(&mut self, now: MonotonicNs) {
        if self.bytes.len() == self.last_read {
            self.began_at = now;
        }
        self.came_at = now;
    }

    /// A whole frame was taken off the front: answers how long it took to come.
    pub fn take_arrival(&mut self) -> Duration {
        // The bytes behind it came with the last read.
        let began_at = std::mem::replace(&mut self.began_at, self.came_at);
        self.came_at.since(began_at)
    }

    /// What has come.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, for taking frames off its front.
    pub fn bytes_mut(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// `bytes` of the memory in use went to the log as a frame.
    pub fn note_logged(&mut self, bytes: usize) {
        self.logged += bytes;
    }

    /// What was left unused since this was last asked.
    pub fn take_abandoned(&mut self) -> usize {
        std::mem::take(&mut self.abandoned)
    }

    /// Room that a busy connection is given for the next read.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room
    }

    /// Makes room for the next read while no length is known: at most `room_max` unless more than
    /// that has come.
    pub fn make_room(&mut self, room_max: usize) {
        self.room = self.room.min(room_max);
        let spare = self.bytes.capacity() - self.bytes.len();
        // A little room left is used up while a frame is under way in it; an empty buffer starts
        // afresh instead, so that the next frame comes in one piece.
        let enough = if self.bytes.is_empty() {
            self.last_read.clamp(ROOM_LEFT_MIN, self.room)
        } else {
            1
        };
        if spare < enough {
            self.start_afresh(self.room.max(self.bytes.len() * 2));
        }
    }

    /// Makes room for the rest of a frame as far as [`capacity_wanted`] allows.
    pub fn make_room_for(&mut self, frame_bytes: usize) {
        let wanted = capacity_wanted(frame_bytes, self.bytes.len());
        self.room = self
            .room
            .max((frame_bytes + LENGTH_BYTES).min(FRAME_BYTES_RESERVED));
        if self.bytes.capacity() >= wanted {
            return;
        }
        if self.bytes.len() < FRAME_BYTES_RESERVED {
            self.start_afresh(wanted);
        } else if self.bytes.len() == self.bytes.capacity() {
            // Only when full: the buffer at least doubles, which is then twice what has come, and
            // never beyond the frame.
            self.start_afresh(wanted);
        }
    }

    /// Moves what has come of the next frame into memory of its own: the old one belongs to the
    /// frames that were taken from it.
    fn start_afresh(&mut self, capacity: usize) {
        if self.logged > 0 {
            let unused = self.allocated.saturating_sub(self.logged);
            self.abandoned = (self.abandoned + unused).min(ABANDONED_BYTES_MAX);
        }
        (self.allocated, self.logged) = (capacity, 0);
        let mut fresh = BytesMut::with_capacity(capacity);
        touched::note_copied(self.bytes.len());
        fresh.extend_from_slice(&self.bytes);
        self.bytes = fresh;
    }

    /// Hands the buffer to a read.
    #[must_use]
    pub fn lend(&mut self) -> BytesMut {
        std::mem::take(&mut self.bytes)
    }

    /// Takes it back with `count` bytes more.
    pub fn give_back(&mut self, bytes: BytesMut, count: usize) {
        let filled = bytes.len() == bytes.capacity();
        self.last_read = count;
        self.bytes = bytes;
        if filled {
            self.room = self.room.max((self.room * 2).min(ROOM_BYTES_MAX));
            self.quiet_reads = 0;
        } else if count < self.room / 4 {
            self.quiet_reads += 1;
            if self.quiet_reads >= QUIET_READS {
                self.room = (self.room / 2).max(ROOM_BYTES_MIN);
                self.quiet_reads = 0;
            }
        } else {
            self.quiet_reads = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_follow_what_has_come() {
        assert_eq!(capacity_wanted(1_000, 6), 1_004);
        assert_eq!(capacity_wanted(64 * KIB + 90, 6), 64 * KIB + 94);
        assert_eq!(capacity_wanted(100 * MIB, 6), 68 * KIB);
        assert_eq!(capacity_wanted(100 * MIB, 68 * KIB - 1), 68 * KIB);
        assert_eq!(capacity_wanted(100 * MIB, 68 * KIB), MIB);
        assert_eq!(capacity_wanted(100 * MIB, MIB), 2 * MIB);
        assert_eq!(capacity_wanted(3 * MIB, 2 * MIB), 3 * MIB + LENGTH_BYTES);
        assert_eq!(capacity_wanted(usize::MAX, usize::MAX), usize::MAX);
    }

    /// A frame that comes byte by byte, or in pieces: never more than the larger of 1 MiB and
    /// twice what has come is reserved.
    #[test]
    fn a_large_claim_reserves_little() {
        for piece in [1_000, 40_000, 700_000] {
            let mut buffer = FrameBuffer::default();
            let frame = 40 * MIB;
            while buffer.received().len() < frame + LENGTH_BYTES {
                buffer.make_room_for(frame);
                let mut lent = buffer.lend();
                let spare = lent.capacity() - lent.len();
                assert!(spare > 0, "no progress");
                let count = piece.min(spare).min(frame + LENGTH_BYTES - lent.len());
                lent.resize(lent.len() + count, 7);
                buffer.give_back(lent, count);
                let (held, come) = (buffer.bytes.capacity(), buffer.bytes.len());
                assert!(held <= MIB.max(2 * come) + 8, "{held} for {come}");
            }
        }
    }

    /// After the first of them, frames of 64 KiB and a bit are each read into memory of their own.
    #[test]
    fn a_usual_batch_is_moved_once_at_most() {
        let frame = 64 * KIB + 90;
        let mut buffer = FrameBuffer::default();
        for round in 0..3 {
            let before = touched::Touched::now().copied;
            while buffer.received().len() < frame + LENGTH_BYTES {
                if buffer.received().len() < LENGTH_BYTES {
                    buffer.make_room(FRAME_BYTES_RESERVED);
                } else {
                    buffer.make_room_for(frame);
                }
                let mut lent = buffer.lend();
                let count = (lent.capacity() - lent.len()).min(frame + LENGTH_BYTES - lent.len());
                lent.resize(lent.len() + count, 7);
                buffer.give_back(lent, count);
            }
            drop(buffer.bytes_mut().split());
            let moved = touched::Touched::now().copied - before;
            let most = if round == 0 { ROOM_BYTES_MIN as u64 } else { 0 };
            assert!(moved <= most, "{moved} in round {round}");
        }
    }

    #[test]
    fn room_grows_with_full_reads_and_shrinks_with_small_ones() {
        let mut buffer = FrameBuffer::default();
        for _ in 0..6 {
            buffer.make_room(ROOM_BYTES_MAX);
            let mut lent = buffer.lend();
            let count = lent.capacity();
            lent.resize(count, 0);
            buffer.give_back(lent, count);
            buffer.bytes.clear();
        }
        assert_eq!(buffer.room, ROOM_BYTES_MAX);
        for _ in 0..6 * QUIET_READS {
            buffer.make_room(ROOM_BYTES_MAX);
            let mut lent = buffer.lend();
            lent.extend_from_slice(b"x");
            buffer.give_back(lent, 1);
            buffer.bytes.clear();
        }
        assert_eq!(buffer.room, ROOM_BYTES_MIN);
    }
}
