//! The timer wheel: sleeping tasks by deadline. Setting and removing a timer cost the same however
//! many there are (every parked fetch and every connection holds one).
//!
//! Time is cut into ticks of 2^14 ns (16 µs). Level 0 has a slot for each of the next 64 ticks;
//! each level above has slots 64 times as long. A timer lies at the lowest level whose slot tells
//! it apart from now; when a higher slot comes due, its timers are dealt out again below. A timer
//! never fires early, and at most one tick late.

use crate::base::time::MonotonicNs;

use super::task::LocalWaker;

const TICK_BITS: u32 = 14;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Reaches 2^56 ns, more than two years; what lies further waits in the last slot and is dealt
/// out again.
const LEVELS: usize = 7;
/// Deadlines past this (292 years) mean "never".
const TICK_MAX: u64 = 1 << 49;
const NONE: u32 = u32::MAX;

/// Names a timer until it fired or was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimerKey {
    index: u32,
    generation: u32,
}

struct Timer {
    deadline_tick: u64,
    waker: Option<LocalWaker>,
    generation: u32,
    /// Neighbours in the slot's list, or the next free timer.
    next: u32,
    previous: u32,
    level: u8,
    slot: u8,
}

struct Level {
    heads: [u32; SLOTS],
    /// Bit n: slot n has timers.
    occupied: u64,
}

pub(super) struct TimerWheel {
    levels: Vec<Level>,
    timers: Vec<Timer>,
    free: u32,
    /// All ticks up to this one have fired.
    tick: u64,
    len: usize,
}

impl TimerWheel {
    pub(super) fn new(now: MonotonicNs) -> Self {
        let level = || Level {
            heads: [NONE; SLOTS],
            occupied: 0,
        };
        Self {
            levels: (0..LEVELS).map(|_| level()).collect(),
            timers: Vec::new(),
            free: NONE,
            tick: now.0 >> TICK_BITS,
            len: 0,
        }
    }

    pub(super) fn insert(&mut self, deadline: MonotonicNs, waker: LocalWaker) -> TimerKey {
        // Rounded up: never early. Not before the next tick: the present one has fired.
        let tick = ((deadline.0 >> TICK_BITS) + 1).clamp(self.tick + 1, TICK_MAX);
        let index = self.allocate();
        let timer = &mut self.timers[index as usize];
        timer.deadline_tick = tick;
        timer.waker = Some(waker);
        let generation = timer.generation;
        self.link(index);
        self.len += 1;
        TimerKey { index, generation }
    }

    /// Replaces the waker of a timer that has not fired; false when it has.
    pub(super) fn set_waker(&mut self, key: TimerKey, waker: LocalWaker) -> bool {
        match self.timers.get_mut(key.index as usize) {
            Some(timer) if timer.generation == key.generation => {
                timer.waker = Some(waker);
                true
            }
            _ => false,
        }
    }

    /// Removes a timer; nothing happens when it has fired.
    pub(super) fn remove(&mut self, key: TimerKey) {
        let known = self.timers.get(key.index as usize);
        if known.is_some_and(|timer| timer.generation == key.generation) {
            self.unlink(key.index);
            self.release(key.index);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// When to look again: not later than the earliest deadline.
    pub(super) fn next_deadline(&self) -> Option<MonotonicNs> {
        let mut earliest: Option<u64> = None;
        for (level, slots) in self.levels.iter().enumerate() {
            if slots.occupied == 0 {
                continue;
            }
            let tick = self.next_slot_tick(level, slots.occupied);
            earliest = Some(earliest.map_or(tick, |known| known.min(tick)));
        }
        earliest.map(|tick| MonotonicNs(tick << TICK_BITS))
    }

    /// First tick of the next occupied slot of a level. Slots at or before the present position
    /// belong to the level's next round.
    fn next_slot_tick(&self, level: usize, occupied: u64) -> u64 {
        let shift = SLOT_BITS * level as u32;
        let position = self.tick >> shift;
        let here = (position & (SLOTS as u64 - 1)) as u32;
        // Rotated so that the slot after the present one comes first.
        let rotated = occupied.rotate_right((here + 1) % SLOTS as u32);
        let ahead = u64::from(rotated.trailing_zeros()) + 1;
        (position + ahead) << shift
    }

    /// Fires every timer with a deadline at or before `now`, earliest slot first, in the order in
    /// which they were dealt into it.
    pub(super) fn fire(&mut self, now: MonotonicNs, fired: &mut Vec<LocalWaker>) {
        let target = now.0 >> TICK_BITS;
        while let Some(next) = self.next_deadline() {
            let tick = next.0 >> TICK_BITS;
            if tick > target {
                break;
            }
            self.tick = tick;
            // Higher levels first: their timers may be due in this very tick.
            for level in (0..LEVELS).rev() {
                let shift = SLOT_BITS * level as u32;
                if tick & ((1u64 << shift) - 1) == 0 {
                    self.empty_slot(
                        level,
                        ((tick >> shift) & (SLOTS as u64 - 1)) as usize,
                        fired,
                    );
                }
            }
        }
        self.tick = self.tick.max(target);
    }

    fn empty_slot(&mut self, level: usize, slot: usize, fired: &mut Vec<LocalWaker>) {
        if self.levels[level].occupied & (1 << slot) == 0 {
            return;
        }
        let mut index = std::mem::replace(&mut self.levels[level].heads[slot], NONE);
        self.levels[level].occupied &= !(1 << slot);
        // New timers are put in front, so the list is turned round to keep their order.
        let mut in_order = Vec::new();
        while index != NONE {
            in_order.push(index);
            index = self.timers[index as usize].next;
        }
        for index in in_order.into_iter().rev() {
            if self.timers[index as usize].deadline_tick <= self.tick {
                fired.extend(self.timers[index as usize].waker.take());
                self.release(index);
            } else {
                self.link(index);
            }
        }
    }

    fn link(&mut self, index: u32) {
        let deadline = self.timers[index as usize].deadline_tick;
        let differs = (deadline ^ self.tick) | 1;
        let level = ((63 - differs.leading_zeros()) / SLOT_BITS) as usize;
        // Past the last level's round: the slot in its next round, or, further away than that, the
        // furthest slot, from where it is dealt out again.
        let level = level.min(LEVELS - 1);
        let shift = SLOT_BITS * level as u32;
        let furthest = (self.tick >> shift) + SLOTS as u64 - 1;
        let slot = ((deadline >> shift).min(furthest) & (SLOTS as u64 - 1)) as usize;
        let head = std::mem::replace(&mut self.levels[level].heads[slot], index);
        self.levels[level].occupied |= 1 << slot;
        if head != NONE {
            self.timers[head as usize].previous = index;
        }
        let timer = &mut self.timers[index as usize];
        timer.next = head;
        timer.previous = NONE;
        timer.level = level as u8;
        timer.slot = slot as u8;
    }

    fn unlink(&mut self, index: u32) {
        let timer = &self.timers[index as usize];
        let (next, previous) = (timer.next, timer.previous);
        let (level, slot) = (usize::from(timer.level), usize::from(timer.slot));
        if next != NONE {
            self.timers[next as usize].previous = previous;
        }
        if previous != NONE {
            self.timers[previous as usize].next = next;
        } else {
            self.levels[level].heads[slot] = next;
            if next == NONE {
                self.levels[level].occupied &= !(1 << slot);
            }
        }
    }

    fn allocate(&mut self) -> u32 {
        if self.free != NONE {
            let index = self.free;
            self.free = self.timers[index as usize].next;
            return index;
        }
        let index = self.timers.len() as u32;
        self.timers.push(Timer {
            deadline_tick: 0,
            waker: None,
            generation: 0,
            next: NONE,
            previous: NONE,
            level: 0,
            slot: 0,
        });
        index
    }

    fn release(&mut self, index: u32) {
        let free = self.free;
        let timer = &mut self.timers[index as usize];
        timer.generation = timer.generation.wrapping_add(1);
        timer.waker = None;
        timer.next = free;
        self.free = index;
        self.len -= 1;
    }
}

#[cfg(test)]
#[path = "timer_test.rs"]
mod timer_test;
