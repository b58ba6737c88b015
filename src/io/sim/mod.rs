//! The other driver: deterministic time and disk with seeded faults, over the same executor, so
//! that the code under test is the code that ships.
//!
//! The device's model (JOURNAL §2): a sector of 512 bytes is written whole or not at all, nothing
//! is ordered without a flush. What a power cut may leave and what a killed process may still
//! write is told in [`content`], [`names`] and [`crash`].
//!
//! Stricter than Linux on purpose: fsync of a new file does not keep its name, a synchronous write
//! keeps no byte but its own, and names in one directory are lost independently of each other.
//!
//! Absent: sockets (`Unsupported`), several processes at a time, memory pressure.

mod content;
mod crash;
mod disk;
mod driver;
mod execution;
mod failures;
mod faults;
mod names;
mod ranges;
mod runtime;
mod trace;
mod tree;
mod tree_names;

#[cfg(test)]
mod disk_test;
#[cfg(test)]
mod runtime_test;

pub use disk::{SimDisk, SimDiskOptions};
pub use faults::{Fault, FaultEffect, OperationKind};
pub use runtime::{Crashed, SimRuntime};
