//! The last offset of each key, in memory that is bounded beforehand: an open table of hashes, for
//! the keys themselves would have no bound (`SkimpyOffsetMap`).
//!
//! A hash is 128 bits of two SipHashes that begin with random numbers of this table: whoever
//! chooses keys can make no two of them meet.

use std::hash::{DefaultHasher, Hasher};

use crate::base::ids::Offset;

/// Bytes of one key's entry.
pub(crate) const SLOT_BYTES: usize = size_of::<Slot>();
const _: () = assert!(SLOT_BYTES == 24);
/// A table is never smaller, so that an empty dirty part needs no special case.
const SLOTS_MIN: usize = 16;
/// Of an empty slot.
const NONE: i64 = -1;

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: [u64; 2],
    offset: i64,
}

/// How large a table is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyMapSize {
    /// Bytes that it may take.
    pub(crate) bytes_max: usize,
    /// How full it may become, above 0 and at most 1.
    pub(crate) load_factor: f64,
    /// Keys that there can be at most.
    pub(crate) keys_max: u64,
}

/// See the head of the module.
#[derive(Debug)]
pub(crate) struct KeyMap {
    slots: Vec<Slot>,
    used: usize,
    used_max: usize,
    /// Keys that fit into what was allowed.
    allowed: usize,
    seeds: [u64; 2],
    latest: Offset,
}

impl KeyMap {
    /// An empty table.
    pub(crate) fn new(size: KeyMapSize, seeds: [u64; 2]) -> Self {
        let load = match size.load_factor {
            load if load > 0.0 && load < 1.0 => load,
            _ => 1.0,
        };
        let slots_max = size.bytes_max / SLOT_BYTES;
        let allowed = (slots_max as f64 * load) as usize;
        let keys = usize::try_from(size.keys_max).unwrap_or(usize::MAX);
        let slots = (keys.min(allowed) as f64 / load).ceil() as usize;
        let slots = slots.saturating_add(1).min(slots_max).max(SLOTS_MIN);
        let empty = Slot {
            hash: [0; 2],
            offset: NONE,
        };
        Self {
            slots: vec![empty; slots],
            used: 0,
            used_max: allowed.min((slots as f64 * load) as usize).min(slots - 1),
            allowed: allowed.max(1),
            seeds,
            latest: Offset(-1),
        }
    }

    /// Notes a key's record. False where there is no room for one more key; nothing changes then.
    pub(crate) fn put(&mut self, key: &[u8], offset: Offset) -> bool {
        let hash = self.hash(key);
        let is_full = self.used >= self.used_max;
        let Some(slot) = find(&mut self.slots, hash) else {
            return false;
        };
        if slot.offset == NONE {
            if is_full {
                return false;
            }
            slot.hash = hash;
            self.used += 1;
        }
        slot.offset = offset.0;
        true
    }

    /// Gives the memory back; nothing fits in any more.
    pub(crate) fn clear(&mut self) {
        (self.slots, self.used_max) = (Vec::new(), 0);
    }

    /// The last record of a key, if the key was met.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Offset> {
        let hash = self.hash(key);
        let at = place(hash, self.slots.len());
        let (front, back) = self.slots.split_at_checked(at)?;
        let mut slots = back.iter().chain(front);
        let slot = slots.find(|slot| slot.offset == NONE || slot.hash == hash)?;
        (slot.offset != NONE).then_some(Offset(slot.offset))
    }

    /// The last offset that it covers; -1: none.
    pub(crate) fn latest(&self) -> Offset {
        self.latest
    }

    /// It covers everything up to `offset`.
    pub(crate) fn cover(&mut self, offset: Offset) {
        self.latest = self.latest.max(offset);
    }

    /// Part in use of what was allowed.
    pub(crate) fn utilization(&self) -> f64 {
        self.used as f64 / self.allowed as f64
    }

    fn hash(&self, key: &[u8]) -> [u64; 2] {
        self.seeds.map(|seed| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(seed);
            hasher.write(key);
            hasher.finish()
        })
    }
}

fn place(hash: [u64; 2], slots: usize) -> usize {
    (hash[0] % slots.max(1) as u64) as usize
}

/// The key's slot, or the empty one where it belongs.
fn find(slots: &mut [Slot], hash: [u64; 2]) -> Option<&mut Slot> {
    let at = place(hash, slots.len());
    let (front, back) = slots.split_at_mut_checked(at)?;
    let mut slots = back.iter_mut().chain(front);
    slots.find(|slot| slot.offset == NONE || slot.hash == hash)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::base::random::Random;

    fn size(bytes_max: usize, keys_max: u64) -> KeyMapSize {
        KeyMapSize {
            bytes_max,
            load_factor: 0.9,
            keys_max,
        }
    }

    #[test]
    fn it_knows_what_a_map_knows() {
        let mut random = Random::new(7);
        let mut map = KeyMap::new(size(SLOT_BYTES * 1_000, u64::MAX), [1, 2]);
        let mut model = HashMap::new();
        for offset in 0..20_000 {
            let key = random.below(899).to_be_bytes();
            assert!(map.put(&key, Offset(offset)));
            model.insert(key, Offset(offset));
        }
        for key in 0..1_000_u64 {
            let key = key.to_be_bytes();
            assert_eq!(map.get(&key), model.get(&key).copied());
        }
        assert!(map.utilization() > 0.99);
    }

    #[test]
    fn it_takes_as_many_keys_as_its_memory_allows_and_not_one_more() {
        let mut map = KeyMap::new(size(SLOT_BYTES * 100, u64::MAX), [1, 2]);
        for key in 0..90_u64 {
            assert!(map.put(&key.to_be_bytes(), Offset(1)), "{key}");
        }
        assert!(!map.put(&90_u64.to_be_bytes(), Offset(1)));
        assert_eq!(map.get(&90_u64.to_be_bytes()), None);
        // Keys that it knows are still noted.
        assert!(map.put(&5_u64.to_be_bytes(), Offset(9)));
        assert_eq!(map.get(&5_u64.to_be_bytes()), Some(Offset(9)));
    }

    #[test]
    fn it_takes_no_more_memory_than_its_keys_need() {
        let map = KeyMap::new(size(1 << 30, 900), [1, 2]);
        assert!(map.slots.len() <= 1_002, "{}", map.slots.len());
        let mut map = KeyMap::new(size(1 << 30, 900), [1, 2]);
        assert!((0..900_u64).all(|key| map.put(&key.to_be_bytes(), Offset(0))));
    }
}
