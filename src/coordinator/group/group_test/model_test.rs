//! Random members, commits, failures and restarts, judged by what must always hold:
//!
//! - generations rise, and of each at most one assignment is ever told: one owner a part;
//! - every question is answered once;
//! - the log alone gives the state that is told;
//! - with all members alive and calling, the group becomes stable.

use std::collections::BTreeMap;

use super::*;
use crate::base::random::Random;

const PARTS: usize = 6;

#[derive(Default)]
struct Client {
    member_id: String,
    instance_id: Option<String>,
    joining: Option<Ticket>,
    joined: Option<JoinResponse>,
    syncing: Option<Ticket>,
    is_stable: bool,
    generation_max: i32,
}

struct Model {
    harness: Harness,
    random: Random,
    clients: Vec<Client>,
    /// Who owns which part of which generation, as members were told.
    owners: BTreeMap<(i32, usize), String>,
    committed: i64,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = 1 + random.below(5) as usize;
        let client = |place: usize| Client {
            instance_id: (place % 3 == 1).then(|| format!("static{place}")),
            ..Client::default()
        };
        Self {
            harness: Harness::new(),
            clients: (0..count).map(client).collect(),
            random,
            owners: BTreeMap::new(),
            committed: -1,
        }
    }

    fn join_of(&mut self, place: usize) -> Join {
        let client = &self.clients[place];
        Join {
            member_id: client.member_id.as_str().into(),
            instance_id: client.instance_id.as_deref().map(InstanceId::from),
            requires_known_member_id: place.is_multiple_of(2),
            fresh_id: self.random.next_uuid(),
            rebalance_timeout_ms: 20_000,
            ..old_client()
        }
    }

    /// What the client does next, as clients do.
    fn step(&mut self, place: usize) {
        self.hear(place);
        let client = &self.clients[place];
        if client.joining.is_some() || client.syncing.is_some() {
            return;
        }
        match (&client.joined, client.is_stable) {
            (None, _) => {
                let join = self.join_of(place);
                let ticket = self.harness.join(join);
                self.clients[place].joining = Some(ticket);
            }
            (Some(joined), false) => {
                let mut given = BTreeMap::<String, Vec<String>>::new();
                for part in 0..PARTS {
                    if !joined.members.is_empty() {
                        let owner = &joined.members[part % joined.members.len()];
                        let parts = given.entry(owner.member_id.to_string()).or_default();
                        parts.push(part.to_string());
                    }
                }
                let given = given.iter().map(|(id, parts)| (id, parts.join(",")));
                let given: Vec<_> = given.collect();
                let given: Vec<_> = given
                    .iter()
                    .map(|(a, b)| (a.as_str(), b.as_str()))
                    .collect();
                let mut sync = sync_of(joined, &given);
                sync.instance_id = client.instance_id.as_deref().map(InstanceId::from);
                let ticket = self.harness.ask(Operation::Sync(Box::new(sync)));
                self.clients[place].syncing = Some(ticket);
            }
            (Some(_), true) => self.beat(place),
        }
        self.hear(place);
    }

    fn beat(&mut self, place: usize) {
        let client = &self.clients[place];
        let generation = client.joined.as_ref().unwrap().generation_id;
        let beat = Heartbeat {
            group_id: "g".into(),
            generation_id: generation,
            member_id: client.member_id.as_str().into(),
            instance_id: client.instance_id.as_deref().map(InstanceId::from),
        };
        let Response::Heartbeat(code) = self.harness.answer(Operation::Heartbeat(beat)) else {
            panic!("another answer");
        };
        if !code.is_none() {
            self.lost(place, code);
        }
    }

    fn lost(&mut self, place: usize, code: ErrorCode) {
        let client = &mut self.clients[place];
        client.joined = None;
        client.is_stable = false;
        if code != ErrorCode::REBALANCE_IN_PROGRESS {
            client.member_id.clear();
        }
    }

    fn hear(&mut self, place: usize) {
        let client = &mut self.clients[place];
        if let Some(ticket) = client.joining
            && let Some(Response::Join(told)) = self.harness.answers.remove(&ticket)
        {
            client.joining = None;
            if told.error_code == ErrorCode::MEMBER_ID_REQUIRED {
                client.member_id = told.member_id;
            } else if told.error_code.is_none() {
                let generation = told.generation_id.0;
                assert!(
                    generation >= client.generation_max,
                    "a generation goes back"
                );
                client.generation_max = generation;
                client.member_id.clone_from(&told.member_id);
                client.joined = Some(told);
            } else {
                self.lost(place, told.error_code);
            }
        }
        let client = &mut self.clients[place];
        if let Some(ticket) = client.syncing
            && let Some(Response::Sync(told)) = self.harness.answers.remove(&ticket)
        {
            client.syncing = None;
            if told.error_code.is_none() {
                client.is_stable = true;
                self.own(place, &told.assignment);
            } else {
                self.lost(place, told.error_code);
            }
        }
    }

    /// One owner of a part and generation: a static member's name outlives its ids.
    fn own(&mut self, place: usize, assignment: &[u8]) {
        let client = &self.clients[place];
        let name = client.instance_id.as_ref().unwrap_or(&client.member_id);
        let generation = client.joined.as_ref().unwrap().generation_id.0;
        for part in String::from_utf8_lossy(assignment).split(',') {
            let Ok(part) = part.parse::<usize>() else {
                continue;
            };
            let owner = self.owners.entry((generation, part));
            let owner = owner.or_insert_with(|| name.clone());
            assert_eq!(owner, name, "part {part} of generation {generation}");
        }
    }

    fn commit_offset(&mut self, place: usize) {
        let client = &self.clients[place];
        let (Some(joined), true) = (&client.joined, client.is_stable) else {
            return;
        };
        let next = self.committed + 1;
        let commit = by(joined, commit_of("g", "topic", next));
        if self.harness.holds {
            return;
        }
        if commit_code(&mut self.harness, commit).is_none() {
            self.committed = next;
        }
    }

    /// The broker is gone and comes back: waiting questions have no answer.
    fn restart(&mut self) {
        self.harness.held.clear();
        self.harness.answers.clear();
        self.harness.coordinator = self.harness.replayed(GroupConfig::default());
        let now = self.harness.now();
        let effects = self.harness.coordinator.loaded(now);
        self.harness.take(effects);
        for client in &mut self.clients {
            client.joining = None;
            client.syncing = None;
            if !client.is_stable {
                client.joined = None;
            }
            client.generation_max = 0;
        }
    }

    fn check_replay(&self) {
        let replayed = self.harness.replayed(GroupConfig::default());
        let live = &self.harness.coordinator;
        if !self.harness.held.is_empty() {
            return;
        }
        assert_eq!(live.offsets.of_group("g"), replayed.offsets.of_group("g"));
        let Some(group) = live.groups.get("g") else {
            assert!(!replayed.groups.contains_key("g"));
            return;
        };
        let stored = &replayed.groups["g"];
        let assignments = |group: &super::super::roster::Group| -> Vec<_> {
            let members = group.members.values();
            let told = members.map(|one| (one.id.clone(), one.assignment.clone()));
            told.collect()
        };
        if group.state == GroupState::Stable {
            assert_eq!(stored.state, GroupState::Stable);
            assert_eq!(stored.generation_id, group.generation_id);
            assert_eq!(stored.leader, group.leader);
            assert_eq!(stored.subscribed, group.subscribed);
            assert_eq!(assignments(stored), assignments(group));
        }
        if group.state == GroupState::Empty {
            assert_eq!(stored.state, GroupState::Empty);
            assert!(stored.generation_id <= group.generation_id);
        }
        let groups: usize = live.groups.values().map(|one| one.bytes()).sum();
        let topics = live
            .offsets
            .groups()
            .flat_map(|(_, topics)| topics.values());
        let offsets: usize = topics
            .flat_map(|topic| topic.values())
            .map(|one| one.bytes())
            .sum();
        assert_eq!(live.core.charge.own(), groups + offsets);
    }

    fn misbehave(&mut self) {
        let place = self.random.below(self.clients.len() as u64) as usize;
        match self.random.below(12) {
            0 => self.harness.holds = true,
            1 | 2 => {
                self.harness.holds = false;
                while !self.harness.held.is_empty() {
                    self.harness.commit();
                }
            }
            3 if !self.harness.held.is_empty() => {
                self.harness.fail(ErrorCode::NOT_ENOUGH_REPLICAS);
            }
            4 => self.restart(),
            5 => self.harness.pass_ms(self.random.below(25_000)),
            6 if !self.harness.holds => {
                let client = &self.clients[place];
                let member_id = client.member_id.clone();
                let instance_id = client.instance_id.clone();
                self.harness.leave(&[(&member_id, instance_id.as_deref())]);
            }
            7 => {
                // The client restarts: it forgets everything but its name.
                let instance_id = self.clients[place].instance_id.clone();
                self.clients[place] = Client {
                    instance_id,
                    ..Client::default()
                };
            }
            _ => self.commit_offset(place),
        }
    }

    fn settle(&mut self) {
        self.harness.holds = false;
        while !self.harness.held.is_empty() {
            self.harness.commit();
        }
        for _ in 0..200 {
            for place in 0..self.clients.len() {
                self.step(place);
            }
            let is_stable = self.clients.iter().all(|one| one.is_stable);
            if is_stable && self.harness.described("g").members.len() == self.clients.len() {
                return;
            }
            self.harness.pass_ms(1_000);
        }
        let described = self.harness.described("g");
        panic!("stuck in {}: {described:?}", described.state);
    }
}

#[test]
fn groups_keep_their_promises_whatever_happens() {
    let seeds = if std::env::var_os("CORELINE_ACCEPT").is_some() {
        20_000
    } else {
        80
    };
    for seed in 0..seeds {
        let result = std::panic::catch_unwind(|| {
            let mut model = Model::new(seed);
            for _ in 0..300 {
                let place = model.random.below(model.clients.len() as u64) as usize;
                model.step(place);
                if model.random.chance(1, 4) {
                    model.misbehave();
                }
                if model.random.chance(1, 2) {
                    model.harness.pass_ms(model.random.below(1_500));
                }
                model.check_replay();
            }
            model.settle();
            model.check_replay();
            let offset = fetched(&mut model.harness, "g", "topic");
            assert!(
                offset >= model.committed || model.committed < 0,
                "a commit is lost"
            );
        });
        assert!(result.is_ok(), "seed {seed}");
    }
}
