//! The shape of the house, checked on its source text: layers point one way, the runtime seam
//! holds, files and functions stay small, locks stay out of the shard's paths.

use std::fs;
use std::path::{Path, PathBuf};

/// Lowest first; a layer may use itself and what stands before it.
const LAYERS: [&str; 10] = [
    "base",
    "metrics",
    "wire",
    "io",
    "log",
    "partition",
    "shard",
    "coordinator",
    "cluster",
    "server",
];
const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;
const PARAMETERS_MAX: usize = 5;
/// Layers on the append and fetch paths: no lock and no panic on what comes from outside.
const LOCK_FREE_LAYERS: [&str; 5] = ["wire", "log", "partition", "shard", "server"];
const PANIC_LINTS: [&str; 4] = ["unwrap_used", "expect_used", "indexing_slicing", "panic"];

struct Source {
    /// Path below `src/`, with forward slashes.
    name: String,
    text: String,
}

impl Source {
    fn layer(&self) -> Option<usize> {
        let first = self.name.split('/').next()?;
        let stem = first.strip_suffix(".rs").unwrap_or(first);
        LAYERS.iter().position(|layer| *layer == stem)
    }

    fn is_below(&self, folder: &str) -> bool {
        self.name.starts_with(&format!("{folder}/"))
    }

    /// Lines with comments and string contents blanked, so that words in prose do not count.
    fn code_lines(&self) -> impl Iterator<Item = (usize, String)> + '_ {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, code_of(line)))
    }
}

fn code_of(line: &str) -> String {
    let mut code = String::with_capacity(line.len());
    let mut in_string = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if in_string => {
                characters.next();
            }
            '\'' if !in_string && characters.peek() == Some(&'"') => {
                characters.next();
            }
            '"' => in_string = !in_string,
            '/' if !in_string && characters.peek() == Some(&'/') => break,
            _ if !in_string => code.push(character),
            _ => {}
        }
    }
    code
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("a source folder is readable");
        for entry in entries {
            let path: PathBuf = entry.expect("a source folder is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(&root).expect("found below the root");
                let name = below.to_string_lossy().replace('\\', "/");
                let text = fs::read_to_string(&path).expect("a source file is UTF-8");
                found.push(Source { name, text });
            }
        }
    }
    assert!(found.len() > 10, "the sources were not found");
    found.sort_by(|left, right| left.name.cmp(&right.name));
    found
}

fn report(rule: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{rule}:\n  {}", faults.join("\n  "));
}

fn has_word(code: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(word).any(|(at, _)| {
        !code[..at].chars().next_back().is_some_and(is_part)
            && !code[at + word.len()..].chars().next().is_some_and(is_part)
    })
}

#[test]
fn no_layer_uses_one_above_it() {
    let mut faults = Vec::new();
    for source in sources() {
        let Some(rank) = source.layer() else { continue };
        for (number, code) in source.code_lines() {
            for above in LAYERS.iter().skip(rank + 1) {
                if code.contains(&format!("crate::{above}")) {
                    faults.push(format!("{}:{number} uses {above}", source.name));
                }
            }
        }
    }
    report("a layer looks up", &faults);
}

#[test]
fn base_uses_the_standard_library_only() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| source.is_below("base")) {
        for (number, code) in source.code_lines() {
            let code = code.trim_start();
            let import = code
                .strip_prefix("use ")
                .or_else(|| code.strip_prefix("pub use "));
            let Some(import) = import else { continue };
            let allowed = ["std::", "core::", "crate::", "super::", "self::"];
            if !allowed.iter().any(|start| import.starts_with(start)) {
                faults.push(format!("{}:{number} {import}", source.name));
            }
        }
    }
    report("base imports a crate", &faults);
}

#[test]
fn the_runtime_seam_holds() {
    let rules = [
        ("unsafe", "io"),
        ("io_uring", "io/uring"),
        ("glommio", "io/glommio"),
        ("tokio", "server/admin"),
        ("hyper", "server/admin"),
    ];
    let mut faults = Vec::new();
    for source in sources() {
        for (number, code) in source.code_lines() {
            for (word, folder) in rules {
                // A feature's name or a module's declaration is no use of the crate.
                let declares = code.contains("mod glommio") || code.contains("glommio::");
                let at_seam = source.is_below("io") && word == "glommio" && declares;
                // The command line asks a running broker's admin port.
                let asks = source.is_below("command") && folder == "server/admin";
                let is_allowed = source.is_below(folder) || at_seam || asks;
                if has_word(&code, word) && !is_allowed {
                    faults.push(format!("{}:{number} {word} outside {folder}/", source.name));
                }
            }
        }
    }
    report("the runtime leaks through its seam", &faults);
}

#[test]
fn no_lock_on_the_paths_of_a_shard() {
    let mut faults = Vec::new();
    for source in sources() {
        if !LOCK_FREE_LAYERS.iter().any(|layer| source.is_below(layer)) {
            continue;
        }
        for (number, code) in source.code_lines() {
            for lock in ["Mutex", "RwLock", "DashMap"] {
                if has_word(&code, lock) {
                    faults.push(format!("{}:{number} {lock}", source.name));
                }
            }
        }
    }
    report("a lock on a shard's path", &faults);
}

#[test]
fn panicking_shortcuts_are_denied_where_input_arrives() {
    for layer in LOCK_FREE_LAYERS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/{layer}/mod.rs"));
        let text = fs::read_to_string(path).expect("each layer has a mod.rs");
        let deny = text
            .split("deny(")
            .nth(1)
            .and_then(|rest| rest.split(')').next());
        for lint in PANIC_LINTS {
            let lint = format!("clippy::{lint}");
            assert!(
                deny.is_some_and(|list| list.contains(&lint)),
                "{layer} does not deny {lint}"
            );
        }
    }
}

#[test]
fn files_and_lines_stay_small() {
    let mut faults = Vec::new();
    for source in sources() {
        let count = source.text.lines().count();
        if count > FILE_LINES_MAX {
            faults.push(format!("{} has {count} lines", source.name));
        }
        for (index, line) in source.text.lines().enumerate() {
            if line.chars().count() > COLUMNS_MAX {
                faults.push(format!(
                    "{}:{} is wider than {COLUMNS_MAX}",
                    source.name,
                    index + 1
                ));
            }
        }
    }
    report("a file is too large", &faults);
}

/// A function's first line, its number of lines and its parameters without `self`.
fn functions(source: &Source) -> Vec<(usize, usize, usize)> {
    let lines: Vec<(usize, String)> = source.code_lines().collect();
    let mut found = Vec::new();
    for (place, (number, code)) in lines.iter().enumerate() {
        let trimmed = code.trim_start();
        let starts = trimmed.starts_with("fn ") || trimmed.contains(" fn ");
        if !starts || !has_word(trimmed, "fn") || trimmed.contains("Fn(") {
            continue;
        }
        let indent = code.len() - trimmed.len();
        let close = format!("{}}}", " ".repeat(indent));
        let rest = &lines[place..];
        let signature: String = rest
            .iter()
            .map(|(_, code)| code.as_str())
            .take(20)
            .collect::<Vec<_>>()
            .join("\n");
        let parameters = count_parameters(&signature);
        let body_end = rest
            .iter()
            .position(|(_, code)| *code == close)
            .unwrap_or(0);
        let declared_only = signature
            .split(['{', ';'])
            .next()
            .is_none_or(|head| signature[head.len()..].starts_with(';'));
        let len = if declared_only || code.trim_end().ends_with('}') {
            1
        } else {
            body_end + 1
        };
        found.push((*number, len, parameters));
    }
    found
}

fn count_parameters(signature: &str) -> usize {
    let Some(open) = signature.find('(') else {
        return 0;
    };
    let (mut depth, mut angle, mut commas) = (0i32, 0i32, Vec::new());
    let mut end = signature.len();
    let mut before = ' ';
    for (at, character) in signature.char_indices().skip_while(|(at, _)| *at < open) {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '<' => angle += 1,
            '>' if before != '-' => angle -= 1,
            ',' if depth == 1 && angle == 0 => commas.push(at),
            _ => {}
        }
        before = character;
        if depth == 0 {
            end = at;
            break;
        }
    }
    let mut parts = Vec::new();
    let mut start = open + 1;
    for comma in commas.into_iter().chain([end]) {
        parts.push(signature.get(start..comma).unwrap_or("").trim().to_owned());
        start = comma + 1;
    }
    let is_self = |part: &String| has_word(part.split(':').next().unwrap_or(""), "self");
    parts
        .iter()
        .filter(|part| !part.is_empty() && !is_self(part))
        .count()
}

#[test]
fn functions_stay_small() {
    let mut faults = Vec::new();
    for source in sources() {
        for (number, len, parameters) in functions(&source) {
            if len > FUNCTION_LINES_MAX {
                faults.push(format!(
                    "{}:{number} a function of {len} lines",
                    source.name
                ));
            }
            if parameters > PARAMETERS_MAX {
                faults.push(format!("{}:{number} {parameters} parameters", source.name));
            }
        }
    }
    report("a function is too large", &faults);
}

#[test]
fn the_checks_see_what_they_should() {
    assert_eq!(
        count_parameters("fn f(&self, a: u8, b: HashMap<u8, u8>) -> X {"),
        2
    );
    assert_eq!(
        count_parameters("fn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {"),
        6
    );
    assert_eq!(count_parameters("fn f() {"), 0);
    assert_eq!(count_parameters("fn f(&mut self) {"), 0);
    assert_eq!(code_of("let x = \"unsafe\"; // unsafe"), "let x = ; ");
    assert!(has_word("std::sync::Mutex<u8>", "Mutex"));
    assert!(!has_word("MutexLike", "Mutex"));
    let body = "    x();\n".repeat(80);
    let source = Source {
        name: "base/x.rs".into(),
        text: format!("fn f() {{\n{body}}}\n"),
    };
    assert_eq!(functions(&source), vec![(1, 82, 0)]);
}
