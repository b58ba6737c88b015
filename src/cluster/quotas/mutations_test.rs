use super::*;
use crate::base::ids::BrokerId;
use crate::cluster::records::{ClientQuotaRecord, MetadataRecord, QuotaEntityData};
use crate::wire::primitives::Float64;

const WINDOWS: Windows = Windows {
    count: 11,
    length: Duration::from_secs(1),
};

fn at(ms: u64) -> MonotonicNs {
    MonotonicNs(ms * 1_000_000)
}

/// Every client may change `rate` partitions a second.
fn image(rate: f64) -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    let record = ClientQuotaRecord {
        entity: vec![QuotaEntityData {
            entity_type: "client-id".to_owned(),
            entity_name: None,
        }],
        key: "controller_mutation_rate".to_owned(),
        value: Float64(rate),
        remove: false,
    };
    image.apply(&MetadataRecord::ClientQuota(record)).unwrap();
    image
}

#[test]
fn a_strict_asker_is_refused_once_it_has_taken_more_than_there_was() {
    let (image, mut quotas) = (image(1.0), MutationQuotas::new(WINDOWS));
    let asker = Asker::anonymous(Some("app"), true);
    let mut permits = quotas.permits(&image, &asker, at(0));
    assert_eq!(permits.take(11), Ok(()), "all there is");
    assert_eq!(permits.take(4), Ok(()), "not below zero before it");
    assert_eq!(permits.throttle_time_ms(), 0);
    let refused = permits.take(1).unwrap_err();
    assert_eq!(refused.code, ErrorCode::THROTTLING_QUOTA_EXCEEDED);
    assert_eq!(permits.throttle_time_ms(), 4_000);
    let mut permits = quotas.permits(&image, &asker, at(3_999));
    assert!(permits.take(1).is_err());
    let mut permits = quotas.permits(&image, &asker, at(4_001));
    assert_eq!(permits.take(1), Ok(()));
}

/// A partition at 3 a second takes 333 and a third of a millisecond.
#[test]
fn who_has_waited_for_as_long_as_it_was_told_is_let_in() {
    let (image, mut quotas) = (image(3.0), MutationQuotas::new(WINDOWS));
    let asker = Asker::anonymous(Some("app"), true);
    assert_eq!(quotas.permits(&image, &asker, at(0)).take(34), Ok(()));
    let mut permits = quotas.permits(&image, &asker, at(0));
    assert!(permits.take(1).is_err());
    assert_eq!(permits.throttle_time_ms(), 333);
    assert_eq!(quotas.permits(&image, &asker, at(333)).take(1), Ok(()));
}

#[test]
fn another_asker_is_served_and_throttled() {
    let (image, mut quotas) = (image(1.0), MutationQuotas::new(WINDOWS));
    let asker = Asker::anonymous(Some("app"), false);
    let mut permits = quotas.permits(&image, &asker, at(0));
    assert_eq!(permits.take(11), Ok(()));
    assert_eq!(permits.throttle_time_ms(), 0);
    assert_eq!(permits.take(2), Ok(()));
    assert_eq!(permits.throttle_time_ms(), 2_000);
    let other = Asker::anonymous(Some("other"), false);
    let mut permits = quotas.permits(&image, &other, at(0));
    assert_eq!(permits.take(11), Ok(()));
    assert_eq!(permits.throttle_time_ms(), 0, "each client by itself");
}

#[test]
fn names_made_up_take_no_more_than_so_many_buckets() {
    let (image, mut quotas) = (image(1.0), MutationQuotas::new(WINDOWS));
    let ask = |quotas: &mut MutationQuotas, number: usize, count: usize| {
        let asker = Asker::anonymous(Some(&number.to_string()), true);
        let mut permits = quotas.permits(&image, &asker, at(0));
        permits.take(count)
    };
    // The first has taken most, and is still known when all others are.
    for number in 0..MUTATION_ACCOUNTS_MAX {
        let count = if number == 0 { 100 } else { 1 };
        assert_eq!(ask(&mut quotas, number, count), Ok(()));
    }
    assert_eq!(quotas.buckets.len(), MUTATION_ACCOUNTS_MAX, "the limit");
    assert_eq!(ask(&mut quotas, MUTATION_ACCOUNTS_MAX, 1), Ok(()));
    assert_eq!(
        quotas.buckets.len(),
        MUTATION_ACCOUNTS_MAX / 2 + 1,
        "one past it"
    );
    assert!(ask(&mut quotas, 0, 1).is_err());
}
