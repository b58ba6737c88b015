//! `coreline log verify`: every byte of a stopped data directory, read and held against what it
//! should be. A line for each partition as soon as it is read, what is wrong below it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coreline::cluster::metadata_log::verify as metadata;
use coreline::io::{Runtime, RuntimeOptions};
use coreline::log::verify::{self, Problem, Report};
use coreline::server::startup::DirectoryLock;

use super::arguments::VerifyArguments;
use super::output::print_or_end;

/// The directory could not be read, or a broker uses it.
const NOT_VERIFIED: u8 = 2;

/// What all reports add up to.
#[derive(Default)]
struct Totals {
    partitions: u64,
    segments: u64,
    batches: u64,
    records: u64,
    bytes: u64,
    problems: u64,
}

impl Totals {
    fn add(&mut self, report: &Report) {
        self.segments += report.segments;
        self.batches += report.batches;
        self.records += report.records;
        self.bytes += report.bytes;
        self.problems += report.problem_count();
    }
}

/// Reads, prints, and tells by the exit code: 0 when everything is as it was written, 1 when
/// something is not, 2 when it could not be looked at.
pub fn run(arguments: &VerifyArguments) -> ExitCode {
    let mut totals = Totals::default();
    for directory in &arguments.directories {
        if let Err(reason) = verify_directory(directory, &mut totals) {
            eprintln!("{}: {reason}", directory.display());
            return ExitCode::from(NOT_VERIFIED);
        }
    }
    let Totals {
        partitions,
        segments,
        batches,
        records,
        bytes,
        problems,
    } = totals;
    print_line(&format!(
        "\n{partitions} partitions, {segments} segments, {batches} batches, {records} records, \
         {bytes} bytes"
    ));
    if problems == 0 {
        print_line("everything is as it was written");
        return ExitCode::SUCCESS;
    }
    print_line(&format!("{problems} problems"));
    ExitCode::FAILURE
}

fn verify_directory(directory: &Path, totals: &mut Totals) -> Result<(), String> {
    let directory = directory
        .canonicalize()
        .map_err(|error| error.to_string())?;
    let _lock = DirectoryLock::take_for_reading(&directory).map_err(|error| error.to_string())?;
    let options = RuntimeOptions {
        name: "verify".to_owned(),
        ..RuntimeOptions::default()
    };
    let mut runtime = Runtime::start(options).map_err(|error| error.to_string())?;
    print_line(&format!(
        "{:<40} {:>8} {:>10} {:>12} {:>15} {:>8}",
        directory.display(),
        "segments",
        "batches",
        "records",
        "bytes",
        "problems"
    ));
    let read = runtime.block_on(read(directory.clone(), totals));
    read.map_err(|error| error.to_string())
}

async fn read(directory: PathBuf, totals: &mut Totals) -> Result<(), coreline::log::LogError> {
    let row = |report: &Report, totals: &mut Totals| {
        totals.partitions += 1;
        totals.add(report);
        print_row(report);
        print_rest(report);
    };
    let before = totals.partitions;
    let metadata = metadata::verify(&directory).await?;
    let has_metadata = metadata.is_some();
    let image = metadata.and_then(|(report, image)| {
        row(&report, totals);
        image
    });
    let mut of_directory = verify::verify(&directory, |report| row(&report, totals)).await?;
    if let Some(image) = image {
        metadata::check_owners(&directory, &image, &mut of_directory).await?;
    }
    if !has_metadata && totals.partitions > before {
        let note = "there is no metadata log here, as in all log directories but one: whose the \
                    partitions are was not looked at";
        of_directory.notes.push(note.to_owned());
    }
    totals.add(&of_directory);
    if !(of_directory.problems.is_empty() && of_directory.notes.is_empty()) {
        print_line(&of_directory.name);
        print_rest(&of_directory);
    }
    Ok(())
}

fn print_line(text: &str) {
    print_or_end(&format!("{text}\n"));
}

fn print_row(report: &Report) {
    print_line(&format!(
        "{:<40} {:>8} {:>10} {:>12} {:>15} {:>8}",
        report.name,
        report.segments,
        report.batches,
        report.records,
        report.bytes,
        report.problem_count()
    ));
}

fn print_rest(report: &Report) {
    for problem in &report.problems {
        print_line(&format!("    {}", line(problem)));
    }
    if report.more_problems > 0 {
        print_line(&format!("    and {} more", report.more_problems));
    }
    for note in &report.notes {
        print_line(&format!("    note: {note}"));
    }
}

fn line(problem: &Problem) -> String {
    let file = problem.file.display();
    match problem.position {
        Some(position) => format!("{file} at byte {position}: {}", problem.what),
        None => format!("{file}: {}", problem.what),
    }
}
