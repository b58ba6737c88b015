//! Rules between a topic's settings (`LogConfig.validateTopicLogConfigValues`).

use super::setting::ValueFault;
use super::topic::{TopicOverrides, TopicSettings};

/// The first rule that the settings break.
pub fn check(settings: &TopicSettings, topic: &TopicOverrides) -> Result<(), ValueFault> {
    if settings.min_compaction_lag_ms > settings.max_compaction_lag_ms {
        let reason = format!(
            "conflict topic config setting min.compaction.lag.ms ({}) > max.compaction.lag.ms ({})",
            settings.min_compaction_lag_ms, settings.max_compaction_lag_ms
        );
        return Err(fault("min.compaction.lag.ms", reason));
    }
    if topic.get("remote.storage.enable").map(|text| text.trim()) == Some("true") {
        let reason = "Tiered Storage functionality is disabled in the broker. \
            Topic cannot be configured with remote log storage.";
        return Err(fault("remote.storage.enable", reason.to_owned()));
    }
    Ok(())
}

fn fault(name: &str, reason: String) -> ValueFault {
    ValueFault {
        name: name.to_owned(),
        value: None,
        reason,
    }
}
