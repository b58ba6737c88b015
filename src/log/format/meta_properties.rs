//! `meta.properties` at the root of a log directory (`MetaProperties`, version 1): to which cluster
//! and node the directory belongs. Java's properties form.

use super::FormatError;
use super::text::{lines, utf8};
use crate::base::ids::{BrokerId, Uuid};

const VERSION: &str = "1";

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaProperties {
    /// The cluster's id, usually 22 characters of base64.
    pub cluster_id: String,
    /// The node's id.
    pub node_id: BrokerId,
    /// The directory's id (KIP-858); directories of older Kafka have none.
    pub directory_id: Option<Uuid>,
}

impl MetaProperties {
    /// The file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let cluster_id = escaped(&self.cluster_id);
        let mut text = format!(
            "#\nversion={VERSION}\ncluster.id={cluster_id}\nnode.id={}\n",
            self.node_id
        );
        if let Some(directory_id) = self.directory_id {
            text.push_str(&format!("directory.id={directory_id}\n"));
        }
        text.into_bytes()
    }

    /// Reads the file; unknown names are passed over, the last of equal names counts.
    ///
    /// # Errors
    /// [`FormatError`] where a value is missing or malformed, or the version is not 1 (version 0
    /// belongs to a Kafka with ZooKeeper).
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let text = utf8(bytes)?;
        let (mut version, mut cluster_id, mut node_id) = (None, None, None);
        let mut directory_id = None;
        for (at, line) in lines(text) {
            let malformed = || FormatError::new(at, "a malformed \\u escape");
            let Some((name, value)) = property(line).ok_or_else(malformed)? else {
                continue;
            };
            match name.as_str() {
                "version" => version = Some((at, value)),
                "cluster.id" => cluster_id = Some(value),
                "node.id" => node_id = Some((at, value)),
                "directory.id" => directory_id = Some((at, value)),
                _ => {}
            }
        }
        let missing = |name: &str| FormatError::new(text.len(), format!("{name} is missing"));
        let (at, version) = version.ok_or_else(|| missing("version"))?;
        if version != VERSION {
            return Err(FormatError::new(
                at,
                format!("version is {version}, not {VERSION}"),
            ));
        }
        let (at, node_id) = node_id.ok_or_else(|| missing("node.id"))?;
        let node_id = node_id.parse().ok().filter(|node_id: &i32| *node_id >= 0);
        let node_id = node_id.ok_or_else(|| FormatError::new(at, "node.id is no node's id"))?;
        let directory_id = match directory_id {
            None => None,
            Some((at, text)) => Some(
                Uuid::parse(&text)
                    .ok_or_else(|| FormatError::new(at, "directory.id is no directory's id"))?,
            ),
        };
        Ok(Self {
            cluster_id: cluster_id.ok_or_else(|| missing("cluster.id"))?,
            node_id: BrokerId(node_id),
            directory_id,
        })
    }
}

/// What Java's properties take for a gap: other spaces belong to names and values.
const GAPS: [char; 3] = [' ', '\t', '\x0c'];

/// The name and value of a line, no pair for comments and empty lines; `None` where an escape is
/// malformed. Java also parts them by a colon or a space, and escapes by backslash. Unlike Java,
/// gaps at the end are taken for a slip of who edited the file, unless they are escaped.
fn property(line: &str) -> Option<Option<(String, String)>> {
    let line = line.trim_start_matches(GAPS);
    if line.is_empty() || line.starts_with(['#', '!']) {
        return Some(None);
    }
    let (mut name, mut value) = (String::new(), String::new());
    // A gap parts name and value as well as `=` and `:` do, also when one of these follows it.
    let (mut in_value, mut may_part) = (false, true);
    let mut value_end = 0;
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        let meant = match character {
            '\\' => escape(&mut rest)?,
            _ => None,
        };
        let is_separator = matches!(character, '=' | ':') && may_part;
        let is_gap = is_separator || GAPS.contains(&character);
        if is_gap && (!in_value || value.is_empty()) {
            in_value = true;
            may_part &= !is_separator;
        } else if in_value {
            value.push(meant.unwrap_or(character));
            if meant.is_some() || !GAPS.contains(&character) {
                value_end = value.len();
            }
        } else {
            name.push(meant.unwrap_or(character));
        }
    }
    value.truncate(value_end);
    Some(Some((name, value)))
}

/// What follows a backslash: no character at the line's end, `None` where it is malformed.
fn escape(rest: &mut std::str::Chars<'_>) -> Option<Option<char>> {
    Some(Some(match rest.next() {
        None => return Some(None),
        Some('t') => '\t',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('f') => '\x0c',
        Some('u') => {
            let digits: String = rest.by_ref().take(4).collect();
            let is_whole = digits.len() == 4 && digits.chars().all(|one| one.is_ascii_hexdigit());
            let code = u32::from_str_radix(&digits, 16).ok().filter(|_| is_whole)?;
            char::from_u32(code)?
        }
        Some(other) => other,
    }))
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for character in value.chars() {
        let letter = match character {
            '\\' | '=' | ':' | '#' | '!' | ' ' => character,
            '\t' => 't',
            '\n' => 'n',
            '\r' => 'r',
            '\x0c' => 'f',
            _ => {
                out.push(character);
                continue;
            }
        };
        out.extend(['\\', letter]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_of_kafka_is_read() {
        let text = "#\n#Mon Nov 30 01:27:51 UTC 2026\nnode.id=1\n\
            directory.id=eQZOm2pF7digNYwgjwG5LA\nversion=1\ncluster.id=aOdVcoWCQUyh8kSbgFKZyQ\n";
        let properties = MetaProperties::decode(text.as_bytes()).unwrap();
        assert_eq!(properties.node_id, BrokerId(1));
        assert_eq!(properties.cluster_id, "aOdVcoWCQUyh8kSbgFKZyQ");
        assert_eq!(
            properties.directory_id,
            Uuid::parse("eQZOm2pF7digNYwgjwG5LA")
        );
        let spaced = "version : 1\n node.id 7\r\ncluster.id\\==x\\:y\ncluster.id=a\\=b\n";
        let properties = MetaProperties::decode(spaced.as_bytes()).unwrap();
        assert_eq!(
            (properties.node_id, properties.cluster_id.as_str()),
            (BrokerId(7), "a=b")
        );
        assert_eq!(properties.directory_id, None);
        // As java.util.Properties reads it, but for the gaps at the end, which it would keep.
        let escapes = "version=1\nnode.id=7 \t\ncluster.id= \\ a\\t\\u0062\\f \u{a0}\\  \n";
        let properties = MetaProperties::decode(escapes.as_bytes()).unwrap();
        assert_eq!(properties.cluster_id, " a\tb\x0c \u{a0} ");
    }

    #[test]
    fn faults_are_named_with_their_position() {
        for (text, position) in [
            ("", 0),
            ("version=0\nbroker.id=1\n", 0),
            ("node.id=1\ncluster.id=x\n", 23),
            ("version=1\nnode.id=-1\ncluster.id=x\n", 10),
            ("version=1\nnode.id=x\ncluster.id=x\n", 10),
            ("version=1\nnode.id=1\n", 20),
            ("version=1\nnode.id=1\ncluster.id=x\ndirectory.id=y\n", 33),
            ("version=1\nnode.id=1\ncluster.id=\\u00g1\n", 20),
            ("version=1\nnode.id=1\ncluster.id=\\u+0a1\n", 20),
            ("version=1\nnode.id=1\ncluster.id=\\ud800\n", 20),
            ("version=1\nnode.id=1\ncluster.id=\\u12", 20),
        ] {
            let error = MetaProperties::decode(text.as_bytes()).unwrap_err();
            assert_eq!(error.position, position, "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            cluster_id in "[A-Za-z0-9_=:#-]{1,30}|.{0,5}|[ \\\\\t\r\n\x0c!=a]{0,8}",
            node in 0i32..,
            directory: Option<u128>,
        ) {
            let properties = MetaProperties {
                cluster_id,
                node_id: BrokerId(node),
                directory_id: directory.map(|id| Uuid(id.to_be_bytes())),
            };
            prop_assert_eq!(MetaProperties::decode(&properties.encode()), Ok(properties));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text: String) {
            let _ = MetaProperties::decode(&bytes);
            let _ = MetaProperties::decode(text.as_bytes());
        }
    }
}
