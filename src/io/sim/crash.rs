//! How a process on the simulated disk ends: by SIGKILL or with the power.

use crate::base::limits::BLOCK_BYTES;
use crate::base::random::Random;
use crate::io::driver::{DirectoryOperation, Operation};

use super::content::{Change, blocks_of};
use super::disk::{InFlight, State};
use super::execution::{descriptor_of, text};

const MILLISECOND: u64 = 1_000_000;
/// How long after its death a process's writes may still land.
const LATE_NS_MAX: u64 = 50 * MILLISECOND;

/// What a write, cut or reservation does to its file, for a crash to choose from.
fn change_of(in_flight: &InFlight) -> Option<Change> {
    match &in_flight.operation {
        Operation::Write {
            position, buffer, ..
        } => {
            let end = buffer.len().min(in_flight.limit);
            let rest = buffer.get(in_flight.written..end)?;
            Some(Change::Write {
                position: position + in_flight.written as u64,
                bytes: rest.into(),
            })
        }
        Operation::Preallocate { position, len, .. } => {
            Some(Change::Allocate(blocks_of(*position, *len)))
        }
        Operation::Truncate { len, .. } => Some(Change::Truncate(*len)),
        _ => None,
    }
}

impl State {
    /// Changes to names under way happen or do not; what is left works on descriptors.
    fn settle_names(&mut self, random: &mut Random) -> Vec<InFlight> {
        let mut rest = Vec::new();
        for (_, in_flight) in std::mem::take(&mut self.in_flight) {
            match in_flight.operation {
                Operation::Directory(operation) => {
                    let flushes = matches!(operation, DirectoryOperation::Sync(_));
                    if !flushes && random.chance(1, 2) {
                        self.perform_names(operation, in_flight.begun, None);
                    }
                }
                Operation::Open { ref path, options } if random.chance(1, 2) => {
                    if let Ok(descriptor) = self.tree.open(text(path), options) {
                        self.tree.close(descriptor);
                    }
                }
                _ => rest.push(in_flight),
            }
        }
        rest
    }

    pub fn power_cut(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x0070_6f77_6572);
        let mut rest = self.settle_names(&mut random);
        let mut changes = Vec::new();
        while !rest.is_empty() {
            let in_flight = rest.swap_remove(random.below(rest.len() as u64) as usize);
            let descriptor = descriptor_of(&in_flight.operation);
            if let (Some(descriptor), Some(change)) = (descriptor, change_of(&in_flight)) {
                changes.push((descriptor, change));
            }
        }
        self.tree.power_cut(changes, &mut random);
        let event = format_args!("power cut {seed}");
        self.trace.event(self.clock_ns, event, &[]);
        self.clock_ns += random.below(5_000) * MILLISECOND;
        self.end_process();
    }

    pub fn kill(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x6b69_6c6c);
        for mut in_flight in self.settle_names(&mut random) {
            let Some(descriptor) = descriptor_of(&in_flight.operation) else {
                continue;
            };
            let lands = change_of(&in_flight).is_some() && random.chance(2, 3);
            if !lands {
                self.tree.end(descriptor);
                continue;
            }
            if let Operation::Write { buffer, .. } = &in_flight.operation
                && random.chance(1, 4)
            {
                let blocks = buffer.len().div_ceil(BLOCK_BYTES) as u64;
                let limit = random.below(blocks + 1) as usize * BLOCK_BYTES;
                in_flight.limit = limit.max(in_flight.written);
            }
            let due = self.clock_ns + random.below(LATE_NS_MAX);
            self.enqueue(due, in_flight);
        }
        let event = format_args!("kill {seed}");
        self.trace.event(self.clock_ns, event, &[]);
        self.tree.close_all();
        self.end_process();
    }

    fn end_process(&mut self) {
        self.process += 1;
        self.crashed = false;
        self.crash_at = None;
        self.completed.clear();
    }
}
