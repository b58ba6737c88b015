//! SETTINGS.md: every setting of a broker and of a topic, what it does here, and which test shows it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use coreline::base::config::setting::{Range, Setting, Status, UpdateMode};
use coreline::base::config::table::{broker_settings, topic_settings};

use crate::proofs::{PROOFS, WITHOUT_PROOF};

const HEAD: &str = "# Settings\n\n\
    Every setting of Kafka 4.4's brokers and topics, and Coreline's own (`coreline.…`, \
    `write.caching`), with what it does here. Made from the table in the code by \
    `CORELINE_WRITE_SETTINGS=1 cargo test --features sim --test settings_effects`; a test fails where \
    it is stale. *Changes*: at a start, or by request while the broker runs, for one broker or for \
    all.\n";

const GROUPS: [(Status, &str); 4] = [
    (Status::Effective, "In effect"),
    (Status::NotYet, "Accepted, not in effect yet"),
    (Status::NoMeaning, "Accepted, without meaning here"),
    (Status::Refused, "Only the default is accepted"),
];

fn root(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Names of settings in effect as the proofs name them.
fn effective() -> BTreeSet<String> {
    let is_effective = |row: &&Setting| row.status == Status::Effective;
    let of_topics = topic_settings().iter().filter(is_effective);
    let of_topics = of_topics.map(|row| format!("topic/{}", row.name));
    let of_broker = broker_settings().filter(is_effective);
    of_topics
        .chain(of_broker.map(|row| row.name.to_owned()))
        .collect()
}

/// The test that shows a setting's effect.
fn proof(name: &str) -> Option<&'static str> {
    let shows = |proof: &&(&str, &str, &[&str])| proof.2.contains(&name);
    PROOFS.iter().find(shows).map(|(_, test, _)| *test)
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn row(table: &mut String, setting: &Setting, prefix: &str) {
    let changes = match setting.update_mode {
        UpdateMode::ReadOnly => "start",
        UpdateMode::PerBroker => "one broker",
        UpdateMode::ClusterWide if prefix.is_empty() => "all brokers",
        UpdateMode::ClusterWide => "topic",
    };
    let range = match setting.range {
        Range::Any => String::new(),
        range => format!(" {range}."),
    };
    let default = match setting.default {
        None => "none".to_owned(),
        Some("") => "empty".to_owned(),
        Some(text) => format!("`{text}`"),
    };
    let shown = match proof(&format!("{prefix}{}", setting.name)) {
        Some(test) => format!(" | `{test}`"),
        None if setting.status == Status::Effective => " | no test yet".to_owned(),
        None => String::new(),
    };
    let (name, kind) = (setting.name, format!("{:?}", setting.kind).to_lowercase());
    let text = cell(&format!("{}{range}", setting.documentation));
    let default = cell(&default);
    writeln!(
        table,
        "| `{name}` | {kind} | {default} | {changes} | {text}{shown} |"
    )
    .unwrap();
}

fn markdown() -> String {
    let mut table = HEAD.to_owned();
    let kinds: [(&str, &str, Vec<&Setting>); 2] = [
        ("Topics", "topic/", topic_settings().iter().collect()),
        ("Brokers", "", broker_settings().collect()),
    ];
    for (title, prefix, mut settings) in kinds {
        settings.sort_by_key(|row| row.name);
        for (status, heading) in GROUPS {
            let of_group = settings.iter().filter(|row| row.status == status);
            let of_group: Vec<_> = of_group.filter(|row| !row.internal).collect();
            if of_group.is_empty() {
                continue;
            }
            let count = of_group.len();
            write!(
                table,
                "\n## {title}: {} ({count})\n\n",
                heading.to_lowercase()
            )
            .unwrap();
            let is_shown = status == Status::Effective;
            let (last, line) = if is_shown {
                (" Shown by |", "---|")
            } else {
                ("", "")
            };
            writeln!(
                table,
                "| Setting | Type | Default | Changes | What it does |{last}"
            )
            .unwrap();
            writeln!(table, "|---|---|---|---|---|{line}").unwrap();
            for setting in of_group {
                row(&mut table, setting, prefix);
            }
        }
    }
    table
}

#[test]
fn the_printed_table_is_the_one_in_the_code() {
    let file = root("SETTINGS.md");
    let wanted = markdown();
    if std::env::var_os("CORELINE_WRITE_SETTINGS").is_some() {
        std::fs::write(&file, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = wanted
        .lines()
        .zip(found.lines())
        .find(|(one, other)| one != other);
    assert!(
        wanted == found,
        "SETTINGS.md is stale; CORELINE_WRITE_SETTINGS=1 writes it anew: {differs:?}"
    );
    assert!(
        std::fs::read_to_string(root("README.md"))
            .unwrap()
            .contains("(SETTINGS.md)")
    );
}

#[test]
fn every_effective_setting_has_its_proof_or_is_named_without() {
    let mut accounted = BTreeSet::new();
    for (file, test, settings) in PROOFS {
        let text = std::fs::read_to_string(root(file)).unwrap();
        assert!(
            text.contains(&format!("#[test]\nfn {test}()")),
            "{file} has no test {test}"
        );
        for name in *settings {
            assert!(accounted.insert((*name).to_owned()), "{name} stands twice");
            let plain = name.trim_start_matches("topic/");
            assert!(text.contains(plain), "{file} does not name {plain}");
        }
    }
    for name in WITHOUT_PROOF {
        assert!(accounted.insert((*name).to_owned()), "{name} stands twice");
    }
    let effective = effective();
    let missing: Vec<_> = effective.difference(&accounted).collect();
    let wrong: Vec<_> = accounted.difference(&effective).collect();
    assert!(
        missing.is_empty() && wrong.is_empty(),
        "missing {missing:?}, wrong {wrong:?}"
    );
}
