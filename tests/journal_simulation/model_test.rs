//! The model accuses what it should: each kind of wrong log, made by hand.

use coreline::base::ids::{Offset, PartitionIndex, Uuid};
use coreline::base::time::TimestampMs;
use coreline::log::{Appended, LogConfig, LogIdentity};

use crate::changes::Change;
use crate::compaction;
use crate::model::Model;
use crate::payload::Payload;

pub struct Case {
    pub model: Model,
    pub log: u64,
}

impl Case {
    #[allow(clippy::field_reassign_with_default)] // The other fields are the model's own.
    fn new(write_caching: bool) -> Self {
        let mut model = Model::default();
        model.epoch = 3;
        let identity = LogIdentity {
            topic: "t".into(),
            topic_id: Uuid([1; 16]),
            partition: PartitionIndex(0),
        };
        let config = LogConfig {
            write_caching,
            ..LogConfig::default()
        };
        let log = model.add_log(identity, config);
        Self { model, log }
    }

    pub fn compacted() -> Self {
        let mut case = Self::new(false);
        let log = case.model.log_mut(case.log);
        (log.config.compacted, log.config.delete_retention_ms) = (true, u64::MAX);
        case
    }

    fn payload(&mut self) -> Payload {
        let payload = Payload {
            attempt: self.model.next_attempt(),
            records: 2,
            value_bytes: 50,
            timestamp: match self.model.log(self.log).config.compacted {
                true => compaction::time_of(self.model.next_attempt()),
                false => 1,
            },
            producer: None,
        };
        self.model.attempt(self.log, payload);
        payload
    }

    /// An append of two records that returned.
    pub fn append(&mut self) -> Payload {
        let payload = self.payload();
        let base_offset = Offset(self.model.log(self.log).end());
        let answer = Appended {
            base_offset,
            last_offset: base_offset.plus(1),
            log_append_time: TimestampMs::NONE,
            log_start_offset: Offset(0),
            duplicate: false,
        };
        let noted = self
            .model
            .appended(self.log, payload.attempt, Some(&answer));
        noted.expect("in order");
        payload
    }

    pub fn settle(&mut self, batches: &[(Payload, i64)]) -> Result<(), String> {
        self.settle_under(batches, 3)
    }

    fn settle_under(&mut self, batches: &[(Payload, i64)], epoch: i32) -> Result<(), String> {
        let mut bytes = Vec::new();
        let mut end = 0;
        for (payload, base) in batches {
            let mut batch = payload.build();
            batch[..8].copy_from_slice(&base.to_be_bytes());
            batch[12..16].copy_from_slice(&epoch.to_be_bytes());
            bytes.extend_from_slice(&batch);
            end = base + 2;
        }
        self.model.settle(self.log, &bytes, (0, end))
    }
}

fn accused(result: Result<(), String>, part: &str) {
    let what = result.expect_err(part);
    assert!(what.contains(part), "{what}");
}

#[test]
fn what_was_durable_must_be_there_and_the_rest_may() {
    for found in 0..=3 {
        let mut case = Case::new(false);
        let batches: Vec<(Payload, i64)> = (0..3).map(|place| (case.append(), place * 2)).collect();
        case.model.claim(case.log, 4);
        let settled = case.settle(&batches[..found]);
        if found < 2 {
            accused(settled, "was durable");
        } else {
            settled.expect("durable");
        }
    }
}

#[test]
fn a_write_cached_tail_may_go_with_the_power_only() {
    for power_lost in [false, true] {
        let mut case = Case::new(true);
        case.append();
        case.model.claim(case.log, 2);
        case.model.power_lost = power_lost;
        assert_eq!(case.settle(&[]).is_ok(), power_lost);
    }
}

#[test]
fn an_append_under_way_may_be_there_and_a_refused_one_may_not() {
    let mut case = Case::new(false);
    let under_way = case.payload();
    case.settle(&[(under_way, 0)]).expect("allowed");
    let mut case = Case::new(false);
    let refused = case.payload();
    case.model
        .appended(case.log, refused.attempt, None)
        .expect("noted");
    accused(case.settle(&[(refused, 0)]), "Refused");
}

#[test]
fn nothing_comes_back() {
    let mut case = Case::new(false);
    let lost = case.append();
    case.settle(&[]).expect("it was not durable");
    accused(case.settle(&[(lost, 0)]), "Gone");

    let mut case = Case::new(false);
    let (kept, cut) = (case.append(), case.append());
    case.model.claim(case.log, 4);
    case.model.log_mut(case.log).change = Some(Change::Truncate(3));
    case.settle(&[(kept, 0), (cut, 2)]).expect("under way");
    accused(case.settle(&[(kept, 0)]), "was durable");
    case.model.log_mut(case.log).change = Some(Change::Truncate(1));
    accused(case.settle(&[(kept, 0)]), "was durable");
    case.model.log_mut(case.log).change = Some(Change::Truncate(3));
    case.settle(&[(kept, 0)]).expect("done");
    accused(case.settle(&[(kept, 0), (cut, 2)]), "Gone");

    let mut case = Case::new(false);
    let (kept, cut) = (case.append(), case.append());
    case.model.claim(case.log, 4);
    assert_eq!(case.model.truncated(case.log, 2).len(), 1);
    case.settle(&[(kept, 0)]).expect("truncated");
    accused(case.settle(&[(kept, 0), (cut, 2)]), "Gone");
    accused(case.settle(&[]), "was durable");
}

#[test]
fn order_offsets_bytes_and_epochs_are_held() {
    let mut case = Case::new(false);
    let (first, second) = (case.append(), case.append());
    accused(case.settle(&[(second, 0), (first, 2)]), "known there");
    accused(case.settle(&[(first, 0), (second, 3)]), "was expected");
    accused(case.settle(&[(second, 2)]), "was expected");
    accused(case.settle_under(&[(first, 0)], 4), "under epoch 4");
    let mut changed = first;
    changed.timestamp = 2;
    accused(case.settle(&[(changed, 0)]), "was changed");
    let mut never = first;
    never.attempt = 99;
    accused(case.settle(&[(never, 0)]), "never made");
    let other = case.model.add_log(
        case.model.log(case.log).identity.clone(),
        LogConfig::default(),
    );
    let mine = std::mem::replace(&mut case.log, other);
    accused(case.settle(&[(first, 0)]), "another log");
    case.log = mine;
    case.settle(&[(first, 0), (second, 2)]).expect("as it was");
}

#[test]
fn offsets_are_given_once() {
    let mut case = Case::new(false);
    case.append();
    let payload = case.payload();
    let answer = Appended {
        base_offset: Offset(1),
        last_offset: Offset(2),
        log_append_time: TimestampMs::NONE,
        log_start_offset: Offset(0),
        duplicate: false,
    };
    accused(
        case.model
            .appended(case.log, payload.attempt, Some(&answer)),
        "offsets that were given",
    );
}
