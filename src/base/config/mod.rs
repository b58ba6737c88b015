//! Settings under Kafka's names: one table of all of them, and the typed values that the rest of
//! the house reads.
//!
//! [`read`] takes the text of a `server.properties` and the command line's overrides and gives a
//! [`BrokerConfig`] with what an operator should be told about it, or every fault at once.
//! [`TopicSettings::derive`] gives a topic's values from its own settings and the broker's.
//!
//! Absent: input and output (the caller reads the file), suggestions of names (the command line
//! makes them from [`table`]), what depends on the machine ([`Budgets::divide`] gets its size as
//! an argument).

mod admin;
mod broker;
mod budget;
mod cores;
mod folders;
mod group_settings;
mod listener;
mod metadata_log;
mod listener_limits;
pub mod describe;
pub mod dynamic;
pub mod groups;
pub mod properties;
mod quota_windows;
mod read;
mod relations;
pub mod setting;
pub mod table;
mod topic;
mod topic_checks;

pub use self::admin::AdminAddress;
pub use self::broker::{BrokerConfig, CleanerSettings};
pub use self::budget::{Budgets, Machine, TooLittleMemory, disk_bounds};
pub use self::cores::Cores;
pub use self::folders::{nested, nested_reason};
pub use self::group_settings::GroupSettings;
pub use self::listener::{Listener, Listeners};
pub use self::listener_limits::{ListenerLimits, OF_LISTENERS};
pub use self::metadata_log::MetadataLogSettings;
pub use self::quota_windows::QuotaWindows;
pub use self::read::{ConfigFault, FaultKind, Notice, NoticeKind, Origin, Sources, read};
pub use self::topic::{
    BrokerTexts, CompressionType, TOPIC_SYNONYMS, TopicOverrides, TopicSettings,
};

#[cfg(test)]
mod read_test;
#[cfg(test)]
mod table_test;
