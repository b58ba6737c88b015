//! The requests and responses of Kafka's protocol that this broker serves: one file per API key,
//! whose head states the versions served, what changed in them, and what is missing.

pub mod api_versions;
pub mod fetch;
pub mod metadata;
pub mod produce;
