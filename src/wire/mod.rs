//! Bytes to messages and back: primitives, frames, record batches, compression, and one file per
//! API key under `messages/`. Nothing here allocates from a length that a client merely claimed.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

#[cfg(any(test, feature = "sim"))]
pub mod any_request;
pub mod api;
pub mod codec;
pub mod compression;
pub mod frame;
pub mod header;
pub mod messages;
pub mod primitives;
pub mod record;
pub mod record_batch;
pub mod record_walk;
pub mod repeats;
#[cfg(any(test, feature = "sim"))]
pub mod sample;
pub(crate) mod schema;
pub mod varint;

#[cfg(test)]
mod codec_test;
#[cfg(test)]
mod frame_test;
#[cfg(test)]
mod groups_test;
#[cfg(test)]
mod header_test;
