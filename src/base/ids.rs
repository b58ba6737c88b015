//! Every id, offset and epoch is a type of its own, so that none can stand for another.

use std::fmt;

macro_rules! number_newtype {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(out)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    )*};
}

number_newtype! {
    /// Position of a record in its partition. Ends (log end, high watermark) are exclusive.
    Offset(i64);
    /// Generation of a partition's leadership; stamped into every batch. -1: none.
    LeaderEpoch(i32);
    /// Identity of a producer session (KIP-98). -1: not idempotent.
    ProducerId(i64);
    /// Generation of a producer id; a higher one fences a lower one. -1: not idempotent.
    ProducerEpoch(i16);
    /// Sequence number of a record within its producer id and partition; wraps at `i32::MAX` to 0.
    Sequence(i32);
    /// `node.id` of a broker. -1: none.
    BrokerId(i32);
    /// Number of a partition within its topic.
    PartitionIndex(i32);
    /// Matches a response with its request on one connection.
    CorrelationId(i32);
    /// Number of a request's kind in the protocol.
    ApiKey(i16);
    /// Version of one API key's schema.
    ApiVersion(i16);
    /// Place of a shard in the router, from 0; not a CPU number.
    ShardId(u16);
    /// Epoch of a broker's registration with the controller.
    BrokerEpoch(i64);
    /// Generation of a classic group: one more with every rebalance. -1: none.
    GenerationId(i32);
}

impl Offset {
    /// The offset `count` records further on. Saturates: an offset never wraps.
    #[must_use]
    pub const fn plus(self, count: i64) -> Self {
        Self(self.0.saturating_add(count))
    }
}

impl LeaderEpoch {
    /// No epoch is known.
    pub const NONE: Self = Self(-1);
}

impl ProducerId {
    /// The batch carries no producer id.
    pub const NONE: Self = Self(-1);
}

impl ProducerEpoch {
    /// The batch carries no producer epoch.
    pub const NONE: Self = Self(-1);
}

impl GenerationId {
    /// The client is in no generation.
    pub const NONE: Self = Self(-1);
}

impl Sequence {
    /// The batch carries no sequence.
    pub const NONE: Self = Self(-1);

    /// The sequence `count` records further on, wrapping from `i32::MAX` to 0
    /// (`DefaultRecordBatch.incrementSequence`).
    #[must_use]
    pub const fn plus(self, count: i32) -> Self {
        if self.0 > i32::MAX - count {
            Self(count - (i32::MAX - self.0) - 1)
        } else {
            Self(self.0 + count)
        }
    }
}

/// A 128-bit id in Kafka's `Uuid` form: printed as 22 characters of URL-safe base64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Uuid(pub [u8; 16]);

/// Identity of one creation of a topic (KIP-516).
pub type TopicId = Uuid;

const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    /// `Uuid.ZERO_UUID`: no id.
    pub const ZERO: Self = Self([0; 16]);

    /// Length of the printed form.
    pub const TEXT_LEN: usize = 22;

    /// Reads the 22-character form; `None` when it is anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != Self::TEXT_LEN {
            return None;
        }
        let mut value: u128 = 0;
        for (place, character) in text.bytes().enumerate() {
            let digit = BASE64_URL
                .iter()
                .position(|candidate| *candidate == character)? as u128;
            // The last character holds 2 bits of the id and 4 bits that must be zero.
            if place + 1 == Self::TEXT_LEN {
                if digit & 0xf != 0 {
                    return None;
                }
                value = (value << 2) | (digit >> 4);
            } else {
                value = (value << 6) | digit;
            }
        }
        Some(Self(value.to_be_bytes()))
    }

    /// Whether Kafka keeps this id for itself (zero, one, and those that print with a leading
    /// dash); a random id is drawn again until it is not (`Uuid.randomUuid`).
    #[must_use]
    pub fn is_reserved(self) -> bool {
        let value = u128::from_be_bytes(self.0);
        value <= 1 || (value >> 122) == 62
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        for place in 0..Self::TEXT_LEN {
            let shift = 122i32 - 6 * place as i32;
            let digit = if shift >= 0 {
                value >> shift
            } else {
                value << -shift
            } & 0x3f;
            let character = BASE64_URL.get(digit as usize).copied().unwrap_or(b'A');
            write!(out, "{}", character as char)?;
        }
        Ok(())
    }
}

/// One partition of one topic, by id: stays the same topic's or dies with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's id.
    pub topic_id: TopicId,
    /// The partition within it.
    pub partition: PartitionIndex,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_prints_and_parses_as_kafka_does() {
        // Values printed by org.apache.kafka.common.Uuid.toString.
        let one = Uuid(1u128.to_be_bytes());
        assert_eq!(one.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        for value in [
            0u128,
            1,
            u128::MAX,
            0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978,
        ] {
            let id = Uuid(value.to_be_bytes());
            assert_eq!(Uuid::parse(&id.to_string()), Some(id));
        }
        assert_eq!(Uuid::parse("AAAAAAAAAAAAAAAAAAAAAR"), None);
        assert_eq!(Uuid::parse("short"), None);
        assert_eq!(Uuid::parse("AAAAAAAAAAAAAAAAAAAAA="), None);
    }

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(Sequence(i32::MAX).plus(1), Sequence(0));
        assert_eq!(Sequence(i32::MAX - 1).plus(3), Sequence(1));
        assert_eq!(Sequence(5).plus(2), Sequence(7));
    }
}
