//! `coreline check`: a file of settings validated and explained without starting. What is wrong
//! comes first, each with its line, the text at fault and what would be right; then every setting
//! that was given, with what it means here and its number in larger units.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use coreline::base::config::properties;
use coreline::base::config::setting::{Kind, Range, Setting, Status, ValueFault, list};
use coreline::base::config::table::{FORMER_SETTINGS, broker_setting};
use coreline::base::config::{
    BrokerConfig, ConfigFault, FaultKind, Notice, NoticeKind, OF_LISTENERS, Origin, Sources,
    TOPIC_SYNONYMS, read,
};
use coreline::server::startup;

use super::arguments::CheckArguments;
use super::output::print_or_end;
use super::settings::{FAULTS_TOLD_MAX, legible, nearest, nearest_of, read_file, untold};
use super::units::human;

/// A file that cannot be read; a command line that is not understood ends so too.
const UNREADABLE: u8 = 2;

/// A word this alike or more is suggested (Jaro-Winkler, 0 to 1); most have few letters.
const WORD_LIKENESS_MIN: f64 = 0.75;

/// Checks, prints, and tells by the exit code: 0 when the settings are valid, 1 when a broker would
/// refuse them, 2 when the file cannot be read.
pub fn run(arguments: &CheckArguments) -> ExitCode {
    let text = match read_file(&arguments.file) {
        Ok(text) => text,
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::from(UNREADABLE);
        }
    };
    let (told, is_valid) = check(&arguments.file, &text, &arguments.overrides);
    print_or_end(&told);
    if is_valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One setting as it was given.
struct Given {
    origin: Origin,
    name: String,
    value: String,
}

/// What is to be told of the settings, and whether they are valid.
fn check(path: &Path, text: &str, overrides: &[String]) -> (String, bool) {
    let file = path.display().to_string();
    let given = given(text, overrides);
    let outcome = read(Sources {
        file: Some(text),
        overrides,
    });
    let outcome = outcome.and_then(|read| match machine_faults(&read.0, &given) {
        faults if faults.is_empty() => Ok(read),
        faults => Err(faults),
    });
    let mut told = String::new();
    let mut wrong = HashSet::new();
    let mut without_listener = HashSet::new();
    // Writing to a string cannot fail.
    let is_valid = match outcome {
        Ok((_, notices)) => {
            let _ = writeln!(told, "{file} is valid: {}", counted(given.len(), "setting"));
            listener_notices(&mut told, &notices);
            let others = notices.into_iter();
            let others = others.filter(|notice| notice.kind == NoticeKind::NoListener);
            without_listener.extend(others.flat_map(|notice| notice.names));
            true
        }
        Err(faults) => {
            let _ = writeln!(
                told,
                "{file} is refused: {}",
                counted(faults.len(), "fault")
            );
            for fault in faults.iter().take(FAULTS_TOLD_MAX) {
                let _ = write!(told, "\n{}", explained(fault, &file, &given));
            }
            if faults.len() > FAULTS_TOLD_MAX {
                let _ = write!(told, "\n{}", untold(faults.len(), "fault"));
            }
            wrong.extend(faults.iter().map(|fault| fault.origin));
            false
        }
    };
    let remarks = remarks(&given, &file);
    if !remarks.is_empty() {
        let _ = write!(told, "\nworth a look:\n{remarks}");
    }
    let mut in_force: Vec<&Given> = (in_force(&given).into_values())
        .filter(|one| !wrong.contains(&one.origin))
        .collect();
    in_force.sort_by_key(|one| one.origin);
    let _ = write!(told, "\n{}", meanings(&in_force, &without_listener));
    (told, is_valid)
}

/// What a start on this machine would refuse of valid settings.
fn machine_faults(config: &BrokerConfig, given: &[Given]) -> Vec<ConfigFault> {
    let fault = |(name, refusal): (&str, startup::StartupError)| {
        let one = in_force(given).get(name).copied();
        ConfigFault {
            origin: one.map_or(Origin::Combined, |one| one.origin),
            kind: FaultKind::Value(ValueFault {
                name: name.to_owned(),
                value: None,
                reason: format!("{refusal} (on this machine)"),
            }),
        }
    };
    startup::refusals(config).into_iter().map(fault).collect()
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn given(text: &str, overrides: &[String]) -> Vec<Given> {
    let of_file = properties::parse(text)
        .entries
        .into_iter()
        .map(|entry| Given {
            origin: Origin::Line(entry.line),
            name: entry.name,
            value: entry.value,
        });
    let of_line = overrides.iter().zip(1..).filter_map(|(text, number)| {
        let (name, value) = text.split_once('=')?;
        Some(Given {
            origin: Origin::Override(number),
            name: name.trim().to_owned(),
            value: value.to_owned(),
        })
    });
    of_file.chain(of_line).collect()
}

/// The last of each name.
fn in_force(given: &[Given]) -> HashMap<&str, &Given> {
    given.iter().map(|one| (one.name.as_str(), one)).collect()
}

fn place(origin: Origin, file: &str) -> String {
    match origin {
        Origin::Line(line) => format!("{file}:{line}"),
        Origin::Override(number) => format!("override {number}"),
        Origin::Combined => "settings together".to_owned(),
    }
}

/// A fault: its place, the text at fault, what is wrong, and what would be right.
fn explained(fault: &ConfigFault, file: &str, given: &[Given]) -> String {
    let mut told = place(fault.origin, file);
    let name = match &fault.kind {
        FaultKind::UnknownName(name) | FaultKind::NotServed { name, .. } => Some(name.as_str()),
        FaultKind::Value(fault) => Some(fault.name.as_str()),
        FaultKind::NotAPair(_) | FaultKind::Line(_) => None,
    };
    let is_meant = |one: &&Given| one.origin == fault.origin && Some(one.name.as_str()) == name;
    if let Some(one) = given.iter().find(is_meant) {
        let _ = write!(
            told,
            ": {}={}",
            legible(&one.name),
            shown(&one.name, one.value.trim())
        );
    }
    told.push('\n');
    let what = match &fault.kind {
        FaultKind::UnknownName(name) => unknown(name),
        FaultKind::Value(fault) => {
            let found = broker_setting(base_name(&fault.name));
            let mut text = legible(&fault.reason);
            if let Some(value) = &fault.value {
                text.push_str(&instead(found, value));
            }
            text
        }
        other => legible(&other.to_string()),
    };
    let _ = writeln!(told, "    {what}");
    if let Some(setting) = name.and_then(|name| broker_setting(base_name(name))) {
        let _ = writeln!(told, "    {}", about(setting));
    }
    told
}

fn unknown(name: &str) -> String {
    let Some(nearest) = nearest(name) else {
        return "no such setting; `coreline --settings` lists all".to_owned();
    };
    let about = broker_setting(nearest).map(about).unwrap_or_default();
    format!("no such setting; did you mean {nearest}?\n    {about}")
}

/// The word that is meant, or the number without its unit.
fn instead(setting: Option<&Setting>, value: &str) -> String {
    let Some(setting) = setting else {
        return String::new();
    };
    match setting.range {
        Range::OneOf(options) | Range::OneOfAnyCase(options) => {
            let nearest = nearest_of(value, options.iter().copied(), WORD_LIKENESS_MIN);
            // A word that is right may be refused for another reason.
            nearest
                .filter(|word| *word != value.trim())
                .map_or(String::new(), |word| format!("; did you mean {word}?"))
        }
        _ if is_number(setting.kind) => number_meant(setting.name, value)
            .map_or(String::new(), |number| format!("; did you mean {number}?")),
        _ => String::new(),
    }
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Short | Kind::Int | Kind::Long)
}

/// `1GB`, `7d`, `100_000`: what people write for numbers that take no unit.
fn number_meant(name: &str, value: &str) -> Option<i64> {
    if value.trim().parse::<i64>().is_ok() {
        return None;
    }
    let value = value.trim().replace(['_', ' '], "");
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let number: i64 = number.parse().ok()?;
    let factor = if name.ends_with(".ms") {
        match unit.to_ascii_lowercase().as_str() {
            "ms" | "" => 1,
            "s" | "sec" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            _ => return None,
        }
    } else {
        match unit.to_ascii_lowercase().as_str() {
            "b" | "" => 1,
            "k" | "kb" | "kib" => 1 << 10,
            "m" | "mb" | "mib" => 1 << 20,
            "g" | "gb" | "gib" => 1 << 30,
            "t" | "tb" | "tib" => 1 << 40,
            _ => return None,
        }
    };
    number.checked_mul(factor)
}

/// A setting's meaning, range and default.
fn about(setting: &Setting) -> String {
    let with_unit = |number: i64| match human(setting.name, number) {
        Some(larger) => format!("{number} ({larger})"),
        None => number.to_string(),
    };
    let range = match setting.range {
        Range::Any => String::new(),
        Range::AtLeast(least) => format!(" At least {}.", with_unit(least)),
        Range::Between(least, most) => {
            format!(" From {} to {}.", with_unit(least), with_unit(most))
        }
        range => format!(" {range}."),
    };
    let default = match setting.default {
        Some("") | None => "not set".to_owned(),
        Some(text) => match text.parse() {
            Ok(number) if is_number(setting.kind) => with_unit(number),
            _ => text.to_owned(),
        },
    };
    let name = setting.name;
    format!(
        "{name}: {}{range} Default: {default}.",
        setting.documentation
    )
}

/// A listener's setting without its listener.
fn base_name(name: &str) -> &str {
    let rest = name.strip_prefix("listener.name.");
    let rest = rest.and_then(|rest| rest.split_once('.'));
    rest.map_or(name, |(_, base)| base)
}

/// The value, but not a password's.
fn shown(name: &str, value: &str) -> String {
    match broker_setting(base_name(name)) {
        Some(setting) if setting.is_sensitive() => "[hidden]".to_owned(),
        _ => legible(value),
    }
}

/// What is accepted and yet may not be what was meant: names given twice, and settings of which
/// another wins.
fn remarks(given: &[Given], file: &str) -> String {
    let mut told = String::new();
    let mut last: HashMap<&str, &Given> = HashMap::new();
    let mut repeated = 0;
    for one in given {
        let Some(before) = last.insert(&one.name, one) else {
            continue;
        };
        repeated += 1;
        if repeated <= FAULTS_TOLD_MAX {
            let (first, second) = (place(before.origin, file), place(one.origin, file));
            let name = legible(&one.name);
            let _ = writeln!(told, "  {first}: {name} is given again: {second} wins");
        }
    }
    if repeated > FAULTS_TOLD_MAX {
        let _ = write!(told, "  {}", untold(repeated, "repetition"));
    }
    for (_, names) in TOPIC_SYNONYMS {
        let mut found = names.iter().filter_map(|(name, _)| last.get(name));
        let Some(winner) = found.next() else { continue };
        for loser in found {
            let at = place(loser.origin, file);
            let _ = writeln!(told, "  {at}: {} yields to {}", loser.name, winner.name);
        }
    }
    told
}

/// The controller's listener, which one node does not open.
fn listener_notices(told: &mut String, notices: &[Notice]) {
    let kind = NoticeKind::ControllerListener;
    for notice in notices.iter().filter(|notice| notice.kind == kind) {
        let _ = writeln!(told, "{notice}");
    }
}

/// Every setting that was given, by what becomes of it; listeners' own that no listener heeds are
/// named in `without_listener`.
fn meanings(given: &[&Given], without_listener: &HashSet<String>) -> String {
    const FORMER: &str = "accepted, no longer Kafka's";
    const NO_LISTENER: &str = "accepted, for no listener there is";
    const NO_MEANING: &str = "accepted, without meaning here";
    const NOT_YET: &str = "accepted, not in effect yet";
    const EFFECTIVE: &str = "in effect";
    const ONLY_DEFAULT: &str = "only its default is accepted";
    let groups = [
        EFFECTIVE,
        NOT_YET,
        NO_MEANING,
        NO_LISTENER,
        ONLY_DEFAULT,
        FORMER,
    ];
    let status = |one: &&Given| match broker_setting(base_name(&one.name)) {
        Some(setting) => {
            let is_of_listener = base_name(&one.name) != one.name;
            Some(match setting.status {
                _ if without_listener.contains(&one.name) => NO_LISTENER,
                // As the start takes a listener's own.
                Status::Effective if is_of_listener && !OF_LISTENERS.contains(&setting.name) => {
                    NO_MEANING
                }
                Status::Refused if is_of_listener => NOT_YET,
                Status::Effective => EFFECTIVE,
                Status::NotYet => NOT_YET,
                Status::NoMeaning => NO_MEANING,
                Status::Refused => ONLY_DEFAULT,
            })
        }
        None => FORMER_SETTINGS
            .contains(&one.name.as_str())
            .then_some(FORMER),
    };
    let mut told = String::new();
    for title in groups {
        let mut of_group = given
            .iter()
            .filter(|one| status(one) == Some(title))
            .peekable();
        if of_group.peek().is_none() {
            continue;
        }
        let _ = writeln!(told, "{title}:");
        for one in of_group {
            let _ = writeln!(told, "{}", meaning(one));
        }
    }
    told
}

fn meaning(one: &Given) -> String {
    let value = one.value.trim();
    let setting = broker_setting(base_name(&one.name));
    let larger = setting
        .filter(|setting| is_number(setting.kind))
        .and_then(|setting| human(setting.name, value.parse().ok()?));
    let larger = larger.map_or(String::new(), |larger| format!(" ({larger})"));
    let value = match setting.map(|setting| setting.kind) {
        Some(Kind::List) => legible(&list(value).collect::<Vec<_>>().join(",")),
        _ => shown(&one.name, value),
    };
    let text = setting.map_or("", |setting| setting.documentation);
    let name = legible(&one.name);
    let end = if text.is_empty() { "" } else { "\n      " };
    format!("  {name}={value}{larger}{end}{text}")
}

#[cfg(test)]
#[path = "check_test.rs"]
mod check_test;
