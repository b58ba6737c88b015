//! The topics that a consumer's metadata names: all that the coordinator reads of it.

/// The topics of a `ConsumerProtocolSubscription` of any version; `None` when it is not one.
#[must_use]
pub fn topics(metadata: &[u8]) -> Option<Vec<&str>> {
    let (version, rest) = metadata.split_first_chunk::<2>()?;
    if i16::from_be_bytes(*version) < 0 {
        return None;
    }
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    let mut topics = Vec::new();
    for _ in 0..count {
        let (len, after) = rest.split_first_chunk::<2>()?;
        let len = usize::try_from(i16::from_be_bytes(*len)).ok()?;
        let (name, after) = after.split_at_checked(len)?;
        topics.push(std::str::from_utf8(name).ok()?);
        rest = after;
    }
    Some(topics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_read_and_what_is_cut_is_refused() {
        let whole = b"\0\x03\0\0\0\x02\0\x01a\0\x02bc\0\0\0\0more";
        assert_eq!(topics(whole), Some(vec!["a", "bc"]));
        for end in 0..13 {
            assert_eq!(topics(&whole[..end]), None, "{end}");
        }
        assert_eq!(topics(b"\xff\xff\0\0\0\0"), None);
        assert_eq!(topics(b"\0\0\x7f\xff\xff\xff"), None);
        assert_eq!(topics(b"\0\0\0\0\0\0"), Some(vec![]));
    }
}
