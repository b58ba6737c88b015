//! Reads what `derive(Debug)` prints, so that two crates' structs of the same message can be
//! compared field by field: a list of `path=value` lines, newtypes and `Some` unwrapped.

use std::fmt::Debug;

/// Every leaf of `value`, as `path=value`, sorted.
pub fn leaves(value: &impl Debug) -> Vec<String> {
    let text = format!("{value:?}");
    let mut parser = Parser { rest: &text };
    let tree = parser.value();
    assert_eq!(parser.rest, "", "the whole text is a value");
    let mut found = Vec::new();
    flatten("", &tree, &mut found);
    found.sort();
    found
}

#[derive(Debug)]
enum Tree {
    Scalar(String),
    Text(String),
    List(Vec<Tree>),
    Tuple(String, Vec<Tree>),
    Fields(String, Vec<(String, Tree)>),
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> String {
        let end = self
            .rest
            .find(|character: char| !character.is_alphanumeric() && !"_-.".contains(character))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_owned()
    }

    /// A string without its quotes; escapes stay as they are printed.
    fn quoted(&mut self) -> String {
        let mut text = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return text;
                }
                '\\' => {
                    text.push('\\');
                    text.extend(characters.next().map(|(_, escaped)| escaped));
                }
                plain => text.push(plain),
            }
        }
        panic!("a string without an end");
    }

    fn list(&mut self, close: &str) -> Vec<Tree> {
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(self.value());
            self.eat(", ");
        }
        items
    }

    fn value(&mut self) -> Tree {
        if self.eat("b\"") || self.eat("\"") {
            return Tree::Text(self.quoted());
        }
        if self.eat("[") {
            return Tree::List(self.list("]"));
        }
        if self.eat("{}") {
            return Tree::List(Vec::new());
        }
        let name = self.word();
        assert!(!name.is_empty(), "no value at {:?}", self.rest);
        if self.eat("(") {
            return Tree::Tuple(name, self.list(")"));
        }
        if !self.eat(" { ") {
            return Tree::Scalar(name);
        }
        let mut fields = Vec::new();
        loop {
            let field = self.word();
            assert!(self.eat(": "), "a field at {:?}", self.rest);
            fields.push((field, self.value()));
            if self.eat(" }") {
                return Tree::Fields(name, fields);
            }
            assert!(self.eat(", "), "another field at {:?}", self.rest);
        }
    }
}

fn flatten(path: &str, tree: &Tree, found: &mut Vec<String>) {
    match tree {
        // A struct without fields.
        Tree::Scalar(_) if path.is_empty() => {}
        Tree::Scalar(value) => found.push(format!("{path}={value}")),
        Tree::Text(text) => found.push(format!("{path}=\"{text}\"")),
        Tree::List(items) => {
            found.push(format!("{path}.len={}", items.len()));
            for (place, item) in items.iter().enumerate() {
                flatten(&format!("{path}.{place}"), item, found);
            }
        }
        Tree::Tuple(name, items) if name == "Uuid" => {
            let hex: String = match items.as_slice() {
                [Tree::List(bytes)] => bytes.iter().map(byte_hex).collect(),
                other => panic!("no uuid: {other:?}"),
            };
            found.push(format!("{path}={}", uuid_text(&hex)));
        }
        Tree::Tuple(_, items) => match items.as_slice() {
            [inner] => flatten(path, inner, found),
            other => panic!("a newtype of {} values", other.len()),
        },
        Tree::Fields(name, fields) if name == "RecordSlices" => match fields.as_slice() {
            [(_, Tree::List(slices))] => {
                let text: String = slices.iter().map(text_of).collect();
                found.push(format!("{path}=\"{text}\""));
            }
            other => panic!("no record slices: {other:?}"),
        },
        Tree::Fields(_, fields) => {
            for (name, value) in fields {
                if name != "unknown_tagged_fields" {
                    flatten(&format!("{path}.{name}"), value, found);
                }
            }
        }
    }
}

fn byte_hex(byte: &Tree) -> String {
    match byte {
        Tree::Scalar(number) => format!("{:02x}", number.parse::<u8>().expect("a byte")),
        other => panic!("no byte: {other:?}"),
    }
}

fn text_of(slice: &Tree) -> String {
    match slice {
        Tree::Text(text) => text.clone(),
        other => panic!("no bytes: {other:?}"),
    }
}

/// Hyphens as the oracle's uuids print them.
fn uuid_text(hex: &str) -> String {
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}
