//! Vocabulary of the whole house: ids, error codes, limits, settings, log levels, time, randomness.
//! Does no input or output and reads no clock.

pub mod config;
pub mod error_code;
pub mod few;
pub mod ids;
pub mod limits;
pub mod random;
pub mod time;
