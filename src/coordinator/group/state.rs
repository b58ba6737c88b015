//! The states of a group and the moves between them.
//!
//! ```text
//!          ┌──────────────────────────────┐
//!          v                              │
//! Empty ──> PreparingRebalance ──> CompletingRebalance ──> Stable
//!   ^              │   ^                                     │
//!   └──────────────┘   └─────────────────────────────────────┘
//! ```
//!
//! A group that is deleted is forgotten; `Dead` is what is told of one that is not known.

use std::fmt;

/// Where a group stands (`ClassicGroupState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupState {
    /// No member; there may be offsets.
    Empty,
    /// Members are awaited to join.
    PreparingRebalance,
    /// The leader's assignment is awaited.
    CompletingRebalance,
    /// Every member knows its assignment, or may ask for it.
    Stable,
    /// Not known.
    Dead,
}

impl GroupState {
    /// Those that a group can be in that is known.
    pub const OF_KNOWN: [Self; 4] = [
        Self::Empty,
        Self::PreparingRebalance,
        Self::CompletingRebalance,
        Self::Stable,
    ];

    /// The name that Kafka's tools print.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }

    /// Whether a group in this state may start a rebalance.
    #[must_use]
    pub const fn can_rebalance(self) -> bool {
        self.may_become(Self::PreparingRebalance)
    }

    /// Whether a group may move from this state to that one.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match next {
            Self::Empty => matches!(self, Self::PreparingRebalance),
            Self::PreparingRebalance => {
                matches!(self, Self::Stable | Self::CompletingRebalance | Self::Empty)
            }
            Self::CompletingRebalance => matches!(self, Self::PreparingRebalance),
            Self::Stable => matches!(self, Self::CompletingRebalance),
            Self::Dead => true,
        }
    }
}

impl fmt::Display for GroupState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
