//! Which cycles of a journal count (JOURNAL §7.2). Pure: found cycles in, a chain out.

use std::collections::BTreeMap;

use crate::base::ids::Offset;
use crate::log::journal::cycle::CycleHeader;
use crate::log::journal::record::{LogId, RecordHeader};

/// One record and where its inline bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundRecord {
    pub(crate) header: RecordHeader,
    /// Which of the ring files was read.
    pub(crate) file: usize,
    /// Position of the inline bytes in it.
    pub(crate) inline_at: u64,
    /// What a WATERMARK carries: log start offset and recovery point.
    pub(crate) watermark: Option<(Offset, Offset)>,
}

/// A place in a ring where a cycle's header was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundCycle {
    /// Which of the ring files it is in, and where.
    pub(crate) place: (usize, u64),
    pub(crate) header: CycleHeader,
    pub(crate) checksum: u32,
    /// Header and table are what was written.
    pub(crate) is_header_intact: bool,
    /// All records, if the whole cycle is what was written.
    pub(crate) records: Option<Vec<FoundRecord>>,
    /// Of a cycle that is not whole: the record headers that can be read; `None` at the end when
    /// the walk over them broke.
    pub(crate) readable: Vec<Option<RecordHeader>>,
}

/// A gap below the highest flushed sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DamagedCycle {
    pub(crate) sequence: u64,
    /// Where it stands, if its header was found.
    pub(crate) place: Option<(usize, u64)>,
    /// What its readable headers say.
    pub(crate) readable: Vec<RecordHeader>,
    /// Something in it cannot be read: every log of the journal may be concerned.
    pub(crate) concerns_all: bool,
}

/// One step of the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChainStep {
    /// A whole cycle.
    Cycle(Vec<FoundRecord>),
    /// A damaged one.
    Damage(DamagedCycle),
}

/// The chain of one journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) steps: Vec<ChainStep>,
    /// The last cycle that counts; 0: none.
    pub(crate) last_sequence: u64,
    /// A cycle past it was begun and is torn.
    pub(crate) has_tear: bool,
}

impl Chain {
    /// Logs that some readable record names.
    pub(crate) fn named_logs(&self) -> impl Iterator<Item = LogId> + '_ {
        self.steps.iter().flat_map(|step| {
            let ids: Vec<LogId> = match step {
                ChainStep::Cycle(records) => {
                    records.iter().map(|record| record.header.log_id).collect()
                }
                ChainStep::Damage(cycle) => {
                    cycle.readable.iter().map(|header| header.log_id).collect()
                }
            };
            ids
        })
    }
}

/// Puts together what was found in one ring, all of one incarnation.
pub(crate) fn assemble(found: Vec<FoundCycle>) -> Chain {
    let flushed = found
        .iter()
        .filter(|cycle| cycle.is_header_intact)
        .map(|cycle| cycle.header.flushed_sequence)
        .max()
        .unwrap_or(0);
    let mut by_sequence: BTreeMap<u64, FoundCycle> = BTreeMap::new();
    for cycle in found {
        let known = by_sequence.get(&cycle.header.sequence);
        // A destroyed header may claim any sequence: the sound one counts.
        if known.is_none_or(|known| known.records.is_none()) {
            by_sequence.insert(cycle.header.sequence, cycle);
        }
    }
    let last = end_of_chain(&by_sequence, flushed);
    let lowest = by_sequence
        .range(..=last)
        .filter(|(_, cycle)| cycle.records.is_some())
        .map(|(_, cycle)| cycle.header.lowest_live_sequence)
        .max()
        .unwrap_or(1);
    let mut chain = Chain {
        steps: Vec::new(),
        last_sequence: last,
        has_tear: by_sequence.range(last + 1..).next().is_some(),
    };
    for sequence in lowest..=last {
        match by_sequence.remove(&sequence) {
            Some(FoundCycle {
                records: Some(records),
                ..
            }) => {
                chain.steps.push(ChainStep::Cycle(records));
            }
            Some(cycle) => chain.steps.push(ChainStep::Damage(damaged(cycle))),
            None => chain.steps.push(ChainStep::Damage(DamagedCycle {
                sequence,
                place: None,
                readable: Vec::new(),
                concerns_all: true,
            })),
        }
    }
    chain
}

/// The last cycle that counts: all up to the highest flushed one, and whole ones that follow it
/// without a break.
fn end_of_chain(by_sequence: &BTreeMap<u64, FoundCycle>, flushed: u64) -> u64 {
    let mut last = flushed;
    while let Some(next) = by_sequence.get(&(last + 1)) {
        let before = by_sequence
            .get(&last)
            .filter(|cycle| cycle.records.is_some());
        let follows = before.is_none_or(|before| before.checksum == next.header.previous_checksum);
        if next.records.is_none() || !follows {
            break;
        }
        last += 1;
    }
    last
}

fn damaged(cycle: FoundCycle) -> DamagedCycle {
    let is_broken = !cycle.is_header_intact || cycle.readable.iter().any(Option::is_none);
    DamagedCycle {
        sequence: cycle.header.sequence,
        place: Some(cycle.place),
        concerns_all: is_broken,
        readable: cycle.readable.into_iter().flatten().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{ShardId, Uuid};

    fn cycle(sequence: u64, flushed: u64, lowest: u64) -> FoundCycle {
        FoundCycle {
            place: (0, 0),
            header: CycleHeader {
                incarnation: Uuid::ZERO,
                sequence,
                length: 80,
                record_count: 0,
                flushed_sequence: flushed,
                lowest_live_sequence: lowest,
                previous_checksum: sequence as u32 - 1,
                shard: ShardId(0),
            },
            checksum: sequence as u32,
            is_header_intact: true,
            records: Some(Vec::new()),
            readable: Vec::new(),
        }
    }

    fn torn(sequence: u64) -> FoundCycle {
        FoundCycle {
            records: None,
            is_header_intact: false,
            ..cycle(sequence, 0, 1)
        }
    }

    #[test]
    fn a_break_above_the_flushed_sequence_is_a_tear() {
        let chain = assemble(vec![
            cycle(1, 0, 1),
            cycle(2, 1, 1),
            torn(3),
            cycle(4, 1, 1),
        ]);
        assert_eq!(
            (chain.last_sequence, chain.steps.len(), chain.has_tear),
            (2, 2, true)
        );
    }

    #[test]
    fn a_break_at_or_below_it_is_damage() {
        // The cycle that vouches for it lies past a break.
        let chain = assemble(vec![cycle(1, 0, 1), torn(2), cycle(4, 2, 1)]);
        assert_eq!(chain.last_sequence, 2);
        assert!(matches!(&chain.steps[1], ChainStep::Damage(cycle) if cycle.concerns_all));
        let chain = assemble(vec![cycle(1, 0, 1), cycle(3, 2, 1)]);
        assert_eq!(chain.last_sequence, 3);
        assert!(matches!(&chain.steps[1], ChainStep::Damage(cycle) if cycle.sequence == 2));
    }

    #[test]
    fn leftovers_of_an_earlier_lap_do_not_count() {
        let found = vec![cycle(2, 1, 1), cycle(7, 6, 7), cycle(8, 7, 7)];
        let chain = assemble(found);
        assert_eq!((chain.last_sequence, chain.steps.len()), (8, 2));
        assert_eq!(assemble(Vec::new()), Chain::default());
    }

    #[test]
    fn a_cycle_that_does_not_follow_the_one_before_ends_the_chain() {
        let mut stranger = cycle(2, 0, 1);
        stranger.header.previous_checksum = 99;
        let chain = assemble(vec![cycle(1, 0, 1), stranger]);
        assert_eq!((chain.last_sequence, chain.has_tear), (1, true));
    }
}
