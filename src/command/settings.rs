//! Settings as an operator meets them: read with suggestions for misspelt names, listed with what
//! they mean here.

use std::fmt::Write as _;
use std::path::Path;

use coreline::base::config::setting::{Range, Setting, Status};
use coreline::base::config::table::{broker_settings, topic_settings};
use coreline::base::config::{BrokerConfig, ConfigFault, FaultKind, Notice, Origin, Sources, read};

use super::arguments::Arguments;

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
    let bytes = std::fs::read(path)
        .map_err(|error| format!("cannot read the settings {}: {error}", path.display()))?;
    // Java reads such files as ISO 8859-1; UTF-8 is taken first because people write it.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| error.into_bytes().into_iter().map(char::from).collect()))
}

/// One line per fault, each with its place and, for a misspelt name, the nearest one.
fn explain(faults: &[ConfigFault], file: Option<&Path>) -> String {
    let mut text = String::new();
    for fault in faults {
        let place = match (fault.origin, file) {
            (Origin::Line(line), Some(file)) => format!("{}:{line}", file.display()),
            (Origin::Override(number), _) => format!("override {number}"),
            _ => "settings".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{place}: {}", fault.kind);
        if let FaultKind::UnknownName(name) = &fault.kind
            && let Some(nearest) = nearest(name)
        {
            let _ = write!(text, "; did you mean {nearest}?");
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

/// The known name that is most like this one, if any is.
pub fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(
        name,
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
    fn the_list_explains_every_setting() {
        let text = list();
        assert!(text.starts_with("coreline."));
        assert!(text.contains("num.io.threads=8 [accepted, without meaning here]"));
    }
}
