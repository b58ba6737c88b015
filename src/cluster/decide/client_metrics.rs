//! Subscriptions to client metrics (KIP-714): their settings as they are kept; no client is asked
//! for metrics yet (`ClientMetricsConfigs`).

use crate::base::config::dynamic::ConfigMap;
use crate::base::config::setting::{Kind, Setting, list};
use crate::base::config::table::client_metrics_setting;

/// Push intervals that are valid.
const INTERVAL_MS_MIN: i64 = 100;
const INTERVAL_MS_MAX: i64 = 3_600_000;

/// What a client can be matched by.
const MATCH_KEYS: [&str; 6] = [
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// Why settings are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Kafka answers INVALID_REQUEST.
    Request(String),
    /// Kafka answers INVALID_CONFIG.
    Value(String),
}

/// Whether a subscription may have these settings.
///
/// # Errors
/// The first that is wrong, in Kafka's words.
pub fn check(configs: &ConfigMap) -> Result<(), Fault> {
    if let Some(name) = (configs.keys()).find(|name| client_metrics_setting(name).is_none()) {
        let message = format!("Unknown client metrics configuration: {name}");
        return Err(Fault::Request(message));
    }
    for (name, value) in configs {
        if let Some(setting) = client_metrics_setting(name) {
            check_value(setting, value)?;
        }
    }
    Ok(())
}

fn check_value(setting: &Setting, value: &str) -> Result<(), Fault> {
    let checked = setting.check(value);
    checked.map_err(|fault| Fault::Value(fault.to_string()))?;
    let name = setting.name;
    if setting.kind == Kind::List && list(value).any(str::is_empty) {
        let message = format!("Configuration '{name}' values must not be empty.");
        return Err(Fault::Value(message));
    }
    match name {
        "interval.ms" => {
            let interval: i64 = value.trim().parse().unwrap_or_default();
            if !(INTERVAL_MS_MIN..=INTERVAL_MS_MAX).contains(&interval) {
                return Err(Fault::Request(format!(
                    "Invalid value {interval} for interval.ms, interval must be between 100 and \
                     3600000 (1 hour)"
                )));
            }
            Ok(())
        }
        "match" => list(value).try_for_each(check_pattern),
        _ => Ok(()),
    }
}

/// `key=pattern` with one equals sign, a known key and a regular expression.
fn check_pattern(pattern: &str) -> Result<(), Fault> {
    let mut parts = pattern.split('=');
    let is_valid = match (parts.next(), parts.next(), parts.next()) {
        (Some(key), Some(expression), None) => {
            MATCH_KEYS.contains(&key.trim())
                && !expression.is_empty()
                && regex_syntax::parse(expression.trim()).is_ok()
        }
        _ => false,
    };
    if is_valid {
        Ok(())
    } else {
        let message = format!("Illegal client matching pattern: {pattern}");
        Err(Fault::Value(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str, value: &str) -> String {
        let configs = ConfigMap::from([(name.to_owned(), value.to_owned())]);
        match check(&configs) {
            Ok(()) => String::new(),
            Err(Fault::Request(message)) => format!("request: {message}"),
            Err(Fault::Value(message)) => format!("value: {message}"),
        }
    }

    /// Each as Apache Kafka 4.4.0 answered it.
    #[test]
    fn faults_are_told_in_kafkas_words() {
        let interval = "request: Invalid value 99 for interval.ms, interval must be between 100 \
                        and 3600000 (1 hour)";
        assert_eq!(told("interval.ms", "99"), interval);
        assert!(told("interval.ms", "3600001").starts_with("request: Invalid value 3600001"));
        assert_eq!(
            told("interval.ms", "100") + &told("interval.ms", "3600000"),
            ""
        );
        assert_eq!(
            told("interval.ms", "x"),
            "value: Invalid value x for configuration interval.ms: Not a number of type INT"
        );
        let unknown = "request: Unknown client metrics configuration: nope";
        assert_eq!(told("nope", "1"), unknown);
        for pattern in [
            "client_id",
            "client_id=a=b",
            "x=a",
            "client_id=[",
            "client_id=",
        ] {
            let illegal = format!("value: Illegal client matching pattern: {pattern}");
            assert_eq!(told("match", pattern), illegal);
        }
        let empty = "value: Configuration 'match' values must not be empty.";
        assert_eq!(told("match", "client_id=a,"), empty);
        for valid in ["", "client_id=a,client_id=b", " client_id = a b "] {
            assert_eq!(told("match", valid), "", "{valid}");
        }
        assert_eq!(told("metrics", "*") + &told("metrics", ""), "");
    }
}
