//! A replica's role: leader or follower, high watermark, parked produces and fetches.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod error;
pub mod leadership;
pub mod parked;
pub mod pending;
