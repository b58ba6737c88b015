//! Test-only seeded bugs (JOURNAL §8): each makes the code break one invariant, and the simulation
//! must catch it. Without the feature `sim` every question is answered "no" at compile time.

/// One deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeededBug {
    /// A batch counts as durable when its cycle's write was issued.
    AckBeforeFlush,
    /// A cycle counts as durable before the ones that precede it.
    CycleDurableOutOfOrder,
    /// Recovery takes cycles of any incarnation.
    StaleIncarnationAccepted,
    /// A truncated log is written past the point before the TRUNCATE is durable.
    TruncateAfterRewrite,
    /// A new segment starts in the file of an old one.
    RecycledSegment,
    /// The next writer of a block does not wait for the one in flight.
    PartialBlockRewrittenInFlight,
    /// A journal file is overwritten before its logs' files and directories are synced.
    FileReusedBeforeDirectorySync,
    /// A duplicate is answered although its original is not durable.
    DuplicateAnsweredEarly,
    /// Segment bytes past the vouched end are kept when they are valid.
    TornTailKept,
    /// Damage below the durable end is cut like a tear.
    DamageCutAsTear,
    /// Recovery does not take the lock of the writing descriptors.
    LateWriteAfterRecovery,
}

impl SeededBug {
    /// All of them, for the test that must catch each.
    pub const ALL: [Self; 11] = [
        Self::AckBeforeFlush,
        Self::CycleDurableOutOfOrder,
        Self::StaleIncarnationAccepted,
        Self::TruncateAfterRewrite,
        Self::RecycledSegment,
        Self::PartialBlockRewrittenInFlight,
        Self::FileReusedBeforeDirectorySync,
        Self::DuplicateAnsweredEarly,
        Self::TornTailKept,
        Self::DamageCutAsTear,
        Self::LateWriteAfterRecovery,
    ];
}

#[cfg(feature = "sim")]
mod switch {
    use std::cell::Cell;

    use super::SeededBug;

    thread_local! {
        static ACTIVE: Cell<Option<SeededBug>> = const { Cell::new(None) };
    }

    /// Switches one bug on for this thread, or all off.
    pub fn seed_bug(bug: Option<SeededBug>) {
        ACTIVE.with(|active| active.set(bug));
    }

    /// Whether `bug` is on.
    #[must_use]
    pub fn is_seeded(bug: SeededBug) -> bool {
        ACTIVE.with(|active| active.get() == Some(bug))
    }
}

#[cfg(not(feature = "sim"))]
mod switch {
    use super::SeededBug;

    /// Never on without the feature `sim`.
    #[must_use]
    #[inline(always)]
    pub fn is_seeded(_bug: SeededBug) -> bool {
        false
    }
}

pub use switch::*;
