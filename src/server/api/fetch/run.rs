//! One fetch from its first read to enough bytes or its deadline.

use std::rc::Rc;
use std::time::Duration;

use super::FetchParameters;
use super::limits::{kept, shares};
use super::targets::Target;
use crate::base::ids::ShardId;
use crate::base::time::MonotonicNs;
use crate::io;
use crate::io::reply::{ReplyReceiver, reply_slot};
use crate::metrics::{StageTimes, Visit};
use crate::partition::{ParkedFetch, PartitionError, PartitionRead, ReadSpec};
use crate::server::context::RequestContext;
use crate::shard::{
    ANSWER_BYTES_MIN, Credit, FetchSignal, ParkedAt, ReadMessage, ShardMessage, UnparkMessage,
    Woken,
};

/// How long a read may wait for memory beyond the fetch's own time; then it finds nothing.
/// Longer than clients that leave answers unread are borne with while others wait.
const MEMORY_WAIT: Duration = Duration::from_secs(2);

/// Memory asked for each byte wanted, as a batch may keep a buffer of this many times its size
/// alive; what is not used goes back after the read.
const MEMORY_PER_BYTE: usize = 4;

/// One request to one owner.
struct Asked {
    owner: ShardId,
    places: Vec<u32>,
    park_below: usize,
    answers: ReplyReceiver<(Vec<PartitionRead>, Visit)>,
}

/// What a finished fetch holds, and how much of it its records need.
pub struct Charge {
    pub credit: Credit,
    pub records_bytes: usize,
}

/// A fetch under way.
pub struct FetchRun<'a> {
    context: &'a RequestContext,
    targets: Vec<Target>,
    parked: Vec<Option<ParkedAt>>,
    parameters: FetchParameters,
    fetch: ParkedFetch,
    signal: Rc<FetchSignal>,
    /// For the records and what the partitions take beside them.
    credit: Credit,
    overhead_bytes: usize,
    times: StageTimes,
    /// Memory allowed less than was there.
    is_curtailed: bool,
}

fn memory_of(targets: &[Target]) -> usize {
    let reads = targets.iter().map(|target| match target {
        Target::Readable { read, .. } => read.as_ref().map_or(0, |read| read.memory),
        Target::Refused(_) => 0,
    });
    reads.sum()
}

impl<'a> FetchRun<'a> {
    /// A fetch that has read nothing yet, with the memory that its partitions take. If that is more
    /// than there is, the right to it serves its records too: two rights would never come together.
    #[must_use]
    pub fn new(
        context: &'a RequestContext,
        targets: Vec<Target>,
        parameters: FetchParameters,
        (credit, overhead_bytes): (Credit, usize),
    ) -> Self {
        let (fetch, signal) = context.register_fetch();
        let parked = vec![None; targets.len()];
        Self {
            context,
            targets,
            parked,
            parameters,
            fetch,
            signal,
            credit,
            overhead_bytes,
            times: StageTimes::default(),
            is_curtailed: false,
        }
    }

    /// Reads, and waits and reads again what moved, until the fetch can be answered.
    pub async fn read_until_enough(&mut self) {
        let mut places: Vec<u32> = self.readable_places();
        let mut may_wait = self.parameters.may_wait;
        while !places.is_empty() {
            self.read(&places, may_wait).await;
            if !may_wait || self.is_enough() {
                break;
            }
            let mut deadline = self.parameters.deadline;
            if self.credit.is_overdrawn() {
                // Others wait for that right.
                deadline = deadline.min(io::now().after(MEMORY_WAIT));
            }
            match self.signal.wait(deadline).await {
                Woken::Changed(changed) => places = changed,
                // What has come meanwhile is taken along.
                Woken::DeadlinePassed | Woken::Cancelled => may_wait = false,
            }
            if !may_wait {
                break;
            }
        }
    }

    fn readable_places(&self) -> Vec<u32> {
        let readable = self.targets.iter().filter_map(|target| match target {
            Target::Readable { spec, .. } => Some(spec.place),
            Target::Refused(_) => None,
        });
        readable.collect()
    }

    fn found(&self) -> usize {
        let reads = self.targets.iter().map(|target| match target {
            Target::Readable { read, .. } => read.as_ref().map_or(0, |read| read.bytes),
            Target::Refused(_) => 0,
        });
        reads.sum()
    }

    /// Memory that what was found keeps alive.
    fn memory(&self) -> usize {
        memory_of(&self.targets)
    }

    fn is_enough(&self) -> bool {
        let urgent = self.targets.iter().any(|target| match target {
            Target::Readable { read, .. } => read.as_ref().is_some_and(PartitionRead::is_urgent),
            Target::Refused(_) => false,
        });
        urgent || self.is_curtailed || self.found() >= self.parameters.min_bytes
    }

    /// Asks the owners of `places` and takes their answers in.
    async fn read(&mut self, places: &[u32], may_wait: bool) {
        for place in places {
            if let Some(Target::Readable { read, .. }) = self.targets.get_mut(*place as usize) {
                *read = None;
            }
            if let Some(parked) = self.parked.get_mut(*place as usize) {
                *parked = None;
            }
        }
        let (held, memory_held) = (self.found(), self.memory());
        let wanted = self.parameters.max_bytes.saturating_sub(held);
        let deadline = self.parameters.deadline.max(io::now().after(MEMORY_WAIT));
        // Also a client that wants little gets its first batch (KIP-74).
        let share = wanted.saturating_mul(MEMORY_PER_BYTE).max(ANSWER_BYTES_MIN);
        let granted = self.credit.take_for_answer(share, deadline).await;
        let park_below = if may_wait && granted > 0 {
            self.parameters.min_bytes.saturating_sub(held)
        } else {
            0
        };
        let bounds = (granted.min(wanted), granted);
        let mut slowest = Visit::default();
        for owner in self.ask(places, bounds, park_below) {
            let visit = self.take_in(owner).await;
            if visit.hop() + visit.queue() >= slowest.hop() + slowest.queue() {
                slowest = visit;
            }
        }
        slowest.add_to(&mut self.times);
        // What was granted and not found goes back.
        if !self.credit.settle(self.overhead_bytes + self.memory()) {
            self.drop_records(places);
            self.credit.settle(self.overhead_bytes + memory_held);
        }
        // There is more, and memory for no more of it: waiting would not bring it.
        self.is_curtailed |= places.iter().any(|place| self.needed(*place) > 0);
        self.is_curtailed |= self.credit.is_overdrawn() && self.found() > 0;
        if self.found() == 0 {
            self.read_large_batch(places, deadline).await;
        }
    }

    /// With nothing found because the first batch is larger than what was granted, waits for that
    /// much and reads it alone.
    async fn read_large_batch(&mut self, places: &[u32], deadline: MonotonicNs) {
        let mut all = places.iter().copied();
        let Some(place) = all.find(|place| self.needed(*place) > 0) else {
            return;
        };
        let bytes = self.needed(place);
        if !self.credit.take_batch_answer(bytes, deadline).await {
            return;
        }
        for owner in self.ask(&[place], (bytes, bytes), 0) {
            self.take_in(owner).await.add_to(&mut self.times);
        }
        if !self.credit.settle(self.overhead_bytes + self.memory()) {
            self.drop_records(&[place]);
            self.credit.settle(self.overhead_bytes);
        }
    }

    /// Memory for the next batch of a place, where more than there was is needed for it.
    fn needed(&self, place: u32) -> usize {
        match self.targets.get(place as usize) {
            Some(Target::Readable {
                read: Some(read), ..
            }) => read.needed,
            _ => 0,
        }
    }

    fn drop_records(&mut self, places: &[u32]) {
        for place in places {
            if let Some(Target::Readable {
                read: Some(read), ..
            }) = self.targets.get_mut(*place as usize)
            {
                read.drop_records();
            }
        }
    }

    fn ask(
        &self,
        places: &[u32],
        (bytes, memory): (usize, usize),
        park_below: usize,
    ) -> Vec<Asked> {
        let mut by_owner: Vec<(ShardId, Vec<ReadSpec>)> = Vec::new();
        for place in places {
            if let Some(Target::Readable { owner, spec, .. }) = self.targets.get(*place as usize) {
                match by_owner.iter_mut().find(|known| known.0 == *owner) {
                    Some(known) => known.1.push(*spec),
                    None => by_owner.push((*owner, vec![*spec])),
                }
            }
        }
        let counts: Vec<_> = by_owner
            .iter()
            .map(|(owner, specs)| (*owner, specs.len()))
            .collect();
        let shard = self.context.node().shard();
        let memory_shares = shares(&counts, memory);
        let shares = shares(&counts, bytes).into_iter().zip(memory_shares);
        let asked =
            by_owner
                .into_iter()
                .zip(shares)
                .map(|((owner, specs), (max_bytes, memory_max))| {
                    let (reply, answers) = reply_slot();
                    let places = specs.iter().map(|spec| spec.place).collect();
                    let message = ReadMessage {
                        specs,
                        isolation: self.parameters.isolation,
                        max_bytes,
                        memory_max,
                        // All first batches together stay within what was granted.
                        first_batch_max: memory_max,
                        park_below,
                        fetch: self.fetch,
                        from: shard.id(),
                        visit: Visit::sent(io::now()),
                        is_timed: self.context.work().is_counted(),
                        reply,
                    };
                    shard.send(owner, ShardMessage::Read(message));
                    Asked {
                        owner,
                        places,
                        park_below,
                        answers,
                    }
                });
        asked.collect()
    }

    /// Waits for one owner's answers; notes where the owner has parked the fetch, by the same rule
    /// that it goes by.
    async fn take_in(&mut self, asked: Asked) -> Visit {
        let answers = asked.answers.await;
        let (answers, visit) = answers.unwrap_or_else(|| {
            let gone = |place: &u32| PartitionRead::failed(*place, PartitionError::NotLeader);
            (asked.places.iter().map(gone).collect(), Visit::default())
        });
        self.context.work().add(visit.busy);
        let found: usize = answers.iter().map(|answer| answer.bytes).sum();
        let urgent = answers.iter().any(PartitionRead::is_urgent);
        let is_short = answers.iter().any(|answer| answer.needed > 0);
        let has_parked = found < asked.park_below && !urgent && !is_short;
        for answer in answers {
            let place = answer.place;
            let Some(Target::Readable { spec, read, owner }) = self.targets.get_mut(place as usize)
            else {
                continue;
            };
            debug_assert_eq!(*owner, asked.owner);
            let parked = ParkedAt {
                partition: spec.partition,
                place,
                known_end: answer.visible_end,
            };
            *read = Some(answer);
            if let Some(slot) = self.parked.get_mut(place as usize) {
                *slot = has_parked.then_some(parked).or(*slot);
            }
        }
        visit
    }

    /// Leaves the partitions on which the fetch is still parked, and answers what was found, cut
    /// to the fetch's limit in request order.
    pub fn finish(mut self) -> (Vec<Target>, Charge, StageTimes) {
        self.unpark();
        let mut targets = std::mem::take(&mut self.targets);
        let sizes = targets.iter().map(|target| match target {
            Target::Readable { read, .. } => read.as_ref().map_or(0, |read| read.bytes),
            Target::Refused(_) => 0,
        });
        let kept = kept(sizes, self.parameters.max_bytes);
        for (target, keep) in targets.iter_mut().zip(kept) {
            if let Target::Readable {
                read: Some(read), ..
            } = target
                && !keep
            {
                read.drop_records();
            }
        }
        let budget = self.context.node().shard().budget();
        let credit = std::mem::replace(&mut self.credit, budget.credit());
        self.times.merge(&self.signal.take_waited());
        let records_bytes = memory_of(&targets);
        let charge = Charge {
            credit,
            records_bytes,
        };
        (targets, charge, self.times)
    }

    fn unpark(&mut self) {
        let mut by_owner: Vec<(ShardId, Vec<ParkedAt>)> = Vec::new();
        for (target, parked) in self.targets.iter().zip(&self.parked) {
            if let (Target::Readable { owner, .. }, Some(parked)) = (target, parked) {
                match by_owner.iter_mut().find(|known| known.0 == *owner) {
                    Some(known) => known.1.push(*parked),
                    None => by_owner.push((*owner, vec![*parked])),
                }
            }
        }
        let shard = self.context.node().shard();
        for (owner, places) in by_owner {
            let message = UnparkMessage {
                fetch: self.fetch,
                isolation: self.parameters.isolation,
                places,
            };
            shard.send(owner, ShardMessage::Unpark(message));
        }
        self.parked.clear();
    }
}

impl Drop for FetchRun<'_> {
    fn drop(&mut self) {
        self.unpark();
        self.context.node().shard().forget_fetch(self.fetch);
    }
}
