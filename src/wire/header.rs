//! What stands before a request and a response.
//!
//! A request header is version 1, or 2 (a tagged section at its end) where the request is
//! flexible; version 0 was ControlledShutdown's alone. The client id is a string with a length of
//! 2 bytes even in version 2. A response header is the correlation id, in version 1 with a tagged
//! section.

use thiserror::Error;

use super::api::{self, Api};
use super::codec::Message;
use super::messages::api_versions::ApiVersionsRequest;
use super::primitives::{DecodeError, EncodeError, Reader, Writer};
use crate::base::ids::{ApiKey, CorrelationId};

/// Bytes of the shortest header: key, version, correlation id, and a client id's length.
pub const REQUEST_HEADER_BYTES_MIN: usize = 10;

/// Why a request's header cannot be acted on: the connection closes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum HeaderError {
    /// The key is not served.
    #[error("API key {0} is not served")]
    UnsupportedApiKey(ApiKey),
    /// The key is served, but not in this version.
    #[error("version {version} of API key {api_key} is not served")]
    UnsupportedVersion {
        /// The key.
        api_key: ApiKey,
        /// The version asked for.
        version: i16,
    },
    /// The bytes are not a header.
    #[error("the request's header is malformed: {0}")]
    Malformed(#[from] DecodeError),
}

/// The header of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// What kind of request follows.
    pub api_key: ApiKey,
    /// The version it is in. For ApiVersions alone it may be one that is not served:
    /// [`Self::is_version_served`].
    pub api_version: i16,
    /// To be sent back with the response.
    pub correlation_id: CorrelationId,
    /// What the client calls itself.
    pub client_id: Option<String>,
}

impl RequestHeader {
    /// Reads the header and leaves the reader at the body.
    ///
    /// An ApiVersions request in a version that is not served passes, since it is to be answered
    /// (`unsupported_version_response`) and its body not to be read.
    pub fn decode(reader: &mut Reader) -> Result<Self, HeaderError> {
        let api_key = ApiKey(i16::from_be_bytes(reader.array()?));
        let api_version = i16::from_be_bytes(reader.array()?);
        let correlation_id = CorrelationId(i32::from_be_bytes(reader.array()?));
        let api = api::find(api_key).ok_or(HeaderError::UnsupportedApiKey(api_key))?;
        let answers_any = api_key == <ApiVersionsRequest as Message>::API_KEY;
        if !api.versions().contains(&api_version) && !answers_any {
            return Err(HeaderError::UnsupportedVersion {
                api_key,
                version: api_version,
            });
        }
        let client_id = reader.nullable_string(false)?;
        if api.is_flexible(api_version) {
            reader.tagged_fields(|_, _| Ok(false))?;
        }
        Ok(Self {
            api_key,
            api_version,
            correlation_id,
            client_id,
        })
    }

    /// Appends the header, as a client would.
    pub fn encode(&self, api: &Api, writer: &mut Writer) -> Result<(), EncodeError> {
        writer.put(&self.api_key.0.to_be_bytes());
        writer.put(&self.api_version.to_be_bytes());
        writer.put(&self.correlation_id.0.to_be_bytes());
        writer.put_string(self.client_id.as_deref(), false)?;
        if api.is_flexible(self.api_version) {
            writer.put_unsigned_varint(0);
        }
        Ok(())
    }

    /// Whether the version is served; only an ApiVersions request's may not be.
    #[must_use]
    pub fn is_version_served(&self) -> bool {
        api::find(self.api_key).is_some_and(|api| api.versions().contains(&self.api_version))
    }
}

/// Appends the header of a response to a request of `version`.
pub fn encode_response_header(
    writer: &mut Writer,
    api: &Api,
    version: i16,
    correlation_id: CorrelationId,
) {
    writer.put(&correlation_id.0.to_be_bytes());
    if api.response_header_version(version) > 0 {
        writer.put_unsigned_varint(0);
    }
}

/// Reads the header of a response to a request of `version`, as a client would.
pub fn decode_response_header(
    reader: &mut Reader,
    api: &Api,
    version: i16,
) -> Result<CorrelationId, DecodeError> {
    let correlation_id = CorrelationId(i32::from_be_bytes(reader.array()?));
    if api.response_header_version(version) > 0 {
        reader.tagged_fields(|_, _| Ok(false))?;
    }
    Ok(correlation_id)
}
