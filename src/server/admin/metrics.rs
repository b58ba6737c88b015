//! Prometheus text (`/metrics`): Kafka's quantities under the names that the usual JMX exporter
//! rules give them, as far as they exist here, and `coreline_…` for what only shards have.
//!
//! Absent, because it does not exist here yet: quotas, transactions, voters, conversions. Never
//! faked: `jvm_…`, request times by Kafka's own stages.

mod brokers;
mod cleaner;
pub mod disks;
mod groups;
mod moves;
mod shards;
mod text;
mod topics;

use super::observer::Observer;
use text::Text;

/// Everything.
pub fn render(observer: &Observer) -> String {
    let mut text = Text::default();
    brokers::render(&mut text, observer);
    topics::render(&mut text, observer);
    groups::render(&mut text, observer);
    shards::render(&mut text, observer);
    cleaner::render(&mut text, observer);
    disks::render(&mut text, observer);
    moves::render(&mut text, observer);
    text.finish()
}
