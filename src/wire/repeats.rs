//! A Metadata request that names the same topics over and over, made short before it is decoded.
//!
//! Kafka answers it, each topic once. Decoded as it came it would take many times the memory of its
//! bytes, which is what a request is refused for; without its repetitions it is as small as the
//! topics that it asks for.

use std::collections::BTreeSet;
use std::mem::size_of;

use bytes::Bytes;

use super::codec::{Message, is_flexible};
use super::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use super::primitives::{
    DECODED_BYTES_MAX, DecodeError, Reader, Version, WireType, Writer, decoded_bytes_max,
};

/// First version in which a topic begins with an id.
const IDS_FROM: i16 = 10;
/// Most different topics that are told apart; so many would be refused when decoded.
const TOPICS_MAX: usize = DECODED_BYTES_MAX / size_of::<MetadataRequestTopic>();

/// The body of a Metadata request of `version`, each topic once where all of them would take more
/// memory than they may.
///
/// # Errors
/// What is wrong with the bytes.
pub fn without_repeated_topics(reader: Reader, version: i16) -> Result<Reader, DecodeError> {
    let body = reader.into_rest();
    let number = Version {
        number: version,
        flexible: is_flexible(version, MetadataRequest::FLEXIBLE_FROM),
    };
    let mut walk = Reader::new(body.clone());
    let bytes_min = MetadataRequestTopic::bytes_min(number);
    let count = walk.array_count(number.flexible, bytes_min, 0)?;
    let count = count.unwrap_or_default();
    let decoded = count.saturating_mul(size_of::<MetadataRequestTopic>()) + body.len();
    if decoded <= decoded_bytes_max(body.len()) {
        return Ok(Reader::new(body));
    }
    shortened(&body, walk, (count, number))
}

fn shortened(
    body: &Bytes,
    mut walk: Reader,
    (count, version): (usize, Version),
) -> Result<Reader, DecodeError> {
    let (mut topics, mut seen) = (Vec::<&[u8]>::new(), BTreeSet::new());
    for _ in 0..count {
        let from = body.len() - walk.remaining();
        step_over_topic(&mut walk, version)?;
        let to = body.len() - walk.remaining();
        let topic = body.get(from..to).ok_or(DecodeError::Truncated)?;
        if seen.insert(topic) {
            topics.push(topic);
        }
        if topics.len() > TOPICS_MAX {
            return Err(DecodeError::DecodedTooLarge);
        }
    }
    let mut short = Writer::default();
    // No more elements than were read, so there is a length for them.
    let put = short.put_length(Some(topics.len()), version.flexible);
    put.map_err(|_| DecodeError::ArrayTooLong(topics.len()))?;
    topics.into_iter().for_each(|topic| short.put(topic));
    short.put(walk.rest());
    Ok(Reader::new(short.into_bytes()))
}

fn step_over_topic(walk: &mut Reader, version: Version) -> Result<(), DecodeError> {
    if version.number >= IDS_FROM {
        walk.skip(size_of::<crate::base::ids::Uuid>())?;
    }
    walk.skip_string(version.flexible)?;
    if version.flexible {
        walk.tagged_fields(|_, _| Ok(false))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "repeats_test.rs"]
mod repeats_test;
