//! The file that gives a log its identity in the journals of one incarnation of the broker
//! (JOURNAL §2), and says where the log stood when it got it. Ours: Apache Kafka ignores it, and a
//! clean shutdown removes it.
//!
//! 88 bytes, big-endian: 8 of magic, 16 incarnation, 16 id, then as i64 or u64 the segment's base
//! offset, the position in it, the log's end, its start and its recovery point, the shard as u16,
//! 2 zero, and CRC-32C over what precedes.

use super::journal::record::LogId;
use crate::base::ids::{Offset, ShardId, Uuid};

const MAGIC: [u8; 8] = *b"CLLOGID1";
const CHECKED_BYTES: usize = 84;
/// A log's identity and where it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogIdFile {
    /// The start of the broker that gave it. An older one's means nothing any more.
    pub(crate) incarnation: Uuid,
    /// Whose journal has its records.
    pub(crate) shard: ShardId,
    /// The id.
    pub(crate) log_id: LogId,
    /// The segment that was active.
    pub(crate) segment_base: Offset,
    /// Its size.
    pub(crate) position: u64,
    /// The log's end.
    pub(crate) log_end: Offset,
    /// The log's start.
    pub(crate) log_start: Offset,
    /// The recovery point.
    pub(crate) recovery_point: Offset,
}

impl LogIdFile {
    /// The file's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.incarnation.0);
        out.extend_from_slice(&self.log_id);
        out.extend_from_slice(&self.segment_base.0.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
        for offset in [self.log_end, self.log_start, self.recovery_point] {
            out.extend_from_slice(&offset.0.to_be_bytes());
        }
        out.extend_from_slice(&self.shard.0.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&checksum.to_be_bytes());
        out
    }

    /// Reads the file; `None` where it is not what `encode` writes: the log must not serve.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (checked, checksum) = bytes.split_at_checked(CHECKED_BYTES)?;
        let checksum = u32::from_be_bytes(checksum.try_into().ok()?);
        let shard = checked.get(CHECKED_BYTES - 4..)?.first_chunk::<2>()?;
        let mut rest = checked.strip_prefix(&MAGIC)?;
        if checksum != crc32c::crc32c(checked) {
            return None;
        }
        let mut take = |bytes: usize| {
            let (field, after) = rest.split_at_checked(bytes)?;
            rest = after;
            Some(field)
        };
        let incarnation = Uuid(take(16)?.try_into().ok()?);
        let log_id = take(16)?.try_into().ok()?;
        let mut long = || {
            take(8)
                .and_then(|field| field.try_into().ok())
                .map(u64::from_be_bytes)
        };
        Some(Self {
            incarnation,
            shard: ShardId(u16::from_be_bytes(*shard)),
            log_id,
            segment_base: Offset(long()?.cast_signed()),
            position: long()?,
            log_end: Offset(long()?.cast_signed()),
            log_start: Offset(long()?.cast_signed()),
            recovery_point: Offset(long()?.cast_signed()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_back_and_every_flipped_bit_is_noticed() {
        let file = LogIdFile {
            incarnation: Uuid([1; 16]),
            shard: ShardId(513),
            log_id: [2; 16],
            segment_base: Offset(3),
            position: 4,
            log_end: Offset(5),
            log_start: Offset(-6),
            recovery_point: Offset(7),
        };
        let bytes = file.encode();
        assert_eq!(bytes.len(), 88);
        assert_eq!(LogIdFile::decode(&bytes), Some(file));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(LogIdFile::decode(&flipped), None, "bit {bit}");
        }
        assert_eq!(LogIdFile::decode(&bytes[..87]), None);
    }
}
