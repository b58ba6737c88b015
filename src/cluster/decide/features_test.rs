use super::*;
use crate::base::ids::BrokerId;
use crate::wire::messages::update_features::FeatureUpdateKey;

fn image(level: i16) -> Image {
    let mut image = Image::new("cluster", BrokerId(1));
    let record = FeatureLevelRecord {
        name: METADATA_VERSION.to_owned(),
        feature_level: level,
    };
    image.apply(&MetadataRecord::FeatureLevel(record)).unwrap();
    image
}

fn request(updates: &[(&str, i16, i8)]) -> UpdateFeaturesRequest {
    let update = |(feature, max_version_level, upgrade_type): &(&str, i16, i8)| FeatureUpdateKey {
        feature: (*feature).to_owned(),
        max_version_level: *max_version_level,
        upgrade_type: *upgrade_type,
        ..FeatureUpdateKey::default()
    };
    UpdateFeaturesRequest {
        feature_updates: updates.iter().map(update).collect(),
        ..UpdateFeaturesRequest::default()
    }
}

fn decide(level: i16, updates: &[(&str, i16, i8)]) -> Decision<UpdateFeaturesResponse> {
    let context = FeaturesContext {
        kraft_version: 1,
        api_version: 2,
    };
    update_features(&image(level), &request(updates), context)
}

/// The level that one update comes to.
fn level_after(level: i16, update: (&str, i16, i8)) -> Result<i16, ErrorCode> {
    let decision = decide(level, &[update]);
    let mut image = image(level);
    for record in &decision.records {
        image.apply(record).unwrap();
    }
    match decision.response.error_code {
        ErrorCode::NONE => Ok(image.features()[METADATA_VERSION]),
        code => Err(code),
    }
}

#[test]
fn the_metadata_version_goes_up_to_the_last_known_and_down_where_nothing_is_lost() {
    let (_, max) = METADATA_VERSIONS;
    let invalid = Err(ErrorCode::INVALID_UPDATE_VERSION);
    let metadata = |level, to, how| level_after(level, (METADATA_VERSION, to, how));
    assert_eq!(metadata(25, max, 1), Ok(max));
    assert_eq!(metadata(25, max + 1, 1), invalid);
    assert_eq!(metadata(25, 25, 1), Ok(25));
    assert_eq!(metadata(25, 24, 1), invalid, "down takes saying so");
    assert_eq!(metadata(25, 26, 2), invalid);
    assert_eq!(metadata(25, 24, 2), Ok(24));
    // Level 23 brought records.
    assert_eq!(metadata(25, 23, 2), Ok(23));
    assert_eq!(metadata(25, 22, 2), invalid);
    assert_eq!(metadata(25, 22, 3), invalid);
    assert_eq!(metadata(25, -1, 2), invalid);
    assert_eq!(metadata(25, 25, 0), invalid);
}

#[test]
fn features_that_are_not_served_have_no_level() {
    let invalid = Err(ErrorCode::INVALID_UPDATE_VERSION);
    assert_eq!(level_after(25, ("transaction.version", 2, 1)), invalid);
    assert_eq!(level_after(25, ("transaction.version", 0, 1)), Ok(25));
    assert_eq!(level_after(25, (KRAFT_VERSION, 1, 1)), Ok(25));
    assert_eq!(level_after(25, (KRAFT_VERSION, 0, 2)), invalid);
}

#[test]
fn one_fault_refuses_all_and_a_trial_changes_nothing() {
    let both = [(METADATA_VERSION, 26, 1), ("nope", 1, 1)];
    let decision = decide(25, &both);
    assert!(decision.records.is_empty());
    let message = decision.response.error_message.unwrap();
    assert!(message.ends_with("Local controller 1 does not support this feature."));
    let mut trial = request(&[(METADATA_VERSION, 26, 1)]);
    trial.validate_only = true;
    let context = FeaturesContext {
        kraft_version: 1,
        api_version: 1,
    };
    let decision = update_features(&image(25), &trial, context);
    assert!(decision.records.is_empty());
    assert_eq!(decision.response.results, [updated(METADATA_VERSION)]);
}

#[test]
fn a_request_may_name_so_many_features_and_no_more() {
    let names: Vec<String> = (0..=UPDATES_MAX).map(|at| format!("f{at}")).collect();
    let updates: Vec<_> = names.iter().map(|name| (name.as_str(), 0, 1)).collect();
    let code = |updates| decide(25, updates).response.error_code;
    assert_eq!(code(&updates[..UPDATES_MAX]), ErrorCode::NONE);
    assert_eq!(code(&updates), ErrorCode::INVALID_REQUEST);
}
