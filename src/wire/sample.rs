//! Random messages for tests (feature `sim`): every field that a version carries is drawn, so that
//! codecs can be compared; a field that it does not carry keeps its default.

use bytes::{Bytes, BytesMut};

use super::codec::{DataMessage, Message, RecordMessage, is_flexible};
use super::primitives::{Float64, NullableWireType, RecordSlices, SHARED_BYTES_MIN, Version};
use crate::base::error_code::ErrorCode;
use crate::base::ids::{
    ApiKey, ApiVersion, BrokerEpoch, BrokerId, CorrelationId, GenerationId, LeaderEpoch, Offset,
    PartitionIndex, ProducerEpoch, ProducerId, Sequence, Uuid,
};
use crate::base::random::Random;
use crate::base::time::TimestampMs;

/// Longest array drawn.
const ELEMENTS_MAX: u64 = 3;

/// A value that can be drawn.
pub trait Sample: Sized {
    /// Draws a value that `version` can carry.
    fn sample(random: &mut Random, version: Version) -> Self;

    /// Draws the value of a nullable field.
    fn sample_nullable(random: &mut Random, version: Version, may_be_null: bool) -> Option<Self>
    where
        Self: NullableWireType,
    {
        if may_be_null && random.chance(1, 4) {
            None
        } else {
            Some(Self::sample(random, version))
        }
    }
}

/// An `Option` as a field's type, for the macro to see the type inside it.
pub trait SampleNullable: Sized {
    /// Draws the field.
    fn sample(random: &mut Random, version: Version, may_be_null: bool) -> Self;
}

impl<T: Sample + NullableWireType> SampleNullable for Option<T> {
    fn sample(random: &mut Random, version: Version, may_be_null: bool) -> Self {
        T::sample_nullable(random, version, may_be_null)
    }
}

fn sample_in<T: Sample>(random: &mut Random, number: i16, flexible_from: Option<i16>) -> T {
    let flexible = is_flexible(number, flexible_from);
    T::sample(random, Version { number, flexible })
}

/// Draws a request or response in `version`.
pub fn message<M: Message + Sample>(random: &mut Random, version: i16) -> M {
    sample_in(random, version, M::FLEXIBLE_FROM)
}

/// Draws a record of the metadata log in `version`.
pub fn record<R: RecordMessage + Sample>(random: &mut Random, version: i16) -> R {
    sample_in(random, version, R::FLEXIBLE_FROM)
}

/// Draws a message of its own in `version`.
pub fn data<D: DataMessage + Sample>(random: &mut Random, version: i16) -> D {
    sample_in(random, version, D::FLEXIBLE_FROM)
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Sample for $type {
            /// Small numbers, any numbers, and the ends of the type.
            fn sample(random: &mut Random, _version: Version) -> Self {
                match random.below(24) {
                    0 => Self::MIN,
                    1 => Self::MAX,
                    2..8 => random.below(100) as Self,
                    _ => random.next_u64() as Self,
                }
            }
        }
    )*};
}

integers!(i8, u8, i16, u16, i32, u32, i64);

macro_rules! newtypes {
    ($($type:ident),*) => {$(
        impl Sample for $type {
            fn sample(random: &mut Random, version: Version) -> Self {
                Self(Sample::sample(random, version))
            }
        }
    )*};
}

newtypes!(
    ApiKey,
    ApiVersion,
    BrokerEpoch,
    BrokerId,
    CorrelationId,
    ErrorCode,
    GenerationId,
    LeaderEpoch,
    Offset,
    PartitionIndex,
    ProducerEpoch,
    ProducerId,
    Sequence,
    TimestampMs
);

impl Sample for Float64 {
    /// Of a size that every language prints alike.
    fn sample(random: &mut Random, _version: Version) -> Self {
        Self((random.below(4_000) as f64 - 1_000.0) / 4.0)
    }
}

impl Sample for bool {
    fn sample(random: &mut Random, _version: Version) -> Self {
        random.chance(1, 2)
    }
}

impl Sample for Uuid {
    fn sample(random: &mut Random, _version: Version) -> Self {
        if random.chance(1, 4) {
            Self::ZERO
        } else {
            random.next_uuid()
        }
    }
}

/// Mostly short; sometimes past the lengths at which a varint grows.
fn length(random: &mut Random) -> u64 {
    match random.below(16) {
        0 => 0,
        1 => 126 + random.below(4),
        2 => 16_382 + random.below(4),
        _ => random.below(12),
    }
}

impl Sample for String {
    fn sample(random: &mut Random, _version: Version) -> Self {
        const ALPHABET: [char; 8] = ['a', 'Z', '0', '-', '.', '_', 'é', '漢'];
        let len = length(random);
        (0..len)
            .filter_map(|_| ALPHABET.get(random.below(8) as usize))
            .collect()
    }
}

fn some_bytes(random: &mut Random, len: u64) -> Vec<u8> {
    (0..len).map(|_| random.next_u64() as u8).collect()
}

impl Sample for Bytes {
    fn sample(random: &mut Random, _version: Version) -> Self {
        let len = length(random);
        Self::from(some_bytes(random, len))
    }
}

impl Sample for BytesMut {
    fn sample(random: &mut Random, version: Version) -> Self {
        let bytes: Bytes = Sample::sample(random, version);
        Self::from(bytes.as_ref())
    }
}

impl Sample for RecordSlices {
    /// Slices on both sides of the length from which they are shared.
    fn sample(random: &mut Random, _version: Version) -> Self {
        let slices = (0..random.below(ELEMENTS_MAX + 1))
            .map(|_| {
                let len = random.below(2 * SHARED_BYTES_MIN as u64);
                Bytes::from(some_bytes(random, len))
            })
            .collect();
        Self { slices }
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(random: &mut Random, version: Version) -> Self {
        let count = random.below(ELEMENTS_MAX + 1);
        (0..count).map(|_| T::sample(random, version)).collect()
    }
}
