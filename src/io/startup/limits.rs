//! Limits of this process.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::Refusal;

/// Raises the limit of open files as far as this user may; answers the limit in force.
pub fn raise_open_files() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

/// Refuses when fewer than `needed` files may be open: logs (a few descriptors each), connections
/// and rings together.
pub fn check_open_files(needed: u64) -> Result<(), Refusal> {
    let limit = raise_open_files()
        .map_err(|error| Refusal(format!("The limit of open files cannot be read: {error}.")))?;
    explain(limit, needed)
}

pub(super) fn explain(limit: u64, needed: u64) -> Result<(), Refusal> {
    if limit >= needed {
        return Ok(());
    }
    Err(Refusal(format!(
        "This broker needs about {needed} open files, but may open only {limit}: raise the limit \
         (`ulimit -n {needed}` as root, LimitNOFILE={needed} in a systemd unit, `--ulimit \
         nofile={needed}` for a container)."
    )))
}
