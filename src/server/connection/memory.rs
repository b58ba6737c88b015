//! Memory of a shard's connections: what each takes while nothing is asked, and the room that busy
//! ones are given for their next bytes. Frames are the request budget's affair.

use std::cell::Cell;
use std::rc::Rc;

use super::frame_buffer::ROOM_BYTES_MIN;
use crate::base::limits::KIB;

/// What a quiet connection takes: its state, its two tasks, the least room. 14 KiB were measured
/// with 9,000 of them.
pub const CONNECTION_BYTES: usize = 16 * KIB;
/// Rooms beyond the least take at most this part.
const ROOMS_DIVISOR: usize = 2;

/// One shard's share of the memory for connections.
#[derive(Debug)]
pub struct ConnectionMemory {
    bytes_max: usize,
    used: Cell<usize>,
    rooms: Cell<usize>,
}

impl ConnectionMemory {
    /// Of `bytes_max`; one connection is always admitted.
    #[must_use]
    pub fn new(bytes_max: usize) -> Rc<Self> {
        Rc::new(Self {
            bytes_max: bytes_max.max(CONNECTION_BYTES),
            used: Cell::new(0),
            rooms: Cell::new(0),
        })
    }

    /// Bytes in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Bytes that may be in use.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Memory for one more connection, if there is any.
    #[must_use]
    pub fn admit(self: &Rc<Self>) -> Option<ConnectionRoom> {
        let used = self.used.get() + CONNECTION_BYTES;
        (used <= self.bytes_max).then(|| {
            self.used.set(used);
            ConnectionRoom {
                memory: Rc::clone(self),
                extra: Cell::new(0),
            }
        })
    }

    fn try_more(&self, bytes: usize) -> bool {
        let (used, rooms) = (self.used.get() + bytes, self.rooms.get() + bytes);
        let fits = used <= self.bytes_max && rooms <= self.bytes_max / ROOMS_DIVISOR;
        if fits {
            self.used.set(used);
            self.rooms.set(rooms);
        }
        fits
    }

    fn less(&self, bytes: usize) {
        self.used.set(self.used.get() - bytes);
        self.rooms.set(self.rooms.get() - bytes);
    }
}

/// What one connection holds; goes back when dropped.
#[derive(Debug)]
pub struct ConnectionRoom {
    memory: Rc<ConnectionMemory>,
    extra: Cell<usize>,
}

impl ConnectionRoom {
    /// How much of the `wanted` room it may have; it holds as much from now on.
    #[must_use]
    pub fn allow(&self, wanted: usize) -> usize {
        let (held, extra) = (self.extra.get(), wanted.saturating_sub(ROOM_BYTES_MIN));
        if extra < held {
            self.memory.less(held - extra);
            self.extra.set(extra);
        } else if extra > held && self.memory.try_more(extra - held) {
            self.extra.set(extra);
        }
        ROOM_BYTES_MIN + self.extra.get()
    }
}

impl Drop for ConnectionRoom {
    fn drop(&mut self) {
        self.memory.less(self.extra.get());
        self.memory
            .used
            .set(self.memory.used.get() - CONNECTION_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_admitted_up_to_the_limit_and_rooms_leave_half() {
        let memory = ConnectionMemory::new(4 * CONNECTION_BYTES);
        let busy = memory.admit().expect("the first");
        assert_eq!(busy.allow(ROOM_BYTES_MIN), ROOM_BYTES_MIN);
        let most = ROOM_BYTES_MIN + 2 * CONNECTION_BYTES;
        assert_eq!(busy.allow(most), most, "the limit");
        assert_eq!(busy.allow(most + 1), most, "one past it");
        let second = memory.admit();
        assert!(second.is_some() && memory.admit().is_none());
        assert_eq!(busy.allow(ROOM_BYTES_MIN), ROOM_BYTES_MIN, "it shrinks");
        assert!(memory.admit().is_some());
        drop((busy, second));
        assert_eq!((memory.used(), memory.rooms.get()), (0, 0));
    }
}
