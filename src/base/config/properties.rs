//! Java's properties files (`java.util.Properties.load`), with the line of each entry.

use std::fmt;

/// What editors of some systems put before the first line, as UTF-8 and read byte by byte.
const BYTE_ORDER_MARKS: [&str; 2] = ["\u{feff}", "\u{ef}\u{bb}\u{bf}"];

/// One `name=value` of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// Left of the separator.
    pub name: String,
    /// Right of the separator, spaces at the end included.
    pub value: String,
}

/// Why a line is no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFault {
    /// Java refuses the whole file.
    MalformedEscape,
    /// For Java the mark is a part of the first name, which then nobody knows.
    ByteOrderMark,
}

impl fmt::Display for LineFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::MalformedEscape => {
                "Malformed \\uxxxx encoding: \\u is followed by four hexadecimal digits"
            }
            Self::ByteOrderMark => {
                "The file begins with a byte order mark, which counts as a part of the first \
                 name: save the file without it"
            }
        })
    }
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Its entries, in order.
    pub entries: Vec<Entry>,
    /// Lines that are none, and why.
    pub faults: Vec<(usize, LineFault)>,
}

/// Reads a file. A mark before a comment is passed over, since nothing is lost with it.
#[must_use]
pub fn parse(text: &str) -> Parsed {
    let marked = BYTE_ORDER_MARKS
        .iter()
        .find_map(|mark| text.strip_prefix(mark));
    let mut parsed = Parsed::default();
    for (line, logical) in logical_lines(marked.unwrap_or(text)) {
        let (name, value) = split(&logical);
        let fault = match (unescape(name), unescape(value)) {
            _ if line == 1 && marked.is_some() => LineFault::ByteOrderMark,
            (Some(name), Some(value)) => {
                parsed.entries.push(Entry { line, name, value });
                continue;
            }
            _ => LineFault::MalformedEscape,
        };
        parsed.faults.push((line, fault));
    }
    parsed
}

/// Lines that hold something, each with those that go on where it ends in a backslash, and the
/// number of the first.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut begun_on, mut logical) = (0, String::new());
    let mut lines = Lines { rest: text }.zip(1..).peekable();
    while let Some((line, number)) = lines.next() {
        let line = line.trim_start_matches(is_space);
        if logical.is_empty() {
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            begun_on = number;
        }
        let goes_on = ends_in_escape(line);
        logical.push_str(if goes_on {
            line.get(..line.len() - 1).unwrap_or_default()
        } else {
            line
        });
        if !goes_on || lines.peek().is_none() {
            found.push((begun_on, std::mem::take(&mut logical)));
        }
    }
    found
}

/// Lines as Java ends them: by a line feed, a carriage return, or both in this order.
struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.find(['\n', '\r']).unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at(end);
        let behind = rest.strip_prefix("\r\n");
        let behind = behind.or_else(|| rest.strip_prefix(['\n', '\r']));
        self.rest = behind.unwrap_or_default();
        Some(line)
    }
}

fn ends_in_escape(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Name and value: the first unescaped `=`, `:` or space separates; spaces around it do not count.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line
        .char_indices()
        .find(|(_, character)| {
            let separates = !escaped && (matches!(character, '=' | ':') || is_space(*character));
            escaped = !escaped && *character == '\\';
            separates
        })
        .map_or(line.len(), |(at, _)| at);
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(is_space);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (name, rest.trim_start_matches(is_space))
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\u{c}')
}

/// The text that is meant; `None` where a `\u` has no four digits behind it. Half of a pair of
/// surrogates, which Java keeps, is no character here.
fn unescape(text: &str) -> Option<String> {
    if !text.contains('\\') {
        return Some(text.to_owned());
    }
    let mut plain: Vec<u16> = Vec::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let meant = match character {
            '\\' => match characters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some('u') => {
                    plain.push(four_digits(&mut characters)?);
                    continue;
                }
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        plain.extend_from_slice(meant.encode_utf16(&mut [0; 2]));
    }
    Some(String::from_utf16_lossy(&plain))
}

fn four_digits(characters: &mut std::str::Chars<'_>) -> Option<u16> {
    (0..4).try_fold(0, |number, _| {
        let digit = characters.next()?.to_digit(16)?;
        Some((number << 4) | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
#[path = "properties_test.rs"]
mod properties_test;
