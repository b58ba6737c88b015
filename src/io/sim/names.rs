//! Directories of the simulated disk: each name as processes see it and as stable storage holds it.
//! At a power cut every change to a name that no directory flush vouches for is kept or lost for
//! itself; a rename is one change.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::random::Random;

/// Number of a file or directory, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeId(pub u64);

/// The root directory.
pub const ROOT: InodeId = InodeId(0);

/// A place for a name: directory and name in it.
pub type Place = (InodeId, String);

#[derive(Clone, Debug)]
enum NameChange {
    Link(Place, InodeId),
    Unlink(Place),
    Rename(Place, Place, InodeId),
}

impl NameChange {
    fn touches(&self, directory: InodeId) -> bool {
        match self {
            Self::Link(place, _) | Self::Unlink(place) => place.0 == directory,
            Self::Rename(from, to, _) => from.0 == directory || to.0 == directory,
        }
    }
}

#[derive(Clone, Debug)]
struct Pending {
    sequence: u64,
    change: NameChange,
    stable: bool,
}

/// Names by place.
type Tree = BTreeMap<Place, InodeId>;

fn apply(tree: &mut Tree, change: &NameChange) {
    match change {
        NameChange::Link(place, inode) => {
            tree.insert(place.clone(), *inode);
        }
        NameChange::Unlink(place) => {
            tree.remove(place);
        }
        NameChange::Rename(from, to, inode) => {
            if tree.get(from) == Some(inode) {
                tree.remove(from);
            }
            tree.insert(to.clone(), *inode);
        }
    }
}

/// All names of the disk.
#[derive(Clone, Debug, Default)]
pub struct Names {
    visible: Tree,
    durable: Tree,
    pending: Vec<Pending>,
}

impl Names {
    /// What `name` in `directory` stands for.
    pub fn lookup(&self, directory: InodeId, name: &str) -> Option<InodeId> {
        self.visible.get(&(directory, name.to_owned())).copied()
    }

    /// The names in `directory`, sorted.
    pub fn list(&self, directory: InodeId) -> Vec<(String, InodeId)> {
        self.visible
            .range((directory, String::new())..)
            .take_while(|((parent, _), _)| *parent == directory)
            .map(|((_, name), inode)| (name.clone(), *inode))
            .collect()
    }

    /// All inodes that have a name now.
    pub fn linked(&self) -> BTreeSet<InodeId> {
        self.visible.values().copied().chain([ROOT]).collect()
    }

    fn change(&mut self, sequence: u64, change: NameChange) {
        apply(&mut self.visible, &change);
        self.pending.push(Pending {
            sequence,
            change,
            stable: false,
        });
    }

    pub fn link(&mut self, sequence: u64, place: Place, inode: InodeId) {
        self.change(sequence, NameChange::Link(place, inode));
    }

    pub fn unlink(&mut self, sequence: u64, place: Place) {
        self.change(sequence, NameChange::Unlink(place));
    }

    pub fn rename(&mut self, sequence: u64, from: Place, to: Place, inode: InodeId) {
        self.change(sequence, NameChange::Rename(from, to, inode));
    }

    /// A flush of `directory` (of every directory with `None`) that saw everything up to
    /// `sequence` has succeeded.
    pub fn flush(&mut self, sequence: u64, directory: Option<InodeId>) {
        for pending in &mut self.pending {
            let covered = directory.is_none_or(|directory| pending.change.touches(directory));
            pending.stable |= covered && pending.sequence <= sequence;
        }
        let settled = self
            .pending
            .iter()
            .position(|pending| !pending.stable)
            .unwrap_or(self.pending.len());
        for pending in self.pending.drain(..settled) {
            apply(&mut self.durable, &pending.change);
        }
    }

    /// The power fails: unflushed changes are kept or lost one by one.
    pub fn power_cut(&mut self, random: &mut Random) {
        for pending in std::mem::take(&mut self.pending) {
            if pending.stable || random.chance(1, 2) {
                apply(&mut self.durable, &pending.change);
            }
        }
        // A name in a directory that lost its own name is out of reach, and so are those below.
        let mut reached = BTreeSet::from([ROOT]);
        let mut grown = true;
        while grown {
            grown = false;
            for ((parent, _), inode) in &self.durable {
                grown |= reached.contains(parent) && reached.insert(*inode);
            }
        }
        self.durable
            .retain(|(parent, _), _| reached.contains(parent));
        self.visible = self.durable.clone();
    }
}
