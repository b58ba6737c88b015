//! Rules between a broker's settings, and those of single ones that no range tells
//! (`KafkaConfig.validateValues`).

use super::admin::AdminAddress;
use super::broker::per_ip;
use super::cores::Cores;
use super::setting::{ValueFault, list};
use super::topic::BrokerTexts;

/// Every rule that the texts break. Each text by itself is valid.
#[must_use]
pub fn check(texts: &BrokerTexts) -> Vec<ValueFault> {
    let mut faults = of_kafka(texts);
    let mut fault = |name: &str, reason: String| {
        faults.push(ValueFault {
            name: name.to_owned(),
            value: Some(texts.get(name).cloned().unwrap_or_default()),
            reason,
        });
    };
    let given = |name: &str| texts.get(name).map(String::as_str);
    if let Some(Err(reason)) = given("coreline.cores").map(Cores::parse) {
        fault("coreline.cores", reason);
    }
    if let Some(Err(reason)) = given("coreline.admin.listener").map(AdminAddress::parse) {
        fault("coreline.admin.listener", reason.to_owned());
    }
    let number = |name: &str| given(name).and_then(|text| text.parse::<i64>().ok());
    for name in ["socket.send.buffer.bytes", "socket.receive.buffer.bytes"] {
        if number(name).is_some_and(|number| number < 1 && number != -1) {
            fault(name, "Must be -1 (the system's) or at least 1".to_owned());
        }
    }
    if let Some(text) = given("max.connections.per.ip.overrides")
        && list(text).count() != per_ip(text).len()
    {
        let reason = "Must be a list of address:limit".to_owned();
        fault("max.connections.per.ip.overrides", reason);
    }
    let broker = given("broker.id").filter(|text| *text != "-1");
    if let (Some(node), Some(broker)) = (given("node.id"), broker)
        && node != broker
    {
        let reason = "Must be equal to node.id where both are set".to_owned();
        fault("broker.id", reason);
    }
    let protocol = "security.inter.broker.protocol";
    if given(protocol).is_some_and(|text| text != "PLAINTEXT") {
        let reason = "Only PLAINTEXT is served between brokers".to_owned();
        fault(protocol, reason);
    }
    if texts.contains_key("inter.broker.listener.name")
        && texts.contains_key("security.inter.broker.protocol")
    {
        let reason = "Only one of inter.broker.listener.name and this may be set".to_owned();
        fault("security.inter.broker.protocol", reason);
    }
    faults
}

/// Those that Kafka has too, in its words.
fn of_kafka(texts: &BrokerTexts) -> Vec<ValueFault> {
    let mut faults = Vec::new();
    let mut fault = |name: &str, reason: &str| {
        faults.push(ValueFault {
            name: name.to_owned(),
            value: None,
            reason: reason.to_owned(),
        });
    };
    let number = |name: &str| texts.get(name).and_then(|text| text.parse::<i64>().ok());
    for name in ["log.roll.ms", "log.roll.hours"] {
        if number(name).is_some_and(|number| number < 1) {
            fault(name, "log.roll.ms must be greater than or equal to 1");
        }
    }
    for name in ["log.roll.jitter.ms", "log.roll.jitter.hours"] {
        if number(name).is_some_and(|number| number < 0) {
            fault(
                name,
                "log.roll.jitter.ms must be greater than or equal to 0",
            );
        }
    }
    let retentions = [
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ];
    for name in retentions {
        if number(name).is_some_and(|number| number == 0) {
            let rule = "log.retention.ms must be unlimited (-1) or, greater than or equal to 1";
            fault(name, rule);
        }
    }
    let (per_ip, overrides) = ("max.connections.per.ip", "max.connections.per.ip.overrides");
    if number(per_ip) == Some(0) && texts.get(overrides).is_none_or(|text| text.is_empty()) {
        let rule = "max.connections.per.ip can be set to zero only if \
                    max.connections.per.ip.overrides property is set.";
        fault(per_ip, rule);
    }
    let buffer = "log.cleaner.dedupe.buffer.size";
    let threads = number("log.cleaner.threads").unwrap_or(1).max(1);
    if number(buffer).is_some_and(|size| size / threads <= 1024 * 1024) {
        fault(
            buffer,
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        );
    }
    faults
}
