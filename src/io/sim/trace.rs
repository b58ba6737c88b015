//! What the simulated disk was asked and what it answered, folded into one number: two runs of one
//! seed are bit-identical when their hashes are.

use std::collections::VecDeque;

/// Lines kept for reading when a seed fails.
const LINES_MAX: usize = 4_000;

/// The hash of all events so far, and their last lines when asked for.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    lines: Option<VecDeque<String>>,
}

impl Trace {
    pub fn keep_lines(&mut self) {
        self.lines.get_or_insert_with(VecDeque::new);
    }

    /// Records one event at a point of simulated time.
    pub fn event(&mut self, clock_ns: u64, what: std::fmt::Arguments<'_>, bytes: &[u8]) {
        let line = format!("{clock_ns} {what}");
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let checksum = u64::from(crc32c::crc32c(bytes));
        self.hash = (self.hash ^ checksum).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if let Some(lines) = &mut self.lines {
            if lines.len() == LINES_MAX {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.iter().flatten().cloned().collect()
    }
}
