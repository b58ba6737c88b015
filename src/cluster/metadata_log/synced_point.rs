//! How far the log is known to be durable: a file of our own beside Kafka's, so that damage is
//! told from a torn end. It is rewritten after each durable append without a flush of its own: what
//! it says has been true since before it was written, and an older one is merely less exact.

use crate::base::ids::Offset;

/// Its name in the log's folder; Kafka leaves files of other names alone.
pub const SYNCED_POINT_FILE: &str = "coreline-synced-point";

/// Length of the file in bytes.
pub const SYNCED_POINT_BYTES: usize = 24;

const MAGIC: u32 = 0x434c_5350;

/// Everything in the segment that begins at `segment` is durable up to `position`, and so are the
/// segments before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncedPoint {
    /// Base offset of the segment.
    pub segment: Offset,
    /// Bytes of it that are durable.
    pub position: u64,
}

impl SyncedPoint {
    /// The file's bytes: magic, segment, position, CRC-32C of what stands before.
    #[must_use]
    pub fn encode(self) -> [u8; SYNCED_POINT_BYTES] {
        let mut bytes = [0; SYNCED_POINT_BYTES];
        let fields = [
            &MAGIC.to_be_bytes()[..],
            &self.segment.0.to_be_bytes(),
            &self.position.to_be_bytes(),
        ];
        for (to, from) in bytes.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        let (covered, crc) = bytes.split_at_mut(SYNCED_POINT_BYTES - 4);
        crc.copy_from_slice(&crc32c::crc32c(covered).to_be_bytes());
        bytes
    }

    /// Reads the file; `None` when it is torn, empty or something else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; SYNCED_POINT_BYTES] = bytes.try_into().ok()?;
        let (covered, crc) = bytes.split_last_chunk::<4>()?;
        if u32::from_be_bytes(*crc) != crc32c::crc32c(covered) {
            return None;
        }
        let (magic, rest) = covered.split_first_chunk::<4>()?;
        let (segment, rest) = rest.split_first_chunk::<8>()?;
        let (position, _) = rest.split_first_chunk::<8>()?;
        (u32::from_be_bytes(*magic) == MAGIC).then_some(Self {
            segment: Offset(i64::from_be_bytes(*segment)),
            position: u64::from_be_bytes(*position),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_point_is_no_point() {
        let point = SyncedPoint {
            segment: Offset(17),
            position: 4_097,
        };
        let bytes = point.encode();
        assert_eq!(SyncedPoint::decode(&bytes), Some(point));
        for at in 0..SYNCED_POINT_BYTES {
            let mut torn = bytes;
            torn[at] ^= 1;
            assert_eq!(SyncedPoint::decode(&torn), None, "byte {at}");
            assert_eq!(SyncedPoint::decode(&bytes[..at]), None);
        }
    }
}
