//! Consumers as client libraries write them: they join, assign, sync, send heartbeats and commit,
//! leave in order, vanish, or sleep past their session and go on as if nothing had been.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{GenerationId, LeaderEpoch, Offset, PartitionIndex};
use coreline::wire::codec::Message;
use coreline::wire::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use coreline::wire::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
use coreline::wire::messages::leave_group::{
    LeaveGroupRequest, LeaveGroupResponse, MemberIdentity,
};
use coreline::wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use coreline::wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponse,
};
use coreline::wire::messages::sync_group::{
    SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};

use crate::assign::{self, Claim};
use crate::book::Book;
use crate::broker::Client;

/// What all members of a test share.
pub struct World {
    pub address: Mutex<SocketAddr>,
    pub group: String,
    pub topic: String,
    pub partitions: i32,
    pub is_cooperative: bool,
    pub session: Duration,
    pub book: Mutex<Book>,
    /// Nobody comes or goes of their own will.
    pub is_calm: AtomicBool,
    pub is_over: AtomicBool,
    /// Members that sleep, whatever happens.
    pub sleepers: AtomicUsize,
}

impl World {
    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    fn is(flag: &AtomicBool) -> bool {
        flag.load(Ordering::Acquire)
    }

    pub fn is_over(&self) -> bool {
        Self::is(&self.is_over)
    }

    fn connect(&self) -> Option<Client> {
        let address = *self.address.lock().unwrap();
        Client::try_connect(address)
    }
}

/// Numbers that a seed decides about.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// Why a member is one no longer; another takes its place.
struct Gone;

/// How a request went: its answer's code says what is to be done next.
type Step<T> = Result<T, Gone>;

struct Member<'a> {
    world: &'a World,
    number: usize,
    client: Client,
    dice: &'a mut Dice,
    id: String,
    generation: i32,
    /// Its partitions with the offsets up to which it has consumed.
    owned: BTreeMap<i32, i64>,
    joined: JoinGroupResponse,
}

/// Lives as one member after the other until the test is over.
pub fn live(world: &World, number: usize, seed: u64) {
    let mut dice = Dice(seed ^ ((number as u64) << 32));
    while !world.is_over() {
        let Some(client) = world.connect() else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let mut member = Member {
            world,
            number,
            client,
            dice: &mut dice,
            id: String::new(),
            generation: -1,
            owned: BTreeMap::new(),
            joined: JoinGroupResponse::default(),
        };
        let Err(Gone) = member.live();
        world.book().holds.remove(&number);
    }
}

/// Codes after which a client asks again: the coordinator is not ready.
fn is_early(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
    )
}

impl Member<'_> {
    fn live(&mut self) -> Result<std::convert::Infallible, Gone> {
        loop {
            self.join()?;
            if self.sync()? {
                self.work()?;
            }
        }
    }

    fn ask<Q: Message, R: Message>(&mut self, request: &Q, version: i16) -> Step<R> {
        if self.world.is_over() {
            return Err(Gone);
        }
        self.client.try_send(request, version).ok_or(Gone)?;
        self.client.try_receive(version).ok_or(Gone)
    }

    fn is_at(&self, place: &'static str) {
        self.world.book().places.insert(self.number, place);
    }

    /// Says and hears nothing for so long.
    fn sleep(&self, pause: Duration) {
        self.world.sleepers.fetch_add(1, Ordering::AcqRel);
        std::thread::sleep(pause);
        self.world.sleepers.fetch_sub(1, Ordering::AcqRel);
    }

    fn forget(&mut self) {
        self.owned.clear();
        self.world.book().holds.remove(&self.number);
    }

    fn join(&mut self) -> Step<()> {
        if !self.world.is_cooperative {
            self.forget();
        }
        loop {
            let session_ms = self.world.session.as_millis() as i32;
            let owned: BTreeSet<i32> = self.owned.keys().copied().collect();
            let request = JoinGroupRequest {
                group_id: self.world.group.clone(),
                session_timeout_ms: session_ms,
                rebalance_timeout_ms: session_ms,
                member_id: self.id.clone(),
                protocol_type: "consumer".to_owned(),
                protocols: vec![JoinGroupRequestProtocol {
                    name: "own".to_owned(),
                    metadata: assign::metadata(&self.world.topic, self.generation, &owned),
                }],
                ..JoinGroupRequest::default()
            };
            if !World::is(&self.world.is_calm) && self.dice.one_in(40) {
                // Its connection ends while its join waits.
                let _ = self.client.try_send(&request, 5);
                return Err(Gone);
            }
            self.is_at("join");
            self.joined = self.ask(&request, 5)?;
            match self.joined.error_code {
                ErrorCode::NONE => {
                    self.id.clone_from(&self.joined.member_id);
                    self.generation = self.joined.generation_id.0;
                    return Ok(());
                }
                ErrorCode::MEMBER_ID_REQUIRED => self.id.clone_from(&self.joined.member_id),
                ErrorCode::UNKNOWN_MEMBER_ID => {
                    self.id.clear();
                    self.forget();
                }
                ErrorCode::REBALANCE_IN_PROGRESS => {}
                code => {
                    self.expect_early("join", code);
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    fn expect_early(&self, what: &str, code: ErrorCode) {
        if !is_early(code) {
            let text = format!("{what} was answered with {code:?}");
            self.world.book().faults.push(text);
        }
    }

    fn given(&self) -> Vec<SyncGroupRequestAssignment> {
        let members = self.joined.members.iter();
        let claims: Vec<Claim> = members
            .map(|one| Claim::of(&one.member_id, &one.metadata))
            .collect();
        let (all, generation) = (self.world.partitions, self.generation);
        let given = match self.world.is_cooperative {
            true => assign::cooperative(&claims, all),
            false => assign::eager(&claims, all, generation),
        };
        let given = given.into_iter();
        given
            .map(|(member_id, partitions)| SyncGroupRequestAssignment {
                member_id,
                assignment: assign::packed(&partitions),
            })
            .collect()
    }

    /// Answers whether it may go to work; else it has to join again.
    fn sync(&mut self) -> Step<bool> {
        let request = SyncGroupRequest {
            group_id: self.world.group.clone(),
            generation_id: GenerationId(self.generation),
            member_id: self.id.clone(),
            assignments: self.given(),
            ..SyncGroupRequest::default()
        };
        if !World::is(&self.world.is_calm) && self.dice.one_in(60) {
            // A member that never syncs.
            self.sleep(self.world.session * 2);
        }
        self.is_at("sync");
        let told: SyncGroupResponse = self.ask(&request, 3)?;
        if !told.error_code.is_none() {
            self.refused("sync", told.error_code);
            return Ok(false);
        }
        let assigned = assign::unpacked(&told.assignment);
        (self.world.book()).assigned(self.generation, &self.id, &assigned);
        let before = self.owned.len();
        self.owned
            .retain(|partition, _| assigned.contains(partition));
        let has_revoked = self.owned.len() < before;
        let new: Vec<i32> = (assigned.iter().copied())
            .filter(|partition| !self.owned.contains_key(partition))
            .collect();
        if !self.take_over(&new)? {
            return Ok(false);
        }
        let mut book = self.world.book();
        let own = self.owned.keys().copied().collect();
        book.holds.insert(self.number, (self.generation, own));
        Ok(!has_revoked)
    }

    /// Goes on where the last owner was.
    fn take_over(&mut self, partitions: &[i32]) -> Step<bool> {
        let before = self.world.book().acknowledged();
        let request = fetch_request(self.world, partitions);
        let told: OffsetFetchResponse = self.ask(&request, 8)?;
        let Some(offsets) = fetched(&told) else {
            return Ok(false);
        };
        self.world.book().fetched(&before, &offsets);
        (self.owned).extend(offsets.iter().map(|(one, offset)| (*one, (*offset).max(0))));
        Ok(true)
    }

    /// What a client does about a code.
    fn refused(&mut self, what: &str, code: ErrorCode) {
        self.world.book().refused += 1;
        match code {
            ErrorCode::REBALANCE_IN_PROGRESS => {}
            ErrorCode::ILLEGAL_GENERATION => self.forget(),
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.id.clear();
                self.forget();
            }
            code => self.expect_early(what, code),
        }
    }

    /// Until there is a rebalance.
    fn work(&mut self) -> Step<()> {
        self.is_at("work");
        loop {
            std::thread::sleep(self.world.session / 20);
            if !World::is(&self.world.is_calm) {
                self.meet_fate()?;
            }
            let request = HeartbeatRequest {
                group_id: self.world.group.clone(),
                generation_id: GenerationId(self.generation),
                member_id: self.id.clone(),
                ..HeartbeatRequest::default()
            };
            let told: HeartbeatResponse = self.ask(&request, 3)?;
            if is_early(told.error_code) {
                continue;
            }
            if !told.error_code.is_none() {
                self.refused("heartbeat", told.error_code);
                return Ok(());
            }
            if !self.commit()? {
                return Ok(());
            }
        }
    }

    fn meet_fate(&mut self) -> Step<()> {
        if self.dice.one_in(25) {
            let request = LeaveGroupRequest {
                group_id: self.world.group.clone(),
                members: vec![MemberIdentity {
                    member_id: self.id.clone(),
                    ..MemberIdentity::default()
                }],
                ..LeaveGroupRequest::default()
            };
            let _: LeaveGroupResponse = self.ask(&request, 4)?;
            return Err(Gone);
        }
        if self.dice.one_in(60) {
            return Err(Gone);
        }
        if self.dice.one_in(60) {
            // It does not know that it is out when it commits.
            let pause = self.world.session.as_millis() as u64 * 3;
            let pause = self.dice.below(pause);
            self.sleep(Duration::from_millis(pause));
            self.commit()?;
        }
        Ok(())
    }

    /// Some records more of some partitions. False when the member has to join again.
    fn commit(&mut self) -> Step<bool> {
        let mut offsets = Vec::new();
        for (partition, offset) in &self.owned {
            if self.dice.one_in(2) {
                offsets.push((*partition, offset + 1 + self.dice.below(5) as i64));
            }
        }
        if offsets.is_empty() {
            return Ok(true);
        }
        let partitions = offsets
            .iter()
            .map(|(partition, offset)| OffsetCommitRequestPartition {
                partition_index: PartitionIndex(*partition),
                committed_offset: Offset(*offset),
                committed_leader_epoch: LeaderEpoch(0),
                committed_metadata: None,
            });
        let request = OffsetCommitRequest {
            group_id: self.world.group.clone(),
            generation_id_or_member_epoch: GenerationId(self.generation),
            member_id: self.id.clone(),
            topics: vec![OffsetCommitRequestTopic {
                name: self.world.topic.clone(),
                partitions: partitions.collect(),
            }],
            ..OffsetCommitRequest::default()
        };
        let known = self.world.book().generation;
        let told: OffsetCommitResponse = self.ask(&request, 7)?;
        let code = told.topics[0].partitions[0].error_code;
        if is_early(code) {
            return Ok(true);
        }
        if !code.is_none() {
            self.refused("commit", code);
            return Ok(false);
        }
        (self.world.book()).committed((self.generation, known), &offsets);
        self.owned.extend(offsets);
        Ok(true)
    }
}

fn fetch_request(world: &World, partitions: &[i32]) -> OffsetFetchRequest {
    OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: world.group.clone(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: world.topic.clone(),
                partition_indexes: partitions.iter().copied().map(PartitionIndex).collect(),
            }]),
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    }
}

fn fetched(told: &OffsetFetchResponse) -> Option<Vec<(i32, i64)>> {
    let group = &told.groups[0];
    let partitions = group.topics.iter().flat_map(|topic| &topic.partitions);
    let offsets = partitions.map(|one| (one.partition_index.0, one.committed_offset.0));
    group.error_code.is_none().then(|| offsets.collect())
}

/// Fetches all offsets again and again, as one who is no member.
pub fn watch(world: &World) {
    let all: Vec<i32> = (0..world.partitions).collect();
    let request = fetch_request(world, &all);
    while !world.is_over() {
        let Some(mut client) = world.connect() else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        while !world.is_over() {
            let before = world.book().acknowledged();
            let told: Option<OffsetFetchResponse> =
                (client.try_send(&request, 8)).and_then(|()| client.try_receive(8));
            let Some(told) = told else { break };
            if let Some(offsets) = fetched(&told) {
                let mut book = world.book();
                book.fetched(&before, &offsets);
                book.watched(&offsets);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Waits until all members have all partitions, nobody coming or going; how long that took since
/// the last of them woke up.
pub fn settle(world: &World, members: usize) -> Duration {
    world.is_calm.store(true, Ordering::Release);
    while world.sleepers.load(Ordering::Acquire) > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let began = Instant::now();
    let limit = world.session + Duration::from_secs(5);
    while !world.book().is_whole(members, world.partitions) {
        if began.elapsed() > limit {
            let mut book = world.book();
            let holds: Vec<(&usize, i32)> = (book.holds.iter())
                .map(|(number, held)| (number, held.0))
                .collect();
            let text = format!("not settled after {limit:?}: {holds:?}, {:?}", book.places);
            book.faults.push(text);
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    world.is_calm.store(false, Ordering::Release);
    began.elapsed()
}

/// The bytes that a member's metadata begins with, for who reads it.
pub fn subscription(topic: &str) -> Bytes {
    assign::metadata(topic, -1, &BTreeSet::new())
}
