//! `coreline-directories` in the metadata log's directory: which id (`directory.id`) each log
//! directory of this node had at its path. An empty folder at such a path is no new directory but
//! one whose disk is not mounted. Our own; one line each after the version's.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::FormatError;
use super::text::{lines, utf8};
use crate::base::ids::Uuid;

/// The file's name.
pub const KNOWN_DIRECTORIES: &str = "coreline-directories";

const VERSION: &str = "0";

/// Ids by path.
pub type KnownDirectories = BTreeMap<PathBuf, Uuid>;

/// The file's bytes. A path that is no line of text is not kept.
#[must_use]
pub fn encode(known: &KnownDirectories) -> Vec<u8> {
    let mut text = format!("{VERSION}\n");
    for (path, id) in known {
        if let Some(path) = path.to_str().filter(|path| !path.contains(['\n', '\r'])) {
            text.push_str(&format!("{id} {path}\n"));
        }
    }
    text.into_bytes()
}

/// Reads the file.
///
/// # Errors
/// [`FormatError`] where the version is another or a line is no id and path.
pub fn decode(bytes: &[u8]) -> Result<KnownDirectories, FormatError> {
    let mut lines = lines(utf8(bytes)?);
    match lines.next() {
        Some((_, VERSION)) => {}
        _ => return Err(FormatError::new(0, format!("the version is not {VERSION}"))),
    }
    lines
        .map(|(at, line)| {
            let (id, path) = line.split_once(' ').unzip();
            let id = id.and_then(Uuid::parse);
            let path = path.filter(|path| !path.is_empty()).map(PathBuf::from);
            path.zip(id)
                .ok_or_else(|| FormatError::new(at, "no id and path of a directory"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_damaged_is_told() {
        let id = Uuid::parse("AAAAAAAAAAEAAAAAAAAAAg").unwrap();
        let known = KnownDirectories::from([("/a b".into(), id), ("/c".into(), id)]);
        let bytes = encode(&known);
        assert_eq!(decode(&bytes).unwrap(), known);
        let more = KnownDirectories::from([("/x\ny".into(), id), ("/c".into(), id)]);
        assert_eq!(decode(&encode(&more)).unwrap().len(), 1);
        for damaged in [
            "",
            "1\n",
            "0\n/c\n",
            "0\nAAAA /c\n",
            "0\nAAAAAAAAAAEAAAAAAAAAAg \n",
        ] {
            assert!(decode(damaged.as_bytes()).is_err(), "{damaged:?}");
        }
    }
}
