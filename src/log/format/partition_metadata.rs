//! `partition.metadata` in a partition's folder (`PartitionMetadataFile`): the topic's id.

use super::FormatError;
use super::text::{lines, utf8};
use crate::base::ids::{TopicId, Uuid};

const VERSION: &str = "0";

/// The file's bytes.
#[must_use]
pub fn encode(topic_id: TopicId) -> Vec<u8> {
    format!("version: {VERSION}\ntopic_id: {topic_id}").into_bytes()
}

/// Reads the file.
///
/// # Errors
/// [`FormatError`] where it is no such file, of an unknown version, or holds the zero id.
pub fn decode(bytes: &[u8]) -> Result<TopicId, FormatError> {
    let text = utf8(bytes)?;
    let mut lines = lines(text);
    let mut field = |name: &str| {
        let (at, line) = lines.next().unwrap_or((text.len(), ""));
        let value = line
            .split_once(':')
            .filter(|(found, _)| found.trim() == name);
        value
            .map(|(_, value)| (at, value.trim()))
            .ok_or_else(|| FormatError::new(at, format!("the line with {name} is missing")))
    };
    let (at, version) = field("version")?;
    if version != VERSION {
        return Err(FormatError::new(at, "the version is not 0"));
    }
    let (at, topic_id) = field("topic_id")?;
    Uuid::parse(topic_id)
        .filter(|topic_id| *topic_id != Uuid::ZERO)
        .ok_or_else(|| FormatError::new(at, "the topic id is none"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_file_is_kafkas() {
        let metadata = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ";
        let topic_id = Uuid(1u128.to_be_bytes());
        assert_eq!(decode(metadata), Ok(topic_id));
        assert_eq!(encode(topic_id), metadata);
        for (text, position) in [
            ("", 0),
            ("version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", 0),
            ("version: 0\n", 11),
            ("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", 11),
            ("version: 0\ntopic_id: short", 11),
        ] {
            assert_eq!(
                decode(text.as_bytes()).unwrap_err().position,
                position,
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(id in 1u128..) {
            let topic_id = Uuid(id.to_be_bytes());
            prop_assert_eq!(decode(&encode(topic_id)), Ok(topic_id));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }
}
