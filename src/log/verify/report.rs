//! What is told of a directory: problems with file and position, and what was looked at.

use std::path::{Path, PathBuf};

use crate::log::format::FormatError;

/// Problems kept of one partition; of more, only the number is told.
pub const PROBLEMS_MAX: usize = 100;

/// Something that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, or the folder where one is missing.
    pub file: PathBuf,
    /// Where in it, in bytes.
    pub position: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl Problem {
    /// At a position.
    pub fn at(file: impl Into<PathBuf>, position: u64, what: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            position: Some(position),
            what: what.into(),
        }
    }

    /// Of a whole file.
    pub fn of(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            position: None,
            what: what.into(),
        }
    }

    /// Of a file of one of the formats.
    pub fn format(file: &Path, error: &FormatError) -> Self {
        Self::at(file, error.position, error.what.clone())
    }
}

/// What was found in one partition's folder, or in the directory itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The folder's name; of the directory its own.
    pub name: String,
    /// Segments read.
    pub segments: u64,
    /// Batches in them.
    pub batches: u64,
    /// Records in those.
    pub records: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// At most [`PROBLEMS_MAX`].
    pub problems: Vec<Problem>,
    /// How many more there were.
    pub more_problems: u64,
    /// What an operator may want to know and is no problem.
    pub notes: Vec<String>,
}

impl Report {
    /// Nothing looked at yet.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Adds a problem.
    pub fn add(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        } else {
            self.more_problems += 1;
        }
    }

    /// All problems.
    #[must_use]
    pub fn problem_count(&self) -> u64 {
        self.problems.len() as u64 + self.more_problems
    }
}
