//! Clients: listener, connection, dispatch, fetch sessions, one file per API key under `api/`.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod admin;
pub mod api;
pub mod connection;
pub mod context;
pub mod disk_gauge;
pub mod fetch_session;
pub mod groups;
pub mod log_levels;
pub mod log_limit;
pub mod loggers;
pub mod moves;
pub mod node;
pub mod offsets_topic;
pub mod quota;
pub mod serve;
pub mod slow_requests;
pub mod startup;
