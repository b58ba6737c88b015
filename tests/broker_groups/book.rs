//! What simulated members were told and had acknowledged, and what of it cannot be.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Kept by all members together.
#[derive(Debug, Default)]
pub struct Book {
    /// Who was told to consume a partition, by generation.
    owners: HashMap<(i32, i32), String>,
    /// The last generation that anybody was told an assignment of.
    pub generation: i32,
    /// The highest commit of each partition that was acknowledged.
    acknowledged: BTreeMap<i32, i64>,
    /// The last commit of each partition that a fetch has told.
    fetched: BTreeMap<i32, i64>,
    /// What each living member holds now: its generation and its partitions.
    pub holds: BTreeMap<usize, (i32, BTreeSet<i32>)>,
    /// What each does now.
    pub places: BTreeMap<usize, &'static str>,
    pub faults: Vec<String>,
    pub assignments: usize,
    pub commits: usize,
    pub refused: usize,
}

impl Book {
    /// A member was told what it is to consume.
    pub fn assigned(&mut self, generation: i32, member_id: &str, partitions: &BTreeSet<i32>) {
        self.assignments += 1;
        self.generation = self.generation.max(generation);
        for partition in partitions {
            let key = (generation, *partition);
            let owner = self.owners.entry(key).or_insert_with(|| member_id.into());
            if owner != member_id {
                let text = format!("{partition} in {generation}: {owner} and {member_id}");
                self.faults.push(text);
            }
        }
    }

    /// A commit was acknowledged. `known` is the generation that somebody had an assignment of
    /// before the commit was sent.
    pub fn committed(&mut self, (generation, known): (i32, i32), offsets: &[(i32, i64)]) {
        self.commits += 1;
        if known > generation {
            let text = format!("a commit of {generation} counted in {known}: {offsets:?}");
            self.faults.push(text);
        }
        for (partition, offset) in offsets {
            let last = self.acknowledged.entry(*partition).or_insert(-1);
            *last = (*last).max(*offset);
        }
    }

    /// What is acknowledged: a fetch that begins now tells no less.
    pub fn acknowledged(&self) -> BTreeMap<i32, i64> {
        self.acknowledged.clone()
    }

    /// A fetch was answered that began when `before` was acknowledged.
    pub fn fetched(&mut self, before: &BTreeMap<i32, i64>, offsets: &[(i32, i64)]) {
        for (partition, offset) in offsets {
            let least = before.get(partition).copied().unwrap_or(-1);
            if *offset < least {
                let text = format!("{partition}: {least} was acknowledged, {offset} fetched");
                self.faults.push(text);
            }
        }
    }

    /// The same of one watcher whose fetches come one after the other: none goes back.
    pub fn watched(&mut self, offsets: &[(i32, i64)]) {
        for (partition, offset) in offsets {
            let last = self.fetched.entry(*partition).or_insert(-1);
            if offset < last {
                let text = format!("{partition}: {last} was fetched, then {offset}");
                self.faults.push(text);
            }
            *last = *offset;
        }
    }

    /// Whether so many members hold all partitions between them, in one generation.
    pub fn is_whole(&self, members: usize, partitions: i32) -> bool {
        let mut held = BTreeSet::new();
        let is_disjoint = (self.holds.values())
            .all(|(_, own)| own.iter().all(|partition| held.insert(*partition)));
        let generations: BTreeSet<i32> = self.holds.values().map(|one| one.0).collect();
        let is_all = held.len() == partitions as usize && self.holds.len() == members;
        is_disjoint && is_all && generations.len() == 1
    }
}

#[test]
fn the_book_finds_what_cannot_be() {
    let all = |range: std::ops::Range<i32>| range.collect::<BTreeSet<i32>>();
    let mut book = Book::default();
    book.assigned(1, "a", &all(0..2));
    book.assigned(1, "b", &all(2..4));
    book.assigned(2, "b", &all(0..4));
    book.committed((2, 2), &[(0, 5)]);
    book.fetched(&book.acknowledged(), &[(0, 5), (1, -1)]);
    book.watched(&[(0, 5)]);
    book.watched(&[(0, 5)]);
    assert!(book.faults.is_empty(), "{:?}", book.faults);
    book.assigned(2, "a", &all(3..4));
    book.committed((1, 2), &[(1, 1)]);
    book.fetched(&book.acknowledged(), &[(0, 4)]);
    book.watched(&[(0, 4)]);
    assert_eq!(book.faults.len(), 4, "{:?}", book.faults);
    book.holds.insert(0, (3, all(0..2)));
    book.holds.insert(1, (3, all(2..4)));
    assert!(book.is_whole(2, 4) && !book.is_whole(2, 5) && !book.is_whole(3, 4));
    book.holds.insert(1, (2, all(2..4)));
    assert!(!book.is_whole(2, 4));
    book.holds.insert(1, (3, all(1..4)));
    assert!(!book.is_whole(2, 4));
}
