//! Signals, taken one by one on the main thread.

use std::io;

use nix::sys::signal::{SigSet, Signal};

/// What the outside asks of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// SIGTERM, SIGINT or SIGHUP: end in order.
    Stop,
    /// SIGUSR1: print the latencies.
    Report,
}

/// The signals that the main thread waits for; every thread started later inherits that they are
/// held back.
#[derive(Debug)]
pub struct Signals {
    set: SigSet,
}

impl Signals {
    /// Holds the signals back. Must run before any other thread starts.
    pub fn hold() -> io::Result<Self> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR1] {
            set.add(signal);
        }
        // A terminal that was closed, as a Java machine takes it too, unless `nohup` wants it
        // ignored.
        if !is_ignored(Signal::SIGHUP) {
            set.add(Signal::SIGHUP);
        }
        set.thread_block()?;
        Ok(Self { set })
    }

    /// Waits for the next.
    pub fn next(&self) -> io::Result<Wish> {
        match self.set.wait()? {
            Signal::SIGUSR1 => Ok(Wish::Report),
            _ => Ok(Wish::Stop),
        }
    }
}

/// Whether the process was started with the signal ignored; `false` where the system does not say.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| (mask >> (signal as u32 - 1)) & 1 == 1)
}

/// Makes [`Signals::next`] return [`Wish::Stop`]; may be called on any thread.
pub fn ask_to_stop() {
    // The process is always there to be signalled.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), Signal::SIGTERM);
}
