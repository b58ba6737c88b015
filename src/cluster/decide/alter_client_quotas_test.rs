use super::*;
use crate::base::ids::BrokerId;

type Parts<'a> = &'a [(&'a str, Option<&'a str>)];
type Ops<'a> = &'a [(&'a str, Option<f64>)];

const ANN: Parts<'static> = &[(USER, Some("ann"))];

fn entry(parts: Parts<'_>, ops: Ops<'_>) -> EntryData {
    let part = |(kind, name): &(&str, Option<&str>)| EntityData {
        entity_type: (*kind).to_owned(),
        entity_name: name.map(str::to_owned),
    };
    let op = |(key, value): &(&str, Option<f64>)| OpData {
        key: (*key).to_owned(),
        value: Float64(value.unwrap_or_default()),
        remove: value.is_none(),
    };
    EntryData {
        entity: parts.iter().map(part).collect(),
        ops: ops.iter().map(op).collect(),
    }
}

struct Life {
    image: Image,
    validate_only: bool,
}

impl Life {
    fn new() -> Self {
        Self {
            image: Image::new("cluster", BrokerId(1)),
            validate_only: false,
        }
    }

    /// What each entity is told, and how many records it made.
    fn alter(&mut self, entries: &[(Parts<'_>, Ops<'_>)]) -> (Vec<Option<String>>, usize) {
        let request = AlterClientQuotasRequest {
            entries: entries
                .iter()
                .map(|(parts, ops)| entry(parts, ops))
                .collect(),
            validate_only: self.validate_only,
        };
        let hosts = ["nowhere".to_owned()];
        let decision = alter_quotas(&self.image, &request, &hosts);
        for record in &decision.records {
            self.image.apply(record).unwrap();
        }
        let told = decision.response.entries.into_iter().map(|one| {
            let expected = one
                .error_message
                .as_ref()
                .map(|_| ErrorCode::INVALID_REQUEST);
            assert_eq!(one.error_code, expected.unwrap_or(ErrorCode::NONE));
            one.error_message
        });
        (told.collect(), decision.records.len())
    }

    fn refused(&mut self, parts: Parts<'_>, ops: Ops<'_>) -> String {
        let (told, records) = self.alter(&[(parts, ops)]);
        assert_eq!(records, 0);
        told.into_iter().next().flatten().expect("a refusal")
    }

    fn value(&self, parts: Parts<'_>, key: &str) -> Option<f64> {
        let entity = entity_of(&entry(parts, &[]));
        let values = self.image.client_quotas().get(&entity)?;
        values.get(key).map(|value| value.0)
    }
}

#[test]
fn limits_are_set_changed_and_taken_away_and_nothing_is_written_twice() {
    let mut life = Life::new();
    let key = "producer_byte_rate";
    assert_eq!(life.alter(&[(ANN, &[(key, Some(5.0))])]), (vec![None], 1));
    assert_eq!(life.alter(&[(ANN, &[(key, Some(5.0))])]), (vec![None], 0));
    assert_eq!(life.alter(&[(ANN, &[(key, Some(6.0))])]), (vec![None], 1));
    assert_eq!(life.value(ANN, key), Some(6.0));
    assert_eq!(life.alter(&[(ANN, &[(key, None)])]), (vec![None], 1));
    assert_eq!(
        life.alter(&[(ANN, &[(key, None), ("what", None)])]),
        (vec![None], 0)
    );
    assert_eq!(life.value(ANN, key), None);
}

#[test]
fn what_is_only_validated_changes_nothing() {
    let mut life = Life::new();
    life.validate_only = true;
    let key = "producer_byte_rate";
    assert_eq!(life.alter(&[(ANN, &[(key, Some(5.0))])]), (vec![None], 0));
    assert!(
        life.refused(ANN, &[(key, Some(0.0))])
            .contains("greater than 0")
    );
}

#[test]
fn an_entity_is_changed_whole_or_not_at_all() {
    let mut life = Life::new();
    let (good, bad) = (
        ("request_percentage", Some(1.5)),
        ("producer_byte_rate", Some(1.5)),
    );
    let told = life.refused(ANN, &[good, bad]);
    assert_eq!(told, "producer_byte_rate cannot be a fractional value.");
    let other: Parts<'_> = &[(CLIENT_ID, None)];
    let (told, records) = life.alter(&[(ANN, &[bad]), (other, &[good])]);
    assert_eq!(
        (told[0].is_some(), told[1].is_some(), records),
        (true, false, 1)
    );
}

#[test]
fn of_an_entity_that_stands_twice_the_first_is_made_and_told_to_be_refused() {
    let mut life = Life::new();
    let key = "producer_byte_rate";
    let (told, records) = life.alter(&[(ANN, &[(key, Some(1.0))]), (ANN, &[(key, Some(2.0))])]);
    let text = "Ignoring duplicate entity ClientQuotaEntity(entries={user=ann})";
    assert_eq!((told, records), (vec![Some(text.to_owned())], 1));
    assert_eq!(life.value(ANN, key), Some(1.0));
    assert_eq!(life.refused(ANN, &[(key, None), (key, Some(1.0))]), text);
}

#[test]
fn entities_and_limits_that_there_are_not_are_refused() {
    let mut life = Life::new();
    let rate: Ops<'_> = &[("connection_creation_rate", Some(1.0))];
    assert_eq!(life.refused(&[], rate), "Invalid empty client quota entity");
    let group: Parts<'_> = &[("group", Some("g"))];
    assert!(
        life.refused(group, rate)
            .starts_with("Unhandled client quota entity type")
    );
    assert_eq!(
        life.refused(&[(USER, Some(""))], rate),
        "Empty user not supported"
    );
    assert!(
        life.refused(ANN, rate)
            .starts_with("Invalid configuration key")
    );
    let both: Parts<'_> = &[(IP, None), (USER, None)];
    assert!(
        life.refused(both, rate)
            .starts_with("Invalid quota entity combination")
    );
    let nowhere: Parts<'_> = &[(IP, Some("nowhere"))];
    assert_eq!(
        life.refused(nowhere, rate),
        "nowhere is not a valid IP or resolvable host."
    );
    assert_eq!(
        life.alter(&[(&[(IP, Some("10.0.0.1"))], rate)]),
        (vec![None], 1)
    );
}

#[test]
fn values_are_taken_at_their_limits_and_refused_past_them() {
    let mut life = Life::new();
    let any_ip: Parts<'_> = &[(IP, None)];
    let rate = "connection_creation_rate";
    for (parts, key, greatest, kind) in [
        (ANN, "consumer_byte_rate", i64::MAX as f64, "a LONG"),
        (any_ip, rate, i32::MAX as f64, "an INT"),
    ] {
        assert_eq!(life.alter(&[(parts, &[(key, Some(greatest))])]).0, [None]);
        let past = life.refused(parts, &[(key, Some(greatest * 1.01))]);
        assert_eq!(
            past,
            format!("Proposed value for {key} is too large for {kind}.")
        );
        for endless in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = life.refused(parts, &[(key, Some(endless))]);
            assert_eq!(refused, format!("Quota {key} must be a finite number"));
        }
    }
}

#[test]
fn a_request_of_more_records_than_one_operation_holds_changes_nothing() {
    let life = Life::new();
    let names: Vec<String> = (0..=RECORDS_PER_OPERATION_MAX)
        .map(|at| at.to_string())
        .collect();
    let ask = |count: usize| {
        let parts: Vec<_> = names[..count]
            .iter()
            .map(|name| [(USER, Some(name.as_str()))])
            .collect();
        let entries = parts
            .iter()
            .map(|parts| entry(parts, &[("request_percentage", Some(1.0))]));
        let request = AlterClientQuotasRequest {
            entries: entries.collect(),
            validate_only: false,
        };
        let decision = alter_quotas(&life.image, &request, &[]);
        (
            decision.records.len(),
            decision.response.entries[0].error_code,
        )
    };
    let most = RECORDS_PER_OPERATION_MAX;
    assert_eq!(ask(most), (most, ErrorCode::NONE));
    assert_eq!(ask(most + 1), (0, ErrorCode::POLICY_VIOLATION));
}
