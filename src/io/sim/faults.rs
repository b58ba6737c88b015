//! What goes wrong on purpose: faults that a test arms, each for chosen operations on chosen paths.

use std::time::Duration;

/// Kinds of operation that a fault can hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    Open,
    Read,
    Write,
    /// fdatasync, fsync, and the flush in a synchronous write.
    Flush,
    Preallocate,
    Truncate,
    Lock,
    /// mkdir, rename, unlink.
    Names,
    SyncDirectory,
    SyncFilesystem,
    /// Listings, sizes, free room.
    Look,
}

/// What happens to the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// It fails with EIO; a write may have reached the device in part, a flush has lost what it
    /// should have written.
    Eio,
    /// It fails with ENOSPC and changes nothing.
    Enospc,
    /// It takes only a part of its bytes.
    Short,
    /// It takes this much longer.
    Stall(Duration),
}

/// One armed fault.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Which operations.
    pub kind: OperationKind,
    /// Only on paths that contain this; empty: on any.
    pub path_part: String,
    /// So many matching operations pass unharmed first.
    pub skip: u64,
    /// So many matching operations are hit after that.
    pub count: u64,
    /// What happens to them.
    pub effect: FaultEffect,
}

/// The faults of a disk, in the order of arming.
#[derive(Debug, Default)]
pub struct Faults {
    armed: Vec<Fault>,
    /// How many operations were hit.
    pub hits: u64,
}

impl Faults {
    pub fn arm(&mut self, fault: Fault) {
        self.armed.push(fault);
    }

    pub fn clear(&mut self) {
        self.armed.clear();
    }

    /// The effect on an operation of `kind` on `path`; counts it.
    pub fn strike(&mut self, kind: OperationKind, path: &str) -> Option<FaultEffect> {
        let mut effect = None;
        for fault in &mut self.armed {
            if fault.kind != kind || !path.contains(&fault.path_part) || fault.count == 0 {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if effect.is_none() {
                fault.count -= 1;
                effect = Some(fault.effect);
            }
        }
        self.armed.retain(|fault| fault.count > 0);
        self.hits += u64::from(effect.is_some());
        effect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_skips_then_hits_then_is_spent() {
        let mut faults = Faults::default();
        faults.arm(Fault {
            kind: OperationKind::Write,
            path_part: "journal".into(),
            skip: 1,
            count: 1,
            effect: FaultEffect::Eio,
        });
        let mut strike = |kind, path| faults.strike(kind, path);
        assert_eq!(strike(OperationKind::Read, "/journal"), None);
        assert_eq!(strike(OperationKind::Write, "/topic-0"), None);
        assert_eq!(strike(OperationKind::Write, "/journal/1"), None);
        let hit = strike(OperationKind::Write, "/journal/1");
        assert_eq!(hit, Some(FaultEffect::Eio));
        assert_eq!(strike(OperationKind::Write, "/journal/1"), None);
    }
}
