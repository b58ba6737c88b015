//! The cluster's metadata: the image that every shard reads, the log of Kafka's own metadata
//! records that the image is a replay of, and the controller that alone appends to that log.
//!
//! | Module | What it is |
//! |---|---|
//! | [`records`] | Kafka's metadata records and their framing |
//! | [`image`] | the state those records add up to; immutable once shared |
//! | [`metadata_log`] | the folder `__cluster_metadata-0`, readable by Apache Kafka |
//! | [`decide`], [`controller`] | a request becomes records; the records are written, then shared |
//! | [`quotas`] | limits of users, clients and addresses, and what of them is used |
//! | [`effective`] | a topic's settings over the broker's over the defaults |
//! | [`identity`] | the cluster's, the directory's and this process's ids |
//!
//! Leaders, their epochs and in-sync replicas are input from the log. Absent until there are
//! several nodes: elections among controllers, brokers that follow the log over the network.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod controller;
pub mod decide;
pub mod effective;
pub mod identity;
pub mod image;
pub mod metadata_log;
pub mod quotas;
pub mod records;
