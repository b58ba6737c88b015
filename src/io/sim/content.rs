//! The bytes of one simulated file, twice: as a reader sees them and as stable storage holds them,
//! with the changes between the two.
//!
//! What a power cut leaves: every change that a flush vouches for, and of the others any subset,
//! writes by sectors of 512 bytes, sizes, cuts and allocations each for itself. A later flushed
//! change of the same sector always covers an earlier one.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use crate::base::limits::{BLOCK_BYTES, SECTOR_BYTES};
use crate::base::random::Random;

use super::ranges::RangeSet;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// The blocks that `len` bytes at `position` touch.
pub fn blocks_of(position: u64, len: u64) -> Range<u64> {
    position / BLOCK..(position + len).div_ceil(BLOCK)
}

/// Sparse contents: a block that is absent reads as zeros.
#[derive(Clone, Debug, Default)]
pub struct Image {
    blocks: BTreeMap<u64, Rc<[u8; BLOCK_BYTES]>>,
    /// Blocks that take room on the disk, also past the size (KEEP_SIZE).
    pub allocated: RangeSet,
    /// The file's size in bytes.
    pub size: u64,
}

impl Image {
    fn put(&mut self, position: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = position + done as u64;
            let start = (at % BLOCK) as usize;
            let len = (BLOCK_BYTES - start).min(bytes.len() - done);
            let block = self
                .blocks
                .entry(at / BLOCK)
                .or_insert_with(|| Rc::new([0; BLOCK_BYTES]));
            Rc::make_mut(block)[start..start + len].copy_from_slice(&bytes[done..done + len]);
            done += len;
        }
    }

    /// Fills `out` from `position`; answers how much of it lies below the size.
    pub fn read(&self, position: u64, out: &mut [u8]) -> usize {
        let len = self.size.saturating_sub(position).min(out.len() as u64) as usize;
        let mut done = 0;
        while done < len {
            let at = position + done as u64;
            let start = (at % BLOCK) as usize;
            let part = (BLOCK_BYTES - start).min(len - done);
            let target = &mut out[done..done + part];
            match self.blocks.get(&(at / BLOCK)) {
                Some(block) => target.copy_from_slice(&block[start..start + part]),
                None => target.fill(0),
            }
            done += part;
        }
        len
    }

    fn truncate(&mut self, len: u64) {
        let keep = len.div_ceil(BLOCK);
        self.allocated.cut(keep);
        self.size = len;
        self.zero_past_size();
    }

    /// What lies past the size reads as zeros when the file grows over it.
    fn zero_past_size(&mut self) {
        self.blocks.split_off(&self.size.div_ceil(BLOCK));
        let within = (self.size % BLOCK) as usize;
        if within > 0
            && let Some(block) = self.blocks.get_mut(&(self.size / BLOCK))
            && block[within..].iter().any(|byte| *byte != 0)
        {
            Rc::make_mut(block)[within..].fill(0);
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { position, bytes } => {
                let len = bytes.len() as u64;
                self.allocated.insert(blocks_of(*position, len));
                self.put(*position, bytes);
                self.size = self.size.max(position + len);
            }
            Change::Truncate(len) => self.truncate(*len),
            Change::Allocate(blocks) => self.allocated.insert(blocks.clone()),
        }
    }

    /// Damage from outside: `edit` works on the block at `position`, visible at once.
    pub fn damage(&mut self, position: u64, edit: &dyn Fn(&mut [u8; BLOCK_BYTES], usize)) {
        let block = self
            .blocks
            .entry(position / BLOCK)
            .or_insert_with(|| Rc::new([0; BLOCK_BYTES]));
        edit(Rc::make_mut(block), (position % BLOCK) as usize);
    }
}

/// One change to a file.
#[derive(Clone, Debug)]
pub enum Change {
    Write { position: u64, bytes: Rc<[u8]> },
    Truncate(u64),
    Allocate(Range<u64>),
}

#[derive(Clone, Debug)]
struct Pending {
    sequence: u64,
    change: Change,
    /// A flush vouches for it; it only waits for an earlier change to be decided.
    stable: bool,
}

/// A file's two images and the changes between them, oldest first.
#[derive(Clone, Debug, Default)]
pub struct FileContent {
    pub visible: Image,
    durable: Image,
    pending: VecDeque<Pending>,
}

impl FileContent {
    /// Makes `change` visible; it is durable after a flush, or at once with `stable`.
    pub fn change(&mut self, sequence: u64, change: Change, stable: bool) {
        self.visible.apply(&change);
        if stable {
            // A synchronous write commits the sizes and allocations that came before it, not
            // the bytes of other writes.
            for pending in &mut self.pending {
                pending.stable |= !matches!(pending.change, Change::Write { .. });
            }
        }
        self.pending.push_back(Pending {
            sequence,
            change,
            stable,
        });
        self.settle();
    }

    /// A flush that saw everything up to `sequence` has succeeded.
    pub fn flush(&mut self, sequence: u64) {
        for pending in &mut self.pending {
            pending.stable |= pending.sequence <= sequence;
        }
        self.settle();
    }

    /// A flush has failed: what it should have written counts as clean from now on, each part of
    /// it either on storage or lost for good (Linux marks the pages clean). False when there was
    /// nothing to write.
    pub fn fail_flush(&mut self, sequence: u64, random: &mut Random) -> bool {
        let later = self
            .pending
            .iter()
            .position(|pending| pending.sequence > sequence)
            .unwrap_or(self.pending.len());
        let rest = self.pending.split_off(later);
        let has_lost = !self.pending.is_empty();
        self.land_some(random);
        self.pending = rest;
        has_lost
    }

    fn settle(&mut self) {
        while self.pending.front().is_some_and(|pending| pending.stable) {
            if let Some(pending) = self.pending.pop_front() {
                self.durable.apply(&pending.change);
            }
        }
    }

    fn land_some(&mut self, random: &mut Random) {
        let pending = std::mem::take(&mut self.pending);
        for pending in pending {
            if pending.stable {
                self.durable.apply(&pending.change);
            } else {
                land(&mut self.durable, &pending.change, random);
            }
        }
    }

    /// The power fails while `in_flight` had been submitted: what is left is one of the states
    /// that the device's model allows, chosen by `random`.
    pub fn power_cut(&mut self, in_flight: &[Change], random: &mut Random) {
        self.land_some(random);
        for change in in_flight {
            land(&mut self.durable, change, random);
        }
        self.durable.zero_past_size();
        self.visible = self.durable.clone();
    }

    /// Damages both images alike.
    pub fn damage(&mut self, position: u64, edit: &dyn Fn(&mut [u8; BLOCK_BYTES], usize)) {
        for pending in std::mem::take(&mut self.pending) {
            self.durable.apply(&pending.change);
        }
        self.visible.damage(position, edit);
        self.durable.damage(position, edit);
    }
}

/// Lets a part of an unflushed change reach storage: all, nothing, or some of its sectors.
fn land(image: &mut Image, change: &Change, random: &mut Random) {
    let Change::Write { position, bytes } = change else {
        if random.chance(1, 2) {
            image.apply(change);
        }
        return;
    };
    let kind = random.below(4);
    if kind == 0 {
        return;
    }
    if kind == 1 {
        image.apply(change);
        return;
    }
    // Size and blocks are metadata of their own: without a block its sectors are lost with it.
    let end = position + bytes.len() as u64;
    if random.chance(1, 2) {
        image
            .allocated
            .insert(blocks_of(*position, bytes.len() as u64));
    }
    if random.chance(1, 2) {
        image.size = image.size.max(end);
    }
    let mut done = 0;
    while done < bytes.len() {
        let at = position + done as u64;
        let within = (at % SECTOR_BYTES as u64) as usize;
        let len = (SECTOR_BYTES - within).min(bytes.len() - done);
        if random.chance(1, 2) && image.allocated.contains(at / BLOCK) {
            image.put(at, &bytes[done..done + len]);
        }
        done += len;
    }
}
