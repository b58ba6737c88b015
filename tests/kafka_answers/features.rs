//! UpdateFeatures, and the features that ApiVersions tells afterwards.

use std::time::{Duration, Instant};

use coreline::wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use coreline::wire::messages::update_features::{
    FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse,
};

use crate::clusters::even_versions;
use crate::session::{ALL, Peer, Session, Versions, from};

const METADATA: &str = "metadata.version";
const UP: i8 = 1;
const SAFE: i8 = 2;
const UNSAFE: i8 = 3;
const TOLD_MAX: Duration = Duration::from_secs(30);

/// A feature, its level, and how it may change.
type Updates<'a> = &'a [(&'a str, i16, i8)];

fn request(updates: Updates<'_>, validate_only: bool) -> UpdateFeaturesRequest {
    let update = |(feature, max_version_level, upgrade_type): &(&str, i16, i8)| FeatureUpdateKey {
        feature: (*feature).to_owned(),
        max_version_level: *max_version_level,
        upgrade_type: *upgrade_type,
        allow_downgrade: false,
    };
    UpdateFeaturesRequest {
        feature_updates: updates.iter().map(update).collect(),
        validate_only,
        ..UpdateFeaturesRequest::default()
    }
}

fn even(_: &Peer, _: &mut UpdateFeaturesResponse) {}

fn names() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "kafka-answers".to_owned(),
        client_software_version: "1".to_owned(),
    }
}

/// Apache Kafka's controller answers before its broker has heard of the change. Coreline tells it
/// from its answer on, so it is not waited for.
fn wait_until_told(kafka: &mut Peer, level: i16) {
    let began = Instant::now();
    loop {
        let response: ApiVersionsResponse = kafka.ask(4, &names());
        let mut levels = response.finalized_features.iter();
        if levels.any(|one| one.name == METADATA && one.max_version_level == level) {
            return;
        }
        assert!(
            began.elapsed() < TOLD_MAX,
            "Kafka does not tell level {level}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn compare(session: &mut Session) {
    let cases: [(&str, Updates<'_>); 17] = [
        ("nothing", &[]),
        ("as it is", &[(METADATA, 25, UP)]),
        ("up", &[(METADATA, 26, UP)]),
        ("to the last", &[(METADATA, 33, UP)]),
        ("beyond the last", &[(METADATA, 35, UP)]),
        ("before the first", &[(METADATA, 6, SAFE)]),
        ("to none", &[(METADATA, 0, SAFE)]),
        ("negative", &[(METADATA, -1, UP)]),
        ("down by going up", &[(METADATA, 24, UP)]),
        ("up by going down", &[(METADATA, 26, SAFE)]),
        ("down", &[(METADATA, 24, SAFE)]),
        ("down with loss", &[(METADATA, 22, SAFE)]),
        ("down with loss, whatever it is", &[(METADATA, 22, UNSAFE)]),
        ("no direction", &[(METADATA, 25, 0)]),
        ("a strange direction", &[(METADATA, 25, 7)]),
        ("unknown", &[("nope", 1, UP)]),
        ("one of two unknown", &[("nope", 1, UP), (METADATA, 26, UP)]),
    ];
    for (case, updates) in cases {
        session.compare(case, from(1), |_| request(updates, true), even);
    }
    // Version 0 cannot say how, nor that it is a trial.
    for level in [25, 35, 24] {
        let updates = [(METADATA, level, UP)];
        session.compare("up alone", 0..=0, |_| request(&updates, false), even);
    }
    let steps: [(Versions, i16, i8); 3] = [(0..=0, 26, UP), (1..=1, 25, SAFE), (2..=2, 25, UP)];
    for (versions, level, how) in steps {
        let updates = [(METADATA, level, how)];
        session.compare("for good", versions, |_| request(&updates, false), even);
        wait_until_told(&mut session.kafka, level);
        let names = |_: &Peer| names();
        let even = |peer: &Peer, response: &mut ApiVersionsResponse| even_versions(peer, response);
        session.compare("features", ALL, names, even);
    }
}
