//! The parts of a request's way, and how long one request spent in each.

use std::time::Duration;

use crate::base::time::MonotonicNs;

macro_rules! named {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        impl $type {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Name in tables and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}
pub(super) use named;

named! {
    /// A part of a request's way. Each is recorded on the shard where it happens.
    Stage {
        /// From the first byte of a frame to its last, and the wait for memory to take it in. Only
        /// that wait is part of a request's latency, which begins with the whole frame.
        Read = "read",
        /// From the whole frame to the decoded message that is handed over.
        Decode = "decode",
        /// Waiting for the owner's turn, on its own shard.
        Queue = "queue",
        /// From the send on one shard to the arrival on another.
        Hop = "hop",
        /// A handler's own work: reading records, asking the controller.
        Handle = "handle",
        /// Validation, room in journal and cache, and the append in memory.
        Append = "append",
        /// From there to the issue of the journal cycle that makes it durable; with write caching
        /// that cycle's write too.
        Journal = "journal",
        /// From the issue of a write to its bytes on stable storage.
        Flush = "flush",
        /// A write of journalled bytes to a segment, in the background: no request waits for it.
        WriteBack = "write-back",
        /// The wait that a client asked for: a long poll. No part of a request's latency.
        Park = "park",
        /// From the ready answer to its last byte given to the socket: the way back, answers before
        /// it on the connection, a client that reads slowly.
        Respond = "respond",
    }
}

/// How many stages there are.
pub const STAGES: usize = Stage::ALL.len();

/// How long one request spent in each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    ns: [u64; STAGES],
}

impl StageTimes {
    /// Adds a pass through a stage.
    pub fn add(&mut self, stage: Stage, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(sum) = self.ns.get_mut(stage as usize) {
            *sum = sum.saturating_add(ns);
        }
    }

    /// Adds what another part of the same request measured.
    pub fn merge(&mut self, other: &Self) {
        for (sum, ns) in self.ns.iter_mut().zip(&other.ns) {
            *sum = sum.saturating_add(*ns);
        }
    }

    /// Time in one stage.
    #[must_use]
    pub fn get(&self, stage: Stage) -> Duration {
        Duration::from_nanos(self.ns.get(stage as usize).copied().unwrap_or(0))
    }

    /// Time in all of them.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.ns.iter().fold(0, |sum, ns| sum.saturating_add(*ns)))
    }

    pub(super) fn as_ns(&self) -> &[u64; STAGES] {
        &self.ns
    }
}

/// When a message to a shard passed its stations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// Handed to the outbox.
    pub sent_at: MonotonicNs,
    /// Taken by the owner's loop.
    pub taken_at: MonotonicNs,
    /// Its turn has come.
    pub started_at: MonotonicNs,
    /// Whether it came from another shard.
    pub is_hop: bool,
    /// How long the owner's thread was at it, where that is asked for.
    pub busy: Duration,
}

impl Visit {
    /// A message that is being sent.
    #[must_use]
    pub fn sent(now: MonotonicNs) -> Self {
        Self {
            sent_at: now,
            ..Self::default()
        }
    }

    /// It has come.
    pub fn take(&mut self, now: MonotonicNs, is_hop: bool) {
        (self.taken_at, self.is_hop) = (now, is_hop);
    }

    /// Time between the shards.
    #[must_use]
    pub fn hop(&self) -> Duration {
        match self.is_hop {
            true => self.taken_at.since(self.sent_at),
            false => Duration::ZERO,
        }
    }

    /// Time until its turn, on the owner's shard.
    #[must_use]
    pub fn queue(&self) -> Duration {
        let from = if self.is_hop {
            self.taken_at
        } else {
            self.sent_at
        };
        self.started_at.since(from)
    }

    /// Adds its part to a request's times.
    pub fn add_to(&self, times: &mut StageTimes) {
        times.add(Stage::Hop, self.hop());
        times.add(Stage::Queue, self.queue());
    }
}
