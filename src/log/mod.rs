//! Bytes on disk: segments, indexes, epoch cache, producer state, validation, the journal,
//! recovery.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]
