//! Why the broker ends a connection, in the words of the log line.

use thiserror::Error;

use crate::base::error_code::ErrorCode;
use crate::wire::frame::FrameError;
use crate::wire::header::HeaderError;
use crate::wire::primitives::{DecodeError, EncodeError};

/// A reason to close that lies with what the client sent, or with a fault of ours.
#[derive(Debug, Error)]
pub enum CloseReason {
    /// Not a frame.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// Not Kafka at all, by its first bytes.
    #[error("received {0} instead of a Kafka request")]
    Foreign(&'static str),
    /// A header that cannot be acted on.
    #[error("{0}")]
    Header(#[from] HeaderError),
    /// A body that cannot be read.
    #[error("undecodable {api} request: {error}")]
    Body {
        /// Kafka's name of the key.
        api: &'static str,
        /// What is wrong.
        error: DecodeError,
    },
    /// An answer that cannot be written; a fault of ours.
    #[error("unencodable {api} response: {error}")]
    Response {
        /// Kafka's name of the key.
        api: &'static str,
        /// What is wrong.
        error: EncodeError,
    },
    /// A produce with acks=0 failed; closing is the only way to tell.
    #[error("a Produce request with acks=0 failed with {0}")]
    SilentProduceFailed(ErrorCode),
    /// The frame in the kept share stood still.
    #[error("a partly sent request held the last free request memory without a byte for 1 s")]
    KeptShareLapsed,
    /// A frame stands still.
    #[error("a partly sent request held memory that others waited for, without a byte for 1 s")]
    PartlySent,
    /// A frame trickles in.
    #[error("a partly sent request arrives too slowly")]
    TooSlow,
    /// An answer is not read.
    #[error("left an answer unread while others waited for the memory that it holds")]
    NotReading,
    /// Others hold the memory for answers.
    #[error("there was no memory for an answer of {0} bytes within 30 s")]
    NoMemory(usize),
    /// Nothing asked for `connections.max.idle.ms`.
    #[error("idle for longer than connections.max.idle.ms")]
    Idle,
    /// A handler panicked.
    #[error("the request's handler failed: {0}")]
    Panicked(String),
}

impl CloseReason {
    /// Whether the client did nothing wrong and no operator needs to hear of it.
    #[must_use]
    pub fn is_ordinary(&self) -> bool {
        matches!(self, Self::Idle)
    }
}
