//! Settings as an operator meets them: read with suggestions for misspelt names, listed with what
//! they mean here.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use coreline::base::config::setting::{Range, Setting, Status};
use coreline::base::config::table::{broker_settings, topic_settings};
use coreline::base::config::{
    BrokerConfig, ConfigFault, FaultKind, Notice, Origin, Sources, TOPIC_SYNONYMS, read,
};
use coreline::base::limits::SETTINGS_FILE_BYTES_MAX;

use super::arguments::Arguments;

/// Faults that are told one by one; of more, the number.
pub const FAULTS_TOLD_MAX: usize = 100;
/// Characters of a name or value that are shown.
pub const SHOWN_LEN_MAX: usize = 200;
/// Longest word for which a similar one is looked for; no setting's name is half as long.
pub const COMPARED_LEN_MAX: usize = 128;

/// A name this alike or more is suggested (Jaro-Winkler, 0 to 1).
const LIKENESS_MIN: f64 = 0.85;

/// Reads file and overrides; the error is the text to print.
pub fn load(arguments: &Arguments) -> Result<(BrokerConfig, Vec<Notice>), String> {
    let text = match &arguments.file {
        None => None,
        Some(path) => Some(read_file(path)?),
    };
    let sources = Sources {
        file: text.as_deref(),
        overrides: &arguments.overrides,
    };
    read(sources).map_err(|faults| explain(&faults, arguments.file.as_deref()))
}

/// The text of a file of settings.
pub fn read_file(path: &Path) -> Result<String, String> {
    let name = path.display();
    let mut bytes = Vec::new();
    // Also of what has no size of its own, such as a device.
    File::open(path)
        .and_then(|file| {
            let most = SETTINGS_FILE_BYTES_MAX as u64 + 1;
            file.take(most).read_to_end(&mut bytes)
        })
        .map_err(|error| format!("cannot read the settings {name}: {error}"))?;
    if bytes.len() > SETTINGS_FILE_BYTES_MAX {
        return Err(format!(
            "{name} is larger than {SETTINGS_FILE_BYTES_MAX} bytes: it is no file of settings"
        ));
    }
    // Java reads such files as ISO 8859-1; UTF-8 is taken first because people write it.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| error.into_bytes().into_iter().map(char::from).collect()))
}

/// One line per fault, each with its place and, for a misspelt name, the nearest one.
fn explain(faults: &[ConfigFault], file: Option<&Path>) -> String {
    let mut text = String::new();
    for fault in faults.iter().take(FAULTS_TOLD_MAX) {
        let place = match (fault.origin, file) {
            (Origin::Line(line), Some(file)) => format!("{}:{line}", file.display()),
            (Origin::Override(number), _) => format!("override {number}"),
            _ => "settings".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{place}: {}", legible(&fault.kind.to_string()));
        if let FaultKind::UnknownName(name) = &fault.kind
            && let Some(nearest) = nearest(name)
        {
            let _ = write!(text, "; did you mean {nearest}?");
        }
        text.push('\n');
    }
    text.push_str(&untold(faults.len(), "fault"));
    text.truncate(text.trim_end().len());
    text
}

/// Of how many more nothing is told.
pub fn untold(count: usize, what: &str) -> String {
    match count.saturating_sub(FAULTS_TOLD_MAX) {
        0 => String::new(),
        1 => format!("and 1 more {what}\n"),
        more => format!("and {more} more {what}s\n"),
    }
}

/// A name, a value or a text that quotes one, as a terminal shows it: on one line, and not without
/// end.
pub fn legible(text: &str) -> String {
    let mut shown = String::new();
    for (place, character) in text.chars().enumerate() {
        if place == SHOWN_LEN_MAX {
            shown.push('…');
            break;
        }
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// The known name that is most like this one, if any is. Of a topic's own name it is the one under
/// which a broker has the default.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    if let Some((_, names)) = (TOPIC_SYNONYMS.iter()).find(|(topic, _)| **topic == name) {
        let with_its_unit = names.iter().find(|(_, scale)| *scale == 1);
        return with_its_unit.or(names.first()).map(|(name, _)| *name);
    }
    nearest_of(
        &name,
        broker_settings().map(|setting| setting.name),
        LIKENESS_MIN,
    )
}

/// The word that is most like this one, if any is as alike as `likeness_min` or more.
pub fn nearest_of<'a>(
    word: &str,
    known: impl Iterator<Item = &'a str>,
    likeness_min: f64,
) -> Option<&'a str> {
    if word.len() > COMPARED_LEN_MAX {
        return None;
    }
    known
        .map(|known| (strsim::jaro_winkler(word, known), known))
        .filter(|(likeness, _)| *likeness >= likeness_min)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, known)| known)
}

/// Every setting of brokers and of topics with default, range, status and meaning.
pub fn list() -> String {
    let mut settings: Vec<&Setting> = broker_settings().filter(|row| !row.internal).collect();
    settings.sort_by_key(|setting| (!setting.name.starts_with("coreline."), setting.name));
    let mut text = String::new();
    settings
        .into_iter()
        .for_each(|setting| describe(setting, &mut text));
    let _ = writeln!(
        text,
        "\nOf topics, set with kafka-topics or kafka-configs:\n"
    );
    let mut settings: Vec<&Setting> = topic_settings().iter().collect();
    settings.sort_by_key(|setting| setting.name);
    settings
        .into_iter()
        .for_each(|setting| describe(setting, &mut text));
    text
}

fn describe(setting: &Setting, text: &mut String) {
    let status = match setting.status {
        Status::Effective => "",
        Status::NoMeaning => " [accepted, without meaning here]",
        Status::NotYet => " [accepted, not in effect yet]",
        Status::Refused => " [only the default is accepted]",
    };
    let default = setting.default.unwrap_or("not set");
    let _ = writeln!(text, "{}={default}{status}", setting.name);
    let range = match setting.range {
        Range::Any => String::new(),
        range => format!(" {range}."),
    };
    let _ = writeln!(text, "    {}{range}", setting.documentation);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        assert_eq!(nearest("num.partitoins"), Some("num.partitions"));
        assert_eq!(nearest("log.dirss"), Some("log.dirs"));
        assert_eq!(nearest("coreline.core"), Some("coreline.cores"));
        assert_eq!(nearest("Log.Dirs"), Some("log.dirs"));
        assert_eq!(nearest("retention.ms"), Some("log.retention.ms"));
        assert_eq!(nearest("segment.bytes"), Some("log.segment.bytes"));
        assert_eq!(nearest("zzz"), None);
    }

    #[test]
    fn faults_name_their_place() {
        let sources = Sources {
            file: Some("\nnum.partitoins=1\nnum.partitions=0"),
            overrides: &["x".to_owned()],
        };
        let faults = read(sources).expect_err("three faults");
        let text = explain(&faults, Some(Path::new("my.properties")));
        assert_eq!(
            text,
            "my.properties:2: Unknown setting num.partitoins; did you mean num.partitions?\n\
             my.properties:3: Invalid value 0 for configuration num.partitions: \
             Value must be at least 1\n\
             override 1: `x` is not of the form name=value"
        );
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.properties");
        std::fs::write(&path, "#".repeat(SETTINGS_FILE_BYTES_MAX)).unwrap();
        assert_eq!(read_file(&path).unwrap().len(), SETTINGS_FILE_BYTES_MAX);
        std::fs::write(&path, "#".repeat(SETTINGS_FILE_BYTES_MAX + 1)).unwrap();
        assert!(read_file(&path).unwrap_err().contains("is larger than"));
        let endless = read_file(Path::new("/dev/zero")).unwrap_err();
        assert!(endless.contains("is larger than"), "{endless}");
    }

    #[test]
    fn so_many_faults_are_told_and_of_more_their_number() {
        let explained = |count: usize| {
            let text = "x=1\n".repeat(count);
            let sources = Sources {
                file: Some(&text),
                overrides: &[],
            };
            explain(&read(sources).expect_err("faults"), None)
        };
        let all = explained(FAULTS_TOLD_MAX);
        assert_eq!(all.lines().count(), FAULTS_TOLD_MAX);
        let more = explained(FAULTS_TOLD_MAX + 1);
        assert_eq!(more, format!("{all}\nand 1 more fault"));
        assert!(explained(FAULTS_TOLD_MAX + 2).ends_with("\nand 2 more faults"));
    }

    #[test]
    fn long_words_are_cut_and_not_compared_and_control_characters_are_shown() {
        let shown = |len: usize| legible(&"x".repeat(len)).chars().count();
        assert_eq!(shown(SHOWN_LEN_MAX), SHOWN_LEN_MAX);
        assert_eq!(shown(SHOWN_LEN_MAX + 1), SHOWN_LEN_MAX + 1, "with its mark");
        assert_eq!(shown(10 * SHOWN_LEN_MAX), SHOWN_LEN_MAX + 1);
        assert_eq!(legible("a\u{1b}[2J\nb\u{9b}"), "a\\u{1b}[2J\\nb\\u{9b}");
        let near = |len: usize| {
            let known = "x".repeat(COMPARED_LEN_MAX);
            nearest_of(&"x".repeat(len), [&*known].into_iter(), LIKENESS_MIN).is_some()
        };
        assert!(near(COMPARED_LEN_MAX) && !near(COMPARED_LEN_MAX + 1));
    }

    #[test]
    fn the_list_explains_every_setting() {
        let text = list();
        assert!(text.starts_with("coreline."));
        assert!(text.contains("num.io.threads=8 [accepted, without meaning here]"));
    }
}
