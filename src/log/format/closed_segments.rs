//! `coreline-closed` at the root of a log directory: the segments of every log and their sizes as
//! a clean shutdown left them, so that the next start notices what was lost or changed meanwhile.
//! Ours.
//!
//! ```text
//! 8 magic, 8 broker epoch, 4 logs, and for each log:
//!     2 length of the topic's name, the name, 16 topic id, 4 partition, 4 segments,
//!     and for each segment: 8 base offset, 8 bytes
//! 4 CRC-32C over what precedes
//! ```
//!
//! The broker epoch is that of the `.kafka_cleanshutdown` beside it: where they differ, another
//! broker has used the directory since, and the file says nothing.

use std::collections::BTreeMap;

use super::FormatError;
use crate::base::ids::{BrokerEpoch, Offset, PartitionIndex, Uuid};

const MAGIC: [u8; 8] = *b"CLCLOSE1";
const CHECKSUM_BYTES: usize = 4;

/// A topic's name and id, and a partition.
pub type ClosedKey = (String, Uuid, PartitionIndex);
/// Base offset and bytes of each segment, in order.
pub type SegmentSizes = Vec<(Offset, u64)>;

/// The file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedSegments {
    /// In which the shutdown came.
    pub broker_epoch: BrokerEpoch,
    /// Of each log.
    pub logs: BTreeMap<ClosedKey, SegmentSizes>,
}

impl ClosedSegments {
    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes();
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.broker_epoch.0.to_be_bytes());
        out.extend_from_slice(&count(self.logs.len()));
        for ((topic, id, partition), segments) in &self.logs {
            let length = u16::try_from(topic.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(topic.as_bytes());
            out.extend_from_slice(&id.0);
            out.extend_from_slice(&partition.0.to_be_bytes());
            out.extend_from_slice(&count(segments.len()));
            for (base, bytes) in segments {
                out.extend_from_slice(&base.0.to_be_bytes());
                out.extend_from_slice(&bytes.to_be_bytes());
            }
        }
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&checksum.to_be_bytes());
        out
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`FormatError`] where it is no such file or its checksum is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let end = bytes.len().saturating_sub(CHECKSUM_BYTES);
        let (covered, checksum) = bytes.split_at_checked(end).unwrap_or_default();
        if checksum != crc32c::crc32c(covered).to_be_bytes() {
            return Err(FormatError::new(
                end,
                "the list of segments has a wrong checksum",
            ));
        }
        let mut rest = Rest {
            bytes: covered,
            at: 0,
        };
        if rest.take::<8>()? != MAGIC {
            return Err(FormatError::new(0, "the file is no list of segments"));
        }
        let broker_epoch = BrokerEpoch(i64::from_be_bytes(rest.take()?));
        let mut logs = BTreeMap::new();
        for _ in 0..u32::from_be_bytes(rest.take()?) {
            let (key, segments) = rest.log()?;
            logs.insert(key, segments);
        }
        match rest.bytes.is_empty() {
            true => Ok(Self { broker_epoch, logs }),
            false => Err(rest.fault()),
        }
    }
}

/// What is not read yet.
struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Rest<'_> {
    fn fault(&self) -> FormatError {
        FormatError::new(self.at, "the list of segments is malformed")
    }

    fn slice(&mut self, length: usize) -> Result<&[u8], FormatError> {
        let fault = self.fault();
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(fault)?;
        (self.bytes, self.at) = (rest, self.at + length);
        Ok(taken)
    }

    fn take<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], FormatError> {
        let fault = self.fault();
        self.slice(LENGTH)?.try_into().map_err(|_| fault)
    }

    fn log(&mut self) -> Result<(ClosedKey, SegmentSizes), FormatError> {
        let length = u16::from_be_bytes(self.take()?);
        let fault = self.fault();
        let topic = std::str::from_utf8(self.slice(length.into())?).map_err(|_| fault)?;
        let topic = topic.to_owned();
        let id = Uuid(self.take()?);
        let partition = PartitionIndex(i32::from_be_bytes(self.take()?));
        let mut segments = SegmentSizes::new();
        for _ in 0..u32::from_be_bytes(self.take()?) {
            let base = Offset(i64::from_be_bytes(self.take()?));
            segments.push((base, u64::from_be_bytes(self.take()?)));
        }
        Ok(((topic, id, partition), segments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn closed() -> ClosedSegments {
        let key = |topic: &str, partition| (topic.to_owned(), Uuid([7; 16]), partition);
        ClosedSegments {
            broker_epoch: BrokerEpoch(12),
            logs: BTreeMap::from([
                (
                    key("a", PartitionIndex(0)),
                    vec![(Offset(0), 10), (Offset(5), 0)],
                ),
                (key("b", PartitionIndex(3)), Vec::new()),
            ]),
        }
    }

    #[test]
    fn the_file_comes_back_and_every_flipped_bit_is_noticed() {
        let bytes = closed().encode();
        assert_eq!(ClosedSegments::decode(&bytes), Ok(closed()));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(ClosedSegments::decode(&flipped).is_err(), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes: Vec<u8>, is_ours: bool) {
            if is_ours {
                bytes.splice(0..0, MAGIC);
            }
            bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
            if let Ok(read) = ClosedSegments::decode(&bytes) {
                prop_assert_eq!(ClosedSegments::decode(&read.encode()), Ok(read));
            }
        }
    }
}
