//! The requests and responses of Kafka's protocol that this broker serves: one file per API key,
//! whose head states the versions served, what changed in them, and what is missing. Beside them
//! the records of the metadata log and the values of control records, which have schemas of the
//! same kind.
//!
//! A struct's `Default` is Kafka's: where a schema names no default, a nullable string is empty
//! and a nullable array has no elements, and neither is null.

pub mod alter_configs;
pub mod api_versions;
pub mod control_records;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_log_dirs;
pub mod describe_topic_partitions;
pub mod fetch;
pub mod find_coordinator;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod list_config_resources;
pub mod list_offsets;
pub mod metadata;
pub mod metadata_records;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod voters_record;
