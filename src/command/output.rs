//! Standard output, which may be a full disk or a pipe that nobody reads any more: a broker goes on
//! without it, a command that was asked for its text ends and says why.

use std::io::{self, Write};

/// What a command line that is not understood ends with, too.
const NOT_PRINTED: i32 = 2;

/// Prints a text of the running broker. What cannot be printed is named in the log and left out.
pub fn tell(text: &str) {
    if let Err(error) = print(text) {
        tracing::warn!("cannot print to standard output: {error}");
    }
}

/// Prints what a command was asked for. Where that fails the process ends: there is nothing left
/// that it could do.
pub fn print_or_end(text: &str) {
    let Err(error) = print(text) else { return };
    if error.kind() != io::ErrorKind::BrokenPipe {
        let _ = writeln!(io::stderr(), "cannot print to standard output: {error}");
    }
    std::process::exit(NOT_PRINTED);
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
