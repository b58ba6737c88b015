//! All sessions of one shard, and which of them gives way when there is no room.

use std::collections::HashMap;
use std::time::Duration;

use crate::base::error_code::ErrorCode;
use crate::base::random::Random;
use crate::base::time::MonotonicNs;

use super::session::{PartitionSummary, Session};
use super::{
    FINAL_EPOCH, FetchPlan, FetchVerdict, INITIAL_EPOCH, NO_SESSION, PlanKind, SessionRequest,
    next_epoch,
};

/// Most partitions in all sessions of one shard; past it no new session is given, which is legal:
/// the client goes on with full requests.
pub const SESSION_PARTITIONS_MAX: usize = 250_000;
/// What a partition takes within a session.
pub const SESSION_PARTITION_BYTES: usize = 256;
/// A session unused for this long gives way to a new one, and a smaller one gives way to a larger
/// only at this age (`min.incremental.fetch.session.eviction.ms`).
pub const SESSION_EVICTION_MIN: Duration = Duration::from_secs(120);

/// The sessions of the connections of one shard.
#[derive(Debug)]
pub struct FetchSessions {
    sessions: HashMap<i32, Session>,
    sessions_max: usize,
    partitions_max: usize,
    partitions: usize,
    random: Random,
}

impl FetchSessions {
    /// Room for `sessions_max` sessions; ids follow from `seed`.
    #[must_use]
    pub fn new(sessions_max: usize, seed: u64) -> Self {
        Self {
            sessions: HashMap::new(),
            sessions_max,
            partitions_max: SESSION_PARTITIONS_MAX,
            partitions: 0,
            random: Random::new(seed),
        }
    }

    /// Sessions whose partitions take `bytes` at most.
    #[must_use]
    pub fn within(mut self, bytes: usize) -> Self {
        self.partitions_max = SESSION_PARTITIONS_MAX.min(bytes / SESSION_PARTITION_BYTES);
        self
    }

    /// Sessions alive.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Merges a request into its session; an error is the whole response's.
    pub fn begin(
        &mut self,
        request: SessionRequest,
        now: MonotonicNs,
    ) -> Result<FetchPlan, ErrorCode> {
        let full = matches!(request.session_epoch, INITIAL_EPOCH | FINAL_EPOCH);
        if !full {
            return self.begin_incremental(request, now);
        }
        if request.session_id != NO_SESSION {
            self.remove(request.session_id);
        }
        let kind = if request.session_epoch == FINAL_EPOCH {
            PlanKind::Sessionless
        } else {
            PlanKind::Full {
                uses_topic_ids: request.uses_topic_ids,
            }
        };
        Ok(FetchPlan {
            targets: request.targets,
            kind,
        })
    }

    fn begin_incremental(
        &mut self,
        request: SessionRequest,
        now: MonotonicNs,
    ) -> Result<FetchPlan, ErrorCode> {
        let Some(session) = self.sessions.get_mut(&request.session_id) else {
            return Err(ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
        };
        if session.uses_topic_ids != request.uses_topic_ids {
            return Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        }
        if session.epoch != request.session_epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        let before = session.len();
        for target in &request.targets {
            session.name(target);
        }
        for (topic, partition) in &request.forgotten {
            session.forget(topic, *partition);
        }
        session.last_used_at = now;
        session.epoch = next_epoch(session.epoch);
        let (after, epoch, targets) = (session.len(), session.epoch, session.targets());
        self.partitions = self.partitions + after - before;
        if after == 0 || self.partitions > self.partitions_max {
            self.remove(request.session_id);
            return Ok(FetchPlan {
                targets,
                kind: PlanKind::Sessionless,
            });
        }
        Ok(FetchPlan {
            targets,
            kind: PlanKind::Incremental {
                session_id: request.session_id,
                next_epoch: epoch,
            },
        })
    }

    /// Decides what of the answer goes out and remembers it. `summaries` stand in the order of the
    /// plan's targets.
    pub fn finish(
        &mut self,
        plan: &FetchPlan,
        summaries: &[PartitionSummary],
        now: MonotonicNs,
    ) -> FetchVerdict {
        let everything = vec![true; plan.targets.len()];
        match plan.kind {
            PlanKind::Sessionless => FetchVerdict {
                error: ErrorCode::NONE,
                session_id: NO_SESSION,
                included: everything,
            },
            PlanKind::Full { uses_topic_ids } => FetchVerdict {
                error: ErrorCode::NONE,
                session_id: self.create(plan, summaries, (uses_topic_ids, now)),
                included: everything,
            },
            PlanKind::Incremental {
                session_id,
                next_epoch,
            } => self.finish_incremental(plan, summaries, (session_id, next_epoch)),
        }
    }

    /// The error and the session of an answer without partitions, after which the session is as it
    /// was before (`FetchContext.getThrottledResponse`).
    pub fn leave(&self, plan: &FetchPlan) -> (ErrorCode, i32) {
        let PlanKind::Incremental {
            session_id,
            next_epoch,
        } = plan.kind
        else {
            return (ErrorCode::NONE, NO_SESSION);
        };
        let session = self.sessions.get(&session_id);
        match session.filter(|session| session.epoch == next_epoch) {
            Some(_) => (ErrorCode::NONE, session_id),
            None => (ErrorCode::INVALID_FETCH_SESSION_EPOCH, NO_SESSION),
        }
    }

    fn finish_incremental(
        &mut self,
        plan: &FetchPlan,
        summaries: &[PartitionSummary],
        (session_id, next_epoch): (i32, i32),
    ) -> FetchVerdict {
        let session = self.sessions.get_mut(&session_id);
        let Some(session) = session.filter(|session| session.epoch == next_epoch) else {
            // Another request of this session has passed while this one waited.
            return FetchVerdict {
                error: ErrorCode::INVALID_FETCH_SESSION_EPOCH,
                session_id: NO_SESSION,
                included: vec![false; plan.targets.len()],
            };
        };
        let pairs = plan.targets.iter().zip(summaries);
        let included = pairs
            .map(|(target, summary)| session.settle(target, summary))
            .collect();
        FetchVerdict {
            error: ErrorCode::NONE,
            session_id,
            included,
        }
    }

    fn create(
        &mut self,
        plan: &FetchPlan,
        summaries: &[PartitionSummary],
        (uses_topic_ids, now): (bool, MonotonicNs),
    ) -> i32 {
        let size = plan.targets.len();
        if !self.make_room(size, now) {
            return NO_SESSION;
        }
        let mut session = Session::new(uses_topic_ids, now);
        for target in &plan.targets {
            session.name(target);
        }
        for (target, summary) in plan.targets.iter().zip(summaries) {
            session.settle(target, summary);
        }
        let id = self.unused_id();
        self.partitions += session.len();
        self.sessions.insert(id, session);
        id
    }

    /// Whether a session of `size` partitions may be made, after evicting one if need be
    /// (`FetchSessionCacheShard.tryEvict`): a stale one, else an old one that is smaller.
    fn make_room(&mut self, size: usize, now: MonotonicNs) -> bool {
        if self.partitions + size > self.partitions_max {
            return false;
        }
        if self.sessions.len() < self.sessions_max {
            return true;
        }
        let oldest = self
            .sessions
            .iter()
            .min_by_key(|(id, session)| (session.last_used_at, **id));
        let Some((stale, session)) = oldest.map(|(id, session)| (*id, session)) else {
            return false;
        };
        if now.since(session.last_used_at) > SESSION_EVICTION_MIN {
            self.remove(stale);
            return true;
        }
        let old = |session: &Session| now.since(session.created_at) > SESSION_EVICTION_MIN;
        let evictable = self.sessions.iter().filter(|(_, session)| old(session));
        let smallest = evictable.min_by_key(|(id, session)| (session.len(), **id));
        match smallest.map(|(id, session)| (*id, session.len())) {
            Some((id, len)) if len < size => {
                self.remove(id);
                true
            }
            _ => false,
        }
    }

    fn remove(&mut self, id: i32) {
        if let Some(session) = self.sessions.remove(&id) {
            self.partitions -= session.len();
        }
    }

    fn unused_id(&mut self) -> i32 {
        loop {
            let id = (self.random.next_u64() >> 33) as i32;
            if id != NO_SESSION && !self.sessions.contains_key(&id) {
                return id;
            }
        }
    }
}
