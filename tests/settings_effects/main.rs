//! Every effective setting changed, and its effect seen; and the table of all settings, SETTINGS.md,
//! which is written anew with `CORELINE_WRITE_SETTINGS=1 cargo test --test settings_effects`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../broker/mod.rs"]
mod broker;
mod changes;
mod cleaner;
mod metadata;
mod disk;
mod groups;
mod proofs;
mod quotas;
mod sockets;
mod topics;
mod starts;
mod table;
