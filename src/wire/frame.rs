//! Frames: a length of 4 bytes and that many bytes of header and body.
//!
//! The length is judged before anything is reserved for it. It may be as large as the largest
//! frame of all until the API key is there, which says whether it is a Produce request; between
//! the length and the second byte of the key nothing but these 6 bytes is asked for.

use std::cell::Cell;

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

use super::api;
use super::codec::Message;
use super::header::{self, REQUEST_HEADER_BYTES_MIN, RequestHeader};
use super::messages::produce::ProduceRequest;
use super::primitives::{EncodeError, Writer};
use crate::base::ids::{ApiKey, CorrelationId};
use crate::base::limits::{FRAME_BYTES_MAX_OTHER, FRAME_BYTES_MAX_UNAUTHENTICATED, KIB};

/// Bytes of a frame's length.
pub const LENGTH_BYTES: usize = 4;
/// From here on a frame's API key can be read.
pub const PEEK_BYTES: usize = LENGTH_BYTES + 2;

/// Why a frame is refused: the connection closes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// The length is negative.
    #[error("a frame of negative length {0}")]
    Negative(i32),
    /// The length is more than such a frame may have.
    #[error("a frame of {bytes} bytes where at most {bytes_max} are accepted")]
    TooLarge {
        /// Length that the frame announces.
        bytes: usize,
        /// What its kind may have.
        bytes_max: usize,
    },
    /// The length is too small for a request's header.
    #[error("a frame of {0} bytes is too short for a request")]
    TooShort(usize),
}

/// The largest frames accepted, in bytes without the length itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Of a Produce request.
    pub produce_bytes_max: usize,
    /// Of every other request.
    pub other_bytes_max: usize,
}

impl FrameLimits {
    /// Before the client has authenticated, where it has to.
    pub const UNAUTHENTICATED: Self = Self {
        produce_bytes_max: FRAME_BYTES_MAX_UNAUTHENTICATED,
        other_bytes_max: FRAME_BYTES_MAX_UNAUTHENTICATED,
    };

    /// For a client that may send requests; `request_bytes_max` is `socket.request.max.bytes`.
    #[must_use]
    pub fn authenticated(request_bytes_max: usize) -> Self {
        Self {
            produce_bytes_max: request_bytes_max,
            other_bytes_max: request_bytes_max.min(FRAME_BYTES_MAX_OTHER),
        }
    }
}

/// How much of the first frame in a buffer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Neither length nor key are known: `PEEK_BYTES` are needed, whatever the length says.
    Peeking,
    /// The frame is accepted, `missing` bytes of it have not come.
    Partial {
        /// What kind of request it is.
        api_key: ApiKey,
        /// Its length, without the length itself.
        bytes: usize,
        /// How many have not come.
        missing: usize,
    },
    /// The whole frame is there.
    Complete {
        /// What kind of request it is.
        api_key: ApiKey,
        /// Its length, without the length itself.
        bytes: usize,
    },
}

/// Judges the first frame in `buffer`, which starts at a length. May be called again after every
/// byte; it keeps nothing.
pub fn inspect(buffer: &[u8], limits: &FrameLimits) -> Result<Progress, FrameError> {
    let Some((length, body)) = buffer.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(Progress::Peeking);
    };
    let length = i32::from_be_bytes(*length);
    let bytes = usize::try_from(length).map_err(|_| FrameError::Negative(length))?;
    if bytes < REQUEST_HEADER_BYTES_MIN {
        return Err(FrameError::TooShort(bytes));
    }
    let key = body.first_chunk::<2>().map(|key| i16::from_be_bytes(*key));
    let bytes_max = match key.map(ApiKey) {
        None => limits.produce_bytes_max.max(limits.other_bytes_max),
        Some(<ProduceRequest as Message>::API_KEY) => limits.produce_bytes_max,
        Some(_) => limits.other_bytes_max,
    };
    if bytes > bytes_max {
        return Err(FrameError::TooLarge { bytes, bytes_max });
    }
    let Some(api_key) = key.map(ApiKey) else {
        return Ok(Progress::Peeking);
    };
    Ok(match bytes.saturating_sub(body.len()) {
        0 => Progress::Complete { api_key, bytes },
        missing => Progress::Partial {
            api_key,
            bytes,
            missing,
        },
    })
}

/// Takes the first frame off `buffer` when all of it is there: header and body, without the
/// length. Nothing is copied.
pub fn split(buffer: &mut BytesMut, limits: &FrameLimits) -> Result<Option<BytesMut>, FrameError> {
    match inspect(buffer, limits)? {
        Progress::Complete { bytes, .. } => {
            buffer.advance(LENGTH_BYTES);
            Ok(Some(buffer.split_to(bytes)))
        }
        Progress::Peeking | Progress::Partial { .. } => Ok(None),
    }
}

/// Bytes reserved for a message before its size is known.
const RESPONSE_BYTES_RESERVED: usize = 512;
/// A response is copied out of memory of at most this size.
const RESPONSE_BYTES_COPIED: usize = 4 * KIB;

/// A response with its length and header, in pieces for one vectored write: small buffers, and
/// record slices by reference.
///
/// The version is the request's; that of an ApiVersions request in a version not served is 0.
pub fn encode_response<M: Message>(
    message: &M,
    version: i16,
    correlation_id: CorrelationId,
) -> Result<Vec<Bytes>, EncodeError> {
    let api = api::find(M::API_KEY).ok_or(EncodeError::UnsupportedVersion(version))?;
    let mut writer = Writer::over(SCRATCH.take(), RESPONSE_BYTES_RESERVED);
    writer.put(&[0; LENGTH_BYTES]);
    header::encode_response_header(&mut writer, api, version, correlation_id);
    message.encode(&mut writer, version)?;
    place_length(&mut writer)?;
    match writer.into_small(RESPONSE_BYTES_COPIED) {
        Ok((bytes, scratch)) => {
            SCRATCH.set(scratch);
            Ok(vec![bytes])
        }
        Err(writer) => Ok(writer.into_pieces()),
    }
}

thread_local! {
    /// Where responses are written; a small one is copied out in its size, so that it takes one
    /// allocation.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A request with its length and header, as a client would send it.
pub fn encode_request<M: Message>(
    message: &M,
    version: i16,
    correlation_id: CorrelationId,
    client_id: Option<&str>,
) -> Result<Vec<Bytes>, EncodeError> {
    let api = api::find(M::API_KEY).ok_or(EncodeError::UnsupportedVersion(version))?;
    let header = RequestHeader {
        api_key: M::API_KEY,
        api_version: version,
        correlation_id,
        client_id: client_id.map(str::to_owned),
    };
    let mut writer = Writer::with_capacity(RESPONSE_BYTES_RESERVED);
    writer.put(&[0; LENGTH_BYTES]);
    header.encode(api, &mut writer)?;
    message.encode(&mut writer, version)?;
    finish(writer)
}

fn finish(mut writer: Writer) -> Result<Vec<Bytes>, EncodeError> {
    place_length(&mut writer)?;
    Ok(writer.into_pieces())
}

/// Puts the length in its place.
fn place_length(writer: &mut Writer) -> Result<(), EncodeError> {
    let bytes = writer.len().saturating_sub(LENGTH_BYTES);
    let length = i32::try_from(bytes).map_err(|_| EncodeError::TooLong(bytes))?;
    let is_placed = writer.replace_start(&length.to_be_bytes());
    debug_assert!(is_placed, "the length was written first");
    Ok(())
}
