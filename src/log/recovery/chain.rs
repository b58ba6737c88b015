//! Which cycles of a journal count (JOURNAL §7.2). Pure: found cycles in, a chain out.

use std::collections::BTreeMap;

use crate::base::ids::Offset;
use crate::base::limits::BLOCK_BYTES;
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
    /// Its last cycles are gone: the last step stands for them.
    pub(crate) is_end_lost: bool,
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

/// Puts together what was found in one ring, all of one incarnation, of which the cycle `witnessed`
/// is known to have been on the disk.
pub(crate) fn assemble(found: Vec<FoundCycle>, witnessed: u64) -> Chain {
    let flushed = found
        .iter()
        .filter(|cycle| cycle.is_header_intact)
        .map(|cycle| cycle.header.flushed_sequence)
        .chain([witnessed])
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
        is_end_lost: false,
        has_tear: by_sequence.range(last + 1..).next().is_some(),
    };
    let newest = by_sequence.range(..=last).next_back();
    let lost = lost_end(newest.map(|(_, cycle)| cycle), last);
    let found_last = newest.map_or(0, |(sequence, _)| *sequence);
    for sequence in lowest..=found_last {
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
    chain.is_end_lost = lost.is_some();
    chain.steps.extend(lost.map(ChainStep::Damage));
    chain
}

/// The damage where cycles up to `last` were on the disk and the newest that is found is an older
/// one: a single one for all of them, where they must have begun.
fn lost_end(newest: Option<&FoundCycle>, last: u64) -> Option<DamagedCycle> {
    let found = newest.map_or(0, |cycle| cycle.header.sequence);
    let place = newest.map_or((0, 0), |cycle| {
        let bytes = match &cycle.records {
            Some(_) => (cycle.header.length as usize).next_multiple_of(BLOCK_BYTES),
            None => BLOCK_BYTES,
        };
        (cycle.place.0, cycle.place.1 + bytes as u64)
    });
    (found < last).then(|| DamagedCycle {
        sequence: found + 1,
        place: Some(place),
        readable: Vec::new(),
        concerns_all: true,
    })
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
        let chain = assemble(
            vec![cycle(1, 0, 1), cycle(2, 1, 1), torn(3), cycle(4, 1, 1)],
            0,
        );
        assert_eq!(
            (chain.last_sequence, chain.steps.len(), chain.has_tear),
            (2, 2, true)
        );
    }

    #[test]
    fn a_break_at_or_below_it_is_damage() {
        // The cycle that vouches for it lies past a break.
        let chain = assemble(vec![cycle(1, 0, 1), torn(2), cycle(4, 2, 1)], 0);
        assert_eq!(chain.last_sequence, 2);
        assert!(matches!(&chain.steps[1], ChainStep::Damage(cycle) if cycle.concerns_all));
        let chain = assemble(vec![cycle(1, 0, 1), cycle(3, 2, 1)], 0);
        assert_eq!(chain.last_sequence, 3);
        assert!(matches!(&chain.steps[1], ChainStep::Damage(cycle) if cycle.sequence == 2));
    }

    #[test]
    fn leftovers_of_an_earlier_lap_do_not_count() {
        let found = vec![cycle(2, 1, 1), cycle(7, 6, 7), cycle(8, 7, 7)];
        let chain = assemble(found, 0);
        assert_eq!((chain.last_sequence, chain.steps.len()), (8, 2));
        assert_eq!(assemble(Vec::new(), 0), Chain::default());
    }

    #[test]
    fn a_cycle_that_does_not_follow_the_one_before_ends_the_chain() {
        let mut stranger = cycle(2, 0, 1);
        stranger.header.previous_checksum = 99;
        let chain = assemble(vec![cycle(1, 0, 1), stranger], 0);
        assert_eq!((chain.last_sequence, chain.has_tear), (1, true));
    }

    /// Nothing is left that names the cycles after the second: only the witness does.
    #[test]
    fn an_end_before_the_witnessed_cycle_is_damage_in_one_piece() {
        let found = || vec![cycle(1, 0, 1), cycle(2, 1, 1)];
        for witnessed in [0, 1, 2] {
            let chain = assemble(found(), witnessed);
            assert_eq!((chain.last_sequence, chain.steps.len()), (2, 2));
        }
        for witnessed in [3, 4, u64::MAX - 1] {
            let chain = assemble(found(), witnessed);
            assert_eq!((chain.last_sequence, chain.steps.len()), (witnessed, 3));
            assert!(matches!(
                &chain.steps[2],
                ChainStep::Damage(damage) if damage.sequence == 3
                    && damage.concerns_all
                    && damage.place == Some((0, BLOCK_BYTES as u64))
            ));
        }
        let chain = assemble(Vec::new(), 9);
        assert!(matches!(&chain.steps[..], [ChainStep::Damage(damage)] if damage.sequence == 1));
        // What follows a hole below the witnessed cycle counts.
        let chain = assemble(vec![cycle(1, 0, 1), torn(2), cycle(3, 0, 1)], 3);
        assert_eq!((chain.last_sequence, chain.steps.len()), (3, 3));
        assert!(matches!(&chain.steps[2], ChainStep::Cycle(_)));
    }
}
