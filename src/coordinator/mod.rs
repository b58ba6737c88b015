//! State machines over internal topics. A coordinator's operation becomes records and an answer;
//! the answer leaves when the records are committed, and replaying the records gives its state
//! again.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod group;
pub mod group_records;
pub mod group_service;
