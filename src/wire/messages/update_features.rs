//! UpdateFeatures (57), versions 0 to 2: the cluster settles on other levels of features (KIP-584).
//!
//! - Version 1 tells safe from unsafe downgrades and may only validate (KIP-778), 2 answers for
//!   all features together.

use crate::base::error_code::ErrorCode;
use crate::wire::codec::message;

message! {
    /// Which features, and to which levels.
    pub struct UpdateFeaturesRequest(api_key 57, versions 0..=2, flexible 0) {
        timeout_ms: i32 => 0.., default 60000;
        feature_updates: Vec<FeatureUpdateKey> => 0..;
        validate_only: bool => 1..;
    }

    /// One feature.
    pub struct FeatureUpdateKey {
        feature: String => 0..;
        /// 0 switches it off.
        max_version_level: i16 => 0..;
        allow_downgrade: bool => 0..=0;
        /// `FeatureUpdate.UpgradeType`: 1 upgrade, 2 safe downgrade, 3 unsafe downgrade.
        upgrade_type: i8 => 1.., default 1;
    }

    /// What became of it.
    pub struct UpdateFeaturesResponse(api_key 57, versions 0..=2, flexible 0) {
        throttle_time_ms: i32 => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
        results: Vec<UpdatableFeatureResult> => 0..=1, ignorable;
    }

    /// What became of one feature.
    pub struct UpdatableFeatureResult {
        feature: String => 0..;
        error_code: ErrorCode => 0..;
        error_message: Option<String> => 0.., nullable 0.., default Some(String::new());
    }
}
