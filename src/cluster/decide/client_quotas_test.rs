use super::*;
use crate::base::ids::BrokerId;
use crate::cluster::records::{ClientQuotaRecord, MetadataRecord, QuotaEntityData};
use crate::wire::primitives::Float64;

type Parts<'a> = &'a [(&'a str, Option<&'a str>)];

const ENTITIES: [Parts<'static>; 6] = [
    &[(USER, Some("ann"))],
    &[(USER, None)],
    &[(CLIENT_ID, Some("app"))],
    &[(USER, Some("ann")), (CLIENT_ID, Some("app"))],
    &[(USER, Some("ann")), (CLIENT_ID, None)],
    &[(IP, Some("10.0.0.1"))],
];

fn record(parts: Parts<'_>, key: &str, value: Option<f64>) -> MetadataRecord {
    let part = |(kind, name): &(&str, Option<&str>)| QuotaEntityData {
        entity_type: (*kind).to_owned(),
        entity_name: name.map(str::to_owned),
    };
    MetadataRecord::ClientQuota(ClientQuotaRecord {
        entity: parts.iter().map(part).collect(),
        key: key.to_owned(),
        value: Float64(value.unwrap_or_default()),
        remove: value.is_none(),
    })
}

fn image() -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    for (entity, value) in ENTITIES.into_iter().zip(1..) {
        let record = record(entity, "producer_byte_rate", Some(f64::from(value)));
        image.apply(&record).unwrap();
    }
    image
}

/// The limits found, as numbers of [`ENTITIES`] from 1.
fn found(components: &[(&str, i8, Option<&str>)], strict: bool) -> Result<Vec<i32>, ErrorCode> {
    let component = |(kind, match_type, name): &(&str, i8, Option<&str>)| ComponentData {
        entity_type: (*kind).to_owned(),
        match_type: *match_type,
        r#match: name.map(str::to_owned),
    };
    let request = DescribeClientQuotasRequest {
        components: components.iter().map(component).collect(),
        strict,
    };
    let response = describe_quotas(&image(), &request);
    let Some(entries) = response.entries else {
        return Err(response.error_code);
    };
    let values = entries.iter().flat_map(|entry| &entry.values);
    let mut numbers: Vec<i32> = values.map(|value| value.value.0 as i32).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

#[test]
fn a_filter_finds_what_has_its_parts_and_strictly_nothing_else() {
    assert_eq!(found(&[], false), Ok(vec![1, 2, 3, 4, 5, 6]));
    assert_eq!(found(&[], true), Ok(vec![]));
    let ann = (USER, 0, Some("ann"));
    assert_eq!(found(&[ann], false), Ok(vec![1, 4, 5]));
    assert_eq!(found(&[ann], true), Ok(vec![1]));
    assert_eq!(found(&[(USER, 1, None)], false), Ok(vec![2]));
    assert_eq!(found(&[(USER, 2, None)], true), Ok(vec![1, 2]));
    assert_eq!(found(&[ann, (CLIENT_ID, 1, None)], true), Ok(vec![5]));
    assert_eq!(found(&[ann, (CLIENT_ID, 2, None)], true), Ok(vec![4, 5]));
    assert_eq!(found(&[(IP, 2, None)], true), Ok(vec![6]));
}

#[test]
fn filters_that_mean_nothing_are_refused() {
    let invalid = Err(ErrorCode::INVALID_REQUEST);
    assert_eq!(found(&[("", 2, None)], false), invalid);
    assert_eq!(found(&[(USER, 2, None), (USER, 1, None)], false), invalid);
    assert_eq!(found(&[(IP, 2, None), (USER, 1, None)], false), invalid);
    assert_eq!(found(&[(USER, 0, None)], false), invalid);
    assert_eq!(found(&[(USER, 1, Some("ann"))], false), invalid);
    assert_eq!(found(&[(USER, 2, Some("ann"))], false), invalid);
    assert_eq!(found(&[(USER, 3, None)], false), invalid);
    let unsupported = Err(ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(found(&[("group", 2, None)], false), unsupported);
}

#[test]
fn limits_come_back_from_their_records_and_go_by_them() {
    let mut image = image();
    let mut again = Image::new("cluster", BrokerId(1));
    for record in image.records() {
        again.apply(&record).unwrap();
    }
    assert_eq!(again, image);
    for entity in ENTITIES {
        for _ in 0..2 {
            let gone = record(entity, "producer_byte_rate", None);
            image.apply(&gone).unwrap();
        }
    }
    assert!(image.client_quotas().is_empty());
}
