//! Java's properties files (`java.util.Properties.load`), with the line of each entry.

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

/// The entries of `text`, in order. Nothing is an error: Java accepts every text; a wrong `\u`
/// escape keeps its characters.
#[must_use]
pub fn parse(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, first)) = lines.next() {
        let first = first.trim_start();
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = first.to_owned();
        // A line that ends in an odd number of backslashes goes on in the next.
        while ends_in_escape(&logical) {
            logical.pop();
            match lines.next() {
                Some((_, more)) => logical.push_str(more.trim_start()),
                None => break,
            }
        }
        let (name, value) = split(&logical);
        entries.push(Entry {
            line: index + 1,
            name: unescape(name),
            value: unescape(value),
        });
    }
    entries
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

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let digits: String = characters.clone().take(4).collect();
                let code = u32::from_str_radix(&digits, 16)
                    .ok()
                    .and_then(char::from_u32);
                match code {
                    Some(code) if digits.len() == 4 => {
                        plain.push(code);
                        characters = characters.as_str().get(4..).unwrap_or("").chars();
                    }
                    _ => plain.push_str("\\u"),
                }
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(usize, String, String)> {
        parse(text)
            .into_iter()
            .map(|entry| (entry.line, entry.name, entry.value))
            .collect()
    }

    /// The expected values were printed by `java.util.Properties` for the same text.
    #[test]
    fn a_file_reads_as_java_reads_it() {
        let text = "# comment\n! too\n\na=1\n b : 2\nc 3\nd=x\\\n   y\\\n z\ne\\=f=g\\:h\n\
                    u=\\u0041\\t|\nempty=\nlone\npath=C\\\\x \n";
        let expected = [
            (4, "a", "1"),
            (5, "b", "2"),
            (6, "c", "3"),
            (7, "d", "xyz"),
            (10, "e=f", "g:h"),
            (11, "u", "A\t|"),
            (12, "empty", ""),
            (13, "lone", ""),
            (14, "path", "C\\x "),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|(line, name, value)| (*line, (*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn a_wrong_escape_is_kept() {
        assert_eq!(pairs("a=\\uZZ"), vec![(1, "a".into(), "\\uZZ".into())]);
        assert_eq!(pairs("a=x\\"), vec![(1, "a".into(), "x".into())]);
    }
}
