//! What the ring can still take, and in which order its files come round. Pure.

use std::collections::VecDeque;

use super::sizes::RingSizes;
use crate::base::limits::BLOCK_BYTES;

/// The order of the ring's files, by their place in the table of files.
#[derive(Debug, Default)]
pub(crate) struct RingOrder {
    /// Oldest first; the last is the one being written.
    used: VecDeque<usize>,
    free: VecDeque<usize>,
    /// Where the next cycle starts in the head file.
    head_position: u64,
}

impl RingOrder {
    /// All files free.
    pub(crate) fn new(files: usize) -> Self {
        Self {
            used: VecDeque::new(),
            free: (0..files).collect(),
            head_position: 0,
        }
    }

    /// A new file joins as the last to be used.
    pub(crate) fn add(&mut self, file: usize) {
        self.free.push_back(file);
    }

    /// The file being written and the position of its next cycle.
    pub(crate) fn head(&self) -> Option<(usize, u64)> {
        self.used.back().map(|file| (*file, self.head_position))
    }

    /// Goes on to the next free file.
    pub(crate) fn advance(&mut self) -> Option<usize> {
        let file = self.free.pop_front()?;
        self.used.push_back(file);
        self.head_position = 0;
        Some(file)
    }

    /// A cycle of `bytes` was placed at the head.
    pub(crate) fn place(&mut self, bytes: u64) {
        assert!(
            bytes.is_multiple_of(BLOCK_BYTES as u64),
            "a cycle is whole blocks"
        );
        self.head_position += bytes;
    }

    /// The oldest file, unless it is the one being written.
    pub(crate) fn oldest(&self) -> Option<usize> {
        if self.used.len() > 1 {
            self.used.front().copied()
        } else {
            None
        }
    }

    /// The file after the oldest.
    pub(crate) fn second_oldest(&self) -> Option<usize> {
        self.used.get(1).copied()
    }

    /// The oldest file may be overwritten.
    pub(crate) fn release_oldest(&mut self, file: usize) {
        assert_eq!(
            self.oldest(),
            Some(file),
            "journal files are reused oldest first"
        );
        self.used.pop_front();
        self.free.push_back(file);
    }

    /// All files.
    pub(crate) fn len(&self) -> usize {
        self.used.len() + self.free.len()
    }

    /// Bytes that may still be admitted beside `reserved`: what the head and the free files surely
    /// hold, but for one free file and the control share.
    pub(crate) fn room(&self, sizes: &RingSizes, reserved: u64) -> u64 {
        let usable = sizes.usable_file_bytes();
        let in_head = match self.used.back() {
            Some(_) => usable.saturating_sub(self.head_position),
            None => 0,
        };
        let files = (self.free.len() as u64).saturating_sub(1);
        (in_head + files * usable).saturating_sub(sizes.control_bytes + reserved)
    }

    /// Bytes in use, and those of all files.
    pub(crate) fn fill(&self, sizes: &RingSizes) -> (u64, u64) {
        let full = (self.used.len() as u64).saturating_sub(1) * sizes.file_bytes;
        let head = self.used.back().map_or(0, |_| self.head_position);
        (full + head, self.len() as u64 * sizes.file_bytes)
    }

    /// Half of the ring is in use: the oldest file is to be released.
    pub(crate) fn is_release_due(&self) -> bool {
        self.used.len() * 2 > self.len() && self.used.len() > 1
    }
}

/// Ring bytes to reserve for a record with `inline` bytes: in the worst case it makes a cycle of
/// its own.
pub(crate) fn reservation(inline: usize) -> u64 {
    let bytes = inline + super::cycle::CYCLE_HEADER_BYTES + super::record::RECORD_HEADER_BYTES;
    bytes.next_multiple_of(BLOCK_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::limits::{KIB, MIB};

    #[test]
    fn one_file_and_the_control_share_stay_free() {
        let sizes = RingSizes::for_ring(2 * MIB as u64);
        let mut order = RingOrder::new(4);
        let usable = 384 * KIB as u64;
        assert_eq!(order.room(&sizes, 0), 3 * usable - sizes.control_bytes);
        order.advance();
        order.place(4096);
        assert_eq!(
            order.room(&sizes, 0),
            3 * usable - 4096 - sizes.control_bytes
        );
        order.advance();
        order.advance();
        assert_eq!(order.room(&sizes, usable - sizes.control_bytes), 0);
        assert_eq!(order.room(&sizes, usable - sizes.control_bytes - 1), 1);
    }

    #[test]
    fn files_come_round_oldest_first() {
        let mut order = RingOrder::new(4);
        assert_eq!(order.oldest(), None);
        order.advance();
        assert_eq!(order.oldest(), None, "the head is never released");
        order.advance();
        assert!(!order.is_release_due());
        order.advance();
        assert!(order.is_release_due());
        assert_eq!(order.oldest(), Some(0));
        order.release_oldest(0);
        order.advance();
        assert_eq!(order.advance(), Some(0));
        assert_eq!(order.advance(), None);
    }

    #[test]
    #[should_panic(expected = "oldest first")]
    fn a_younger_file_is_not_released() {
        let mut order = RingOrder::new(4);
        order.advance();
        order.advance();
        order.advance();
        order.release_oldest(1);
    }

    #[test]
    fn a_record_reserves_a_cycle_of_its_own() {
        assert_eq!(reservation(4096 - 160), 4096);
        assert_eq!(reservation(4096 - 159), 8192);
    }
}
