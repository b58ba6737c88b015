//! The four codecs of record batches (`CompressionType`) in Kafka's framings, decoded as a stream
//! with bounded memory ([`Decoder`]) and encoded whole ([`compress`]).
//!
//! | Codec | Framing | Notes |
//! |---|---|---|
//! | gzip | RFC 1952 | members in a row read as one |
//! | snappy | xerial's: a header, then blocks after their lengths | without it one raw block |
//! | lz4 | LZ4 frame, independent blocks only | written in 64 KiB blocks, without checksums |
//! | zstd | RFC 8878 | window and output limited |
//!
//! Nothing is allocated from a length that the bytes claim before it is held against the limits
//! and against what the codec can possibly make of the bytes at hand (CVE-2023-34455).

mod decoder;
mod encoder;
mod gzip;
mod limits;
mod lz4;
mod snappy;
mod zstd_frame;

#[cfg(test)]
mod compression_test;

pub use decoder::{ByteSource, Decoder, DecompressError};
pub use encoder::{CompressError, compress, level_range};
pub use limits::DecodeLimits;

/// A batch's codec; the numbers are those of the attributes' bits 0 to 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Not compressed.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard (KIP-110); Produce before version 7 must not use it.
    Zstd,
}

impl Codec {
    /// All codecs, in the order of their ids.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec with this id.
    #[must_use]
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The id in a batch's attributes.
    #[must_use]
    pub const fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Kafka's name of the codec in settings and tools.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}
