//! Log levels as BROKER_LOGGER resources (KIP-412; `RuntimeLoggerManager`).

use super::log_levels::{self, Level, ROOT};
use crate::base::error_code::ErrorCode;
use crate::base::ids::BrokerId;
use crate::cluster::decide::Refusal;
use crate::cluster::decide::alter_configs::{ConfigChange, Operation, ResourceChanges};

/// Changes levels: all of them, or none when one is refused.
///
/// # Errors
/// The first change that is refused, in Kafka's words.
pub fn alter(
    node: BrokerId,
    resource: &ResourceChanges,
    validate_only: bool,
) -> Result<(), Refusal> {
    let name = resource.name.as_str();
    let asked: i32 = (name.parse())
        .map_err(|_| request(format!("Node id must be an integer, but it is: {name}")))?;
    if asked != node.0 {
        let expected = node.0;
        let message = format!("Unexpected node id. Expected {expected}, but received {asked}");
        return Err(request(message));
    }
    for change in &resource.changes {
        check(change)?;
    }
    if !validate_only {
        for change in &resource.changes {
            apply(change);
        }
    }
    Ok(())
}

fn request(message: String) -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, message)
}

fn config(message: String) -> Refusal {
    Refusal::new(ErrorCode::INVALID_CONFIG, message)
}

fn check(change: &ConfigChange) -> Result<(), Refusal> {
    let name = &change.name;
    let refuse = |what: &str| {
        let message = format!("{what} is not allowed for the BROKER_LOGGER resource");
        Err(request(message))
    };
    match change.operation {
        Operation::Append => return refuse("APPEND operation"),
        Operation::Subtract => return refuse("SUBTRACT operation"),
        Operation::Unknown(number) => return refuse(&format!("Unknown operation type {number}")),
        Operation::Set | Operation::Delete => {}
    }
    if !log_levels::exists(name) {
        return Err(config(format!("Logger {name} does not exist!")));
    }
    let word = change.value.as_deref().unwrap_or_default();
    match change.operation {
        Operation::Delete if name == ROOT => Err(request(format!(
            "Removing the log level of the {ROOT} logger is not allowed"
        ))),
        Operation::Set if Level::parse(word).is_none() => Err(config(format!(
            "Cannot set the log level of {name} to {word} as it is not a supported log level. \
             Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
        ))),
        _ => Ok(()),
    }
}

fn apply(change: &ConfigChange) {
    let name = &change.name;
    let word = change.value.as_deref().unwrap_or_default();
    let level = match change.operation {
        Operation::Set => Level::parse(word),
        _ => None,
    };
    log_levels::set(name, level);
    match level {
        Some(level) => tracing::warn!("the log level of {name} is {} now", level.name()),
        None => tracing::warn!("the logger {name} has no log level of its own any more"),
    }
}
