//! `.kafka_cleanshutdown` (`CleanShutdownFileHandler`): written last by a clean shutdown, and the
//! broker epoch that ended there (KIP-966). One JSON object: `{"version":0,"brokerEpoch":12}`;
//! other releases spell its fields in snake case and its values as strings.

use super::FormatError;
use super::text::utf8;
use crate::base::ids::BrokerEpoch;

const VERSION: &str = "0";
/// A file that is longer is none of ours.
const BYTES_MAX: usize = 4096;

/// The file's bytes.
#[must_use]
pub fn encode(broker_epoch: BrokerEpoch) -> Vec<u8> {
    format!("{{\"version\":{VERSION},\"brokerEpoch\":{broker_epoch}}}").into_bytes()
}

/// Reads a file. Where the epoch is missing (older Kafka left the file empty), `None`: the shutdown
/// was clean all the same, since the file is there.
///
/// # Errors
/// [`FormatError`] where it is no JSON object of strings or numbers.
pub fn decode(bytes: &[u8]) -> Result<Option<BrokerEpoch>, FormatError> {
    if bytes.len() > BYTES_MAX {
        return Err(FormatError::new(
            BYTES_MAX,
            "the clean-shutdown file is too long",
        ));
    }
    let text = utf8(bytes)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let malformed = |part: &str| {
        let at = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        FormatError::new(
            at.min(text.len()),
            "the clean-shutdown file is no flat JSON object",
        )
    };
    let inside = text
        .trim()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let inside = inside.ok_or_else(|| malformed(text))?;
    let mut broker_epoch = None;
    for field in inside.split(',').filter(|field| !field.trim().is_empty()) {
        let (name, value) = field.split_once(':').ok_or_else(|| malformed(field))?;
        let name = name
            .trim()
            .strip_prefix('"')
            .and_then(|name| name.strip_suffix('"'));
        let name = name.ok_or_else(|| malformed(field))?;
        if name == "broker_epoch" || name == "brokerEpoch" {
            let value = value.trim().trim_matches('"');
            let value: i64 = value.parse().map_err(|_| malformed(field))?;
            broker_epoch = Some(BrokerEpoch(value));
        }
    }
    Ok(broker_epoch.filter(|broker_epoch| broker_epoch.0 >= 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kafkas_own_files_are_read() {
        let kafkas = br#"{"broker_epoch":"8","version":"0"}"#;
        assert_eq!(decode(kafkas), Ok(Some(BrokerEpoch(8))));
        assert_eq!(
            decode(br#"{ "version": 0, "brokerEpoch": 12 }"#),
            Ok(Some(BrokerEpoch(12)))
        );
        assert_eq!(decode(br#"{"version":"0","broker_epoch":"-1"}"#), Ok(None));
        assert_eq!(decode(b""), Ok(None));
        assert_eq!(decode(b"{}"), Ok(None));
    }

    #[test]
    fn other_text_is_refused_with_its_position() {
        for (text, position) in [
            ("x", 0),
            ("{", 0),
            (r#"{"broker_epoch"}"#, 1),
            (r#"{"version":"0",broker_epoch:1}"#, 15),
            (r#"{"broker_epoch":"x"}"#, 1),
        ] {
            assert_eq!(
                decode(text.as_bytes()).unwrap_err().position,
                position,
                "{text}"
            );
        }
        assert!(decode(&vec![b' '; BYTES_MAX]).is_ok());
        assert!(decode(&vec![b' '; BYTES_MAX + 1]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(broker_epoch in 0i64..) {
            let broker_epoch = BrokerEpoch(broker_epoch);
            prop_assert_eq!(decode(&encode(broker_epoch)), Ok(Some(broker_epoch)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text: String) {
            let _ = decode(&bytes);
            let _ = decode(format!("{{{text}}}").as_bytes());
        }
    }
}
