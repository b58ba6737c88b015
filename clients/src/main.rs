//! librdkafka as a client under test.
//!
//!     coreline-clients tasks  BOOTSTRAP TASKS.json      round trips, one JSON answer a task
//!     coreline-clients hammer BOOTSTRAP KEY=VALUE...    produces until standard input closes
//!     coreline-clients check  BOOTSTRAP KEY=VALUE...    compares the log with what was acknowledged
//!     coreline-clients trail  BOOTSTRAP KEY=VALUE...    reads slowly until standard input closes
//!
//! It stands apart from the broker because it builds C code that the broker does not need.

mod check;
mod hammer;
mod names;
mod subscribe;
mod tasks;
mod trail;

use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;

/// Largest message that the clients here send and take.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.as_slice() {
        [verb, bootstrap, file] if verb == "tasks" => tasks::run(bootstrap, file),
        [verb, bootstrap, pairs @ ..] if verb == "hammer" => {
            hammer::run(bootstrap, &options(pairs))
        }
        [verb, bootstrap, pairs @ ..] if verb == "check" => check::run(bootstrap, &options(pairs)),
        [verb, bootstrap, pairs @ ..] if verb == "trail" => trail::run(bootstrap, &options(pairs)),
        _ => Err("tasks, hammer, check or trail, then the broker's address".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coreline-clients: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options(pairs: &[String]) -> HashMap<String, String> {
    pairs
        .iter()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// An option that must be there.
fn required<'a>(options: &'a HashMap<String, String>, name: &str) -> Outcome<&'a str> {
    options
        .get(name)
        .map(String::as_str)
        .ok_or_else(|| format!("{name}=… is missing").into())
}
