use std::collections::BTreeMap;

use proptest::prelude::*;

use super::epoch_cache::EpochCache;
use crate::base::ids::{LeaderEpoch, Offset};

fn cache(entries: &[(i32, i64)]) -> EpochCache {
    let mut cache = EpochCache::default();
    for (epoch, offset) in entries {
        assert!(cache.assign(LeaderEpoch(*epoch), Offset(*offset)));
    }
    cache
}

fn listed(cache: &EpochCache) -> Vec<(i32, i64)> {
    cache
        .entries()
        .iter()
        .map(|entry| (entry.leader_epoch.0, entry.start_offset.0))
        .collect()
}

#[test]
fn the_file_is_kafkas() {
    let cache = cache(&[(0, 0), (3, 17)]);
    assert_eq!(cache.encode(), b"0\n2\n0 0\n3 17\n");
    assert_eq!(EpochCache::decode(b"0\n2\n0 0\n3 17\n"), Ok(cache));
    for (text, position) in [
        ("0\n1\n-1 0\n", 4),
        ("0\n1\n0 -1\n", 4),
        ("0\n1\n0 0 0\n", 4),
    ] {
        assert_eq!(
            EpochCache::decode(text.as_bytes()).unwrap_err().position,
            position
        );
    }
}

#[test]
fn a_new_epoch_drops_what_contradicts_it() {
    let mut cache = cache(&[(1, 10), (2, 20), (3, 30)]);
    assert!(!cache.assign(LeaderEpoch(3), Offset(31)), "known already");
    assert!(cache.assign(LeaderEpoch(4), Offset(20)));
    assert_eq!(listed(&cache), [(1, 10), (4, 20)]);
    assert!(cache.assign(LeaderEpoch(2), Offset(25)));
    assert_eq!(listed(&cache), [(1, 10), (2, 25)]);
    assert!(cache.assign(LeaderEpoch(2), Offset(15)));
    assert_eq!(listed(&cache), [(1, 10), (2, 15)]);
    assert!(!cache.assign(LeaderEpoch(-1), Offset(15)));
}

#[test]
fn ends_of_epochs_are_those_of_kafka() {
    let cache = cache(&[(2, 10), (4, 20), (7, 30)]);
    let end = |epoch| {
        let (found, offset) = cache.end_offset_for(LeaderEpoch(epoch), Offset(99));
        (found.0, offset.0)
    };
    assert_eq!(end(-1), (-1, -1));
    assert_eq!(end(1), (1, 10), "older than all");
    assert_eq!(end(2), (2, 20));
    assert_eq!(end(3), (2, 20), "between two");
    assert_eq!(end(6), (4, 30));
    assert_eq!(end(7), (7, 99), "the latest ends with the log");
    assert_eq!(end(8), (-1, -1), "not yet known");
    let empty = EpochCache::default().end_offset_for(LeaderEpoch(0), Offset(9));
    assert_eq!(empty, (LeaderEpoch(-1), Offset(-1)));
}

/// Kafka's structure and rules, on its own kind of map.
#[derive(Default)]
struct Model(BTreeMap<i32, i64>);

impl Model {
    fn assign(&mut self, epoch: i32, offset: i64) {
        let latest = self
            .0
            .last_key_value()
            .map(|(epoch, offset)| (*epoch, *offset));
        if latest.is_some_and(|(latest, start)| latest == epoch && offset >= start) {
            return;
        }
        while let Some(last) = self.0.last_entry() {
            if *last.key() >= epoch || *last.get() >= offset {
                last.remove();
            } else {
                break;
            }
        }
        self.0.insert(epoch, offset);
    }

    fn truncate_from_start(&mut self, offset: i64) {
        let mut removed = None;
        while let Some(first) = self.0.first_entry() {
            if *first.get() > offset {
                break;
            }
            removed = Some(first.remove_entry().0);
        }
        if let Some(epoch) = removed {
            self.0.insert(epoch, offset);
        }
    }
}

proptest! {
    #[test]
    fn any_history_gives_what_kafkas_rules_give(
        steps in proptest::collection::vec((0u8..4, 0i32..12, 0i64..40), 0..40)
    ) {
        let mut cache = EpochCache::default();
        let mut model = Model::default();
        for (kind, epoch, offset) in steps {
            match kind {
                0 | 1 => {
                    cache.assign(LeaderEpoch(epoch), Offset(offset));
                    model.assign(epoch, offset);
                }
                2 => {
                    cache.truncate_from_end(Offset(offset));
                    model.0.retain(|_, start| *start < offset);
                }
                _ => {
                    cache.truncate_from_start(Offset(offset));
                    model.truncate_from_start(offset);
                }
            }
            let expected: Vec<(i32, i64)> = model.0.clone().into_iter().collect();
            prop_assert_eq!(listed(&cache), expected);
            for probe in 0..40 {
                let expected = model.0.iter().rev().find(|(_, start)| **start <= probe);
                let found = cache.epoch_for_offset(Offset(probe));
                prop_assert_eq!(found.map(|epoch| epoch.0), expected.map(|(epoch, _)| *epoch));
            }
            prop_assert_eq!(EpochCache::decode(&cache.encode()), Ok(cache.clone()));
        }
    }

    /// A log is walked from anywhere on: what the file knows of its epochs is as it was before,
    /// and what it does not know, or says of batches that are gone, is put right from there on.
    #[test]
    fn a_walk_leaves_what_is_known_and_mends_the_rest(
        starts in proptest::collection::btree_set(1i64..40, 1..8),
        (known, from) in (0i64..50, 0i64..40),
        stale in proptest::option::of(0i64..10),
    ) {
        let starts: Vec<i64> = std::iter::once(0).chain(starts).collect();
        let epoch_at = |offset: i64| starts.partition_point(|start| *start <= offset) as i32;
        let mut whole = EpochCache::default();
        let mut file = EpochCache::default();
        for start in &starts {
            whole.assign(LeaderEpoch(epoch_at(*start)), Offset(*start));
            // The file is never older than the place that the walk begins at.
            if *start < known.max(from + 1) {
                file.assign(LeaderEpoch(epoch_at(*start)), Offset(*start));
            }
        }
        if let Some(behind) = stale {
            // Of batches that were lost: an epoch was begun behind the log's end.
            file.assign(LeaderEpoch(99), Offset(40 + behind));
        }
        for offset in from..40 {
            file.take_in(LeaderEpoch(epoch_at(offset)), Offset(offset));
        }
        file.truncate_from_end(Offset(40));
        prop_assert_eq!(listed(&file), listed(&whole));
    }
}
