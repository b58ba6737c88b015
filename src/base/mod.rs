//! Vocabulary of the whole house: ids, error codes, limits, time, randomness. Uses std only, does
//! no input or output and reads no clock.

pub mod config;
pub mod error_code;
pub mod few;
pub mod ids;
pub mod limits;
pub mod random;
pub mod time;
