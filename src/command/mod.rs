//! The `coreline` command: its line, its settings, what it prints, how it ends.

pub mod arguments;
pub mod check;
pub mod latency;
pub mod log_verify;
pub mod output;
pub mod screen;
pub mod settings;
pub mod signals;
mod units;
