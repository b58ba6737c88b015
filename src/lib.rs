//! Coreline: a broker that speaks Kafka's protocol and keeps Kafka's files.
//!
//! The layers, lowest first. A layer may use those above it in this list, never those below it;
//! `tests/architecture.rs` reads the `use` lines and fails on the contrary.
//!
//! | Layer | What it is |
//! |---|---|
//! | [`base`] | vocabulary: ids, error codes, limits, time, settings |
//! | [`metrics`] | counters and HDR histograms, one set a shard, merged when read |
//! | [`wire`] | bytes to messages: frames, record batches, compression, one file per API key |
//! | [`io`] | the runtime seam: executor, io_uring driver, simulated driver |
//! | [`log`] | bytes on disk: segments, indexes, producer state, journal, recovery |
//! | [`partition`] | a replica's role, high watermark, parked produces and fetches |
//! | [`shard`] | one core: inbox, router, placement, budget |
//! | [`coordinator`] | state machines over internal topics: groups and their offsets |
//! | [`cluster`] | metadata image, metadata log, controller, limits of clients |
//! | [`server`] | clients: listener, connection, dispatch, fetch sessions, one file per API key |

pub mod base;
pub mod metrics;
pub mod wire;
pub mod io;
pub mod log;
// No fuzz target reaches higher than the log.
#[cfg(not(fuzzing))]
pub mod partition;
#[cfg(not(fuzzing))]
pub mod shard;
#[cfg(not(fuzzing))]
pub mod coordinator;
#[cfg(not(fuzzing))]
pub mod cluster;
#[cfg(not(fuzzing))]
pub mod server;
