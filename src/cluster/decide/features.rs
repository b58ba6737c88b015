//! UpdateFeatures (`FeatureControlManager.updateFeatures`): all of a request or nothing, with
//! Kafka's codes and messages.
//!
//! The features are those that are served: `metadata.version`, and `kraft.version`, whose level is
//! the metadata log's own and stays as it was made.

use std::collections::BTreeMap;

use super::{Decision, METADATA_VERSIONS, Refusal};
use crate::base::error_code::ErrorCode;
use crate::cluster::image::{Image, METADATA_VERSION};
use crate::cluster::records::{FeatureLevelRecord, MetadataRecord};
use crate::wire::messages::update_features::{
    UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse,
};

/// The feature that says how the metadata log's voters are known (KIP-853).
pub const KRAFT_VERSION: &str = "kraft.version";

/// Lowest and highest level of it that are known.
pub const KRAFT_VERSIONS: (i16, i16) = (0, 1);

/// Levels of `metadata.version` with which records or fields came, so that going back behind one
/// may lose what the log holds (`MetadataVersion.didMetadataChange`).
const METADATA_CHANGES: [i16; 11] = [7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33];

/// Most features of one request; more cannot all be known.
const UPDATES_MAX: usize = 1_000;

/// How a level may change (`FeatureUpdate.UpgradeType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upgrade {
    /// To a higher level.
    Up,
    /// To a lower one that loses nothing.
    SafeDown,
    /// To a lower one whatever is lost.
    UnsafeDown,
    /// None of them.
    Unknown,
}

impl Upgrade {
    fn of(code: i8) -> Self {
        match code {
            1 => Self::Up,
            2 => Self::SafeDown,
            3 => Self::UnsafeDown,
            _ => Self::Unknown,
        }
    }
}

/// What a decision about features depends on besides the image.
#[derive(Clone, Copy, Debug)]
pub struct FeaturesContext {
    /// The level of `kraft.version` in the metadata log.
    pub kraft_version: i16,
    /// The request's version: below 2 each feature is answered by itself.
    pub api_version: i16,
}

/// Decides an UpdateFeatures request.
#[must_use]
pub fn update_features(
    image: &Image,
    request: &UpdateFeaturesRequest,
    context: FeaturesContext,
) -> Decision<UpdateFeaturesResponse> {
    let mut response = UpdateFeaturesResponse {
        error_message: None,
        ..UpdateFeaturesResponse::default()
    };
    let mut records = Vec::new();
    let updates = request.feature_updates.iter();
    let updates: BTreeMap<&str, (i16, Upgrade)> = updates
        .map(|update| {
            let upgrade = Upgrade::of(update.upgrade_type);
            (update.feature.as_str(), (update.max_version_level, upgrade))
        })
        .collect();
    let outcome = if updates.len() > UPDATES_MAX {
        let message = format!("More than {UPDATES_MAX} features are named.");
        Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
    } else {
        updates.iter().try_for_each(|(name, update)| {
            records.extend(update_one(image, context, (name, *update))?);
            Ok(())
        })
    };
    match outcome {
        Ok(()) if context.api_version < 2 => {
            let names = updates.keys();
            response.results = names.map(|name| updated(name)).collect();
        }
        Ok(()) => {}
        Err(refusal) => {
            records.clear();
            response.error_code = refusal.code;
            response.error_message = Some(format!(
                "The update failed for all features since the following feature had an error: {}",
                refusal.message
            ));
        }
    }
    if request.validate_only {
        records.clear();
    }
    Decision { records, response }
}

fn updated(name: &str) -> UpdatableFeatureResult {
    UpdatableFeatureResult {
        feature: name.to_owned(),
        // As Kafka says it.
        error_message: Some("NONE".to_owned()),
        ..UpdatableFeatureResult::default()
    }
}

fn update_one(
    image: &Image,
    context: FeaturesContext,
    (name, (level, upgrade)): (&str, (i16, Upgrade)),
) -> Result<Option<MetadataRecord>, Refusal> {
    let refuse = |why: String| {
        let message = format!("Invalid update version {level} for feature {name}. {why}");
        Err(Refusal::new(ErrorCode::INVALID_UPDATE_VERSION, message))
    };
    if upgrade == Upgrade::Unknown {
        return refuse("The controller does not support the given upgrade type.".to_owned());
    }
    if level < 0 {
        return refuse("A feature version cannot be less than 0.".to_owned());
    }
    let (current, range) = match name {
        METADATA_VERSION => {
            let level = image.features().get(name).copied();
            (level.unwrap_or_default(), METADATA_VERSIONS)
        }
        KRAFT_VERSION => (context.kraft_version, KRAFT_VERSIONS),
        _ => (0, (0, 0)),
    };
    if let Some(why) = unsupported(image, level, range) {
        return refuse(why);
    }
    if level < current && upgrade == Upgrade::Up {
        return refuse(
            concat!(
                "Can't downgrade the version of this feature without setting the upgrade type to ",
                "either safe or unsafe downgrade."
            )
            .to_owned(),
        );
    }
    if level > current && upgrade != Upgrade::Up {
        return refuse("Can't downgrade to a newer version.".to_owned());
    }
    if level == current {
        return Ok(None);
    }
    if name == KRAFT_VERSION {
        return refuse("The level of the metadata log stays as it was made.".to_owned());
    }
    let may_lose = METADATA_CHANGES
        .iter()
        .any(|at| (level + 1..=current).contains(at));
    if may_lose && upgrade == Upgrade::UnsafeDown {
        return downgrade(
            (current, level),
            "Unsafe metadata downgrade is not supported in this version.",
        );
    }
    if may_lose {
        return downgrade(
            (current, level),
            "Refusing to perform the requested downgrade because it might delete metadata \
             information.",
        );
    }
    Ok(Some(MetadataRecord::FeatureLevel(FeatureLevelRecord {
        name: name.to_owned(),
        feature_level: level,
    })))
}

fn downgrade<T>((current, level): (i16, i16), why: &str) -> Result<T, Refusal> {
    let message =
        format!("Unsupported metadata.version downgrade from {current} to {level}. {why}");
    Err(Refusal::new(ErrorCode::INVALID_UPDATE_VERSION, message))
}

/// Why this node cannot have the level (`QuorumFeatures.reasonNotSupported`).
fn unsupported(image: &Image, level: i16, (min, max): (i16, i16)) -> Option<String> {
    if (min..=max).contains(&level) {
        return None;
    }
    let who = format!("Local controller {}", image.node_id());
    Some(match max {
        0 => format!("{who} does not support this feature."),
        _ => format!("{who} only supports versions {min}-{max}"),
    })
}

#[cfg(test)]
#[path = "features_test.rs"]
mod features_test;
