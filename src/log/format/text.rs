//! What the text files have in common: lines with their positions, and Kafka's checkpoint form
//! (`CheckpointFile`): a version, a count, then that many lines.

use super::FormatError;

/// The version of every checkpoint file.
const CHECKPOINT_VERSION: &str = "0";

/// The bytes as text.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, FormatError> {
    std::str::from_utf8(bytes)
        .map_err(|error| FormatError::new(error.valid_up_to(), "the text is not UTF-8"))
}

/// The lines of a text with their positions, without line ends. A text that ends in a line end has
/// no empty line after it.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let here = at;
        at += line.len();
        (here, line.trim_end_matches(['\n', '\r']))
    })
}

/// Reads a checkpoint; `entry` makes an entry of a line's fields, `None` where it cannot.
pub(super) fn decode_checkpoint<T>(
    bytes: &[u8],
    mut entry: impl FnMut(&[&str]) -> Option<T>,
) -> Result<Vec<T>, FormatError> {
    let text = utf8(bytes)?;
    let mut lines = lines(text);
    // Kafka creates its checkpoints empty.
    let Some((at, version)) = lines.next() else {
        return Ok(Vec::new());
    };
    if version.trim() != CHECKPOINT_VERSION {
        return Err(FormatError::new(at, "the checkpoint's version is not 0"));
    }
    let (at, count) = lines
        .next()
        .ok_or_else(|| FormatError::new(text.len(), "the number of entries is missing"))?;
    let count: usize = count
        .trim()
        .parse()
        .map_err(|_| FormatError::new(at, "the number of entries is no number"))?;
    // An entry takes at least three bytes: two fields and what parts them.
    let mut entries = Vec::with_capacity(count.min(text.len() / 3));
    for (at, line) in lines {
        if line.trim().is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        let read = entry(&fields);
        entries.push(read.ok_or_else(|| FormatError::new(at, "a malformed line"))?);
    }
    if entries.len() != count {
        let what = format!("{count} entries are announced, {} are there", entries.len());
        return Err(FormatError::new(text.len(), what));
    }
    Ok(entries)
}

/// Writes a checkpoint of lines without line ends.
pub(super) fn encode_checkpoint(lines: impl ExactSizeIterator<Item = String>) -> Vec<u8> {
    let mut text = format!("{CHECKPOINT_VERSION}\n{}\n", lines.len());
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text.into_bytes()
}
