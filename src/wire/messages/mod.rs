//! The requests and responses of Kafka's protocol that this broker serves: one file per API key,
//! whose head states the versions served, what changed in them, and what is missing. Beside them
//! the records of the metadata log and of `__consumer_offsets`, the values of control records and
//! what consumers put into their group's metadata, which have schemas of the same kind.
//!
//! A key is advertised once it stands in [`api`](super::api); those of quotas do not yet.
//!
//! A struct's `Default` is Kafka's: where a schema names no default, a nullable string is empty
//! and a nullable array has no elements, and neither is null.

pub mod alter_client_quotas;
pub mod alter_configs;
pub mod alter_partition_reassignments;
pub mod alter_replica_log_dirs;
pub mod api_versions;
pub mod consumer_protocol;
pub mod control_records;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_client_quotas;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_quorum;
pub mod describe_topic_partitions;
pub mod describe_user_scram_credentials;
pub mod elect_leaders;
pub mod fetch;
pub mod find_coordinator;
pub mod group_records;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_config_resources;
pub mod list_groups;
pub mod list_offsets;
pub mod list_partition_reassignments;
pub mod metadata;
pub mod metadata_records;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod sync_group;
pub mod update_features;
pub mod voters_record;
