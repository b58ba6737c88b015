//! Rules between a topic's settings (`LogConfig.validateTopicLogConfigValues`).

use super::setting::ValueFault;
use super::topic::{TopicOverrides, TopicSettings};

/// The first rule that the settings break.
pub fn check(settings: &TopicSettings, topic: &TopicOverrides) -> Result<(), ValueFault> {
    if settings.min_compaction_lag_ms > settings.max_compaction_lag_ms {
        let value = settings.min_compaction_lag_ms.to_string();
        let reason = format!(
            "Must not be above max.compaction.lag.ms ({})",
            settings.max_compaction_lag_ms
        );
        return Err(fault("min.compaction.lag.ms", value, reason));
    }
    if topic.get("remote.storage.enable").map(|text| text.trim()) == Some("true") {
        let reason = "Tiered storage is not served".to_owned();
        return Err(fault("remote.storage.enable", "true".to_owned(), reason));
    }
    Ok(())
}

fn fault(name: &str, value: String, reason: String) -> ValueFault {
    ValueFault {
        name: name.to_owned(),
        value,
        reason,
    }
}
