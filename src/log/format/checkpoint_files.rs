//! The checkpoint files at the root of a log directory (`OffsetCheckpointFile`): one offset per
//! partition. Written whole beside the old one, synced, then renamed over it.

use std::collections::BTreeMap;

use super::FormatError;
use super::text::{decode_checkpoint, encode_checkpoint};
use crate::base::ids::{Offset, PartitionIndex};

/// The offsets of a log directory's partitions, by topic name.
pub type PartitionOffsets = BTreeMap<(String, PartitionIndex), Offset>;

/// Reads a file.
///
/// # Errors
/// [`FormatError`] where it is no such file; an empty one holds no offsets. A partition that stands
/// there twice keeps the later offset, as in Kafka.
pub fn decode(bytes: &[u8]) -> Result<PartitionOffsets, FormatError> {
    let entries = decode_checkpoint(bytes, |fields| match fields {
        [topic, partition, offset] => {
            let partition = PartitionIndex(partition.parse().ok()?);
            let offset: i64 = offset.parse().ok()?;
            Some((((*topic).to_owned(), partition), Offset(offset)))
        }
        _ => None,
    })?;
    Ok(entries.into_iter().collect())
}

/// The file's bytes.
#[must_use]
pub fn encode(offsets: &PartitionOffsets) -> Vec<u8> {
    encode_checkpoint(
        offsets
            .iter()
            .map(|((topic, partition), offset)| format!("{topic} {partition} {offset}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_kafkas() {
        let mut offsets = PartitionOffsets::new();
        offsets.insert(("t".to_owned(), PartitionIndex(0)), Offset(12));
        offsets.insert(("t".to_owned(), PartitionIndex(11)), Offset(0));
        assert_eq!(encode(&offsets), b"0\n2\nt 0 12\nt 11 0\n");
        assert_eq!(encode(&PartitionOffsets::new()), b"0\n0\n");
    }

    #[test]
    fn faults_are_named_with_their_position() {
        for (text, position) in [
            ("\n", 0),
            ("1\n0\n", 0),
            ("0\n", 2),
            ("0\nx\n", 2),
            ("0\n-1\n", 2),
            ("0\n1\nt 0\n", 4),
            ("0\n2\nt 0 1\nt x 1\n", 10),
            ("0\n2\nt 0 1\n", 10),
            ("0\n0\nt 0 1\n", 10),
            ("0\n18446744073709551615\n", 23),
        ] {
            let error = decode(text.as_bytes()).unwrap_err();
            assert_eq!(error.position, position, "{text:?}: {error}");
        }
        assert_eq!(decode(b"0\n\xff").unwrap_err().position, 2);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            offsets in proptest::collection::btree_map(
                ("[a-zA-Z0-9._-]{1,20}", 0i32..), 0i64.., 0..20
            )
        ) {
            let offsets: PartitionOffsets = offsets
                .into_iter()
                .map(|((topic, index), offset)| ((topic, PartitionIndex(index)), Offset(offset)))
                .collect();
            prop_assert_eq!(decode(&encode(&offsets)), Ok(offsets));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text: String) {
            let _ = decode(&bytes);
            let _ = decode(format!("0\n1\n{text}").as_bytes());
        }
    }
}
