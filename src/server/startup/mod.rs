//! What is settled before the first shard starts: the data folders are ours, the ports are free, so
//! many cores and bytes may be used. Every refusal says what to do about it.
//!
//! Runs once, on the main thread, with blocking calls. What the kernel must allow (io_uring, open
//! files, direct I/O) is looked at by [`io::startup`](crate::io::startup).

mod cpus;
mod directory_lock;
mod folders;
mod machine;
mod port_owners;
mod ports;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use self::directory_lock::DirectoryLock;

use crate::base::config::{BrokerConfig, Budgets, Machine, TooLittleMemory};
use crate::io::startup::{DirectIo, Refusal, check_open_files, check_ring, direct_io, file_system};
use crate::io::uring::ShardFaults;
use crate::shard::OfflineDirectory;
use folders::Claimed;

/// Files that a broker without partitions and clients has open, at most.
const OPEN_FILES_MIN: u64 = 1_024;

/// Why the broker does not start.
#[derive(Debug, Error)]
pub enum StartupError {
    /// The data folder cannot be used.
    #[error(
        "cannot use the data folder {path}: {source}; set log.dirs to a folder that this user \
             may write"
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process holds the data folder.
    #[error(
        "the data folder {path} is in use by another process{holder}; stop that one or set \
             log.dirs to another folder"
    )]
    FolderInUse {
        /// The folder.
        path: PathBuf,
        /// ` (pid N)` where it is known.
        holder: String,
    },
    /// A data folder is named twice, or by two names.
    #[error("log.dirs names the folder {path} twice")]
    FolderTwice {
        /// The folder.
        path: PathBuf,
    },
    /// A data folder lies within another: Kafka refuses it as a folder of no partition.
    #[error("log.dirs: {reason}")]
    FolderWithin {
        /// Which one.
        reason: String,
    },
    /// None of the data folders can be used.
    #[error("none of the folders of log.dirs can be used: {folders}")]
    NoFolder {
        /// Each with its reason.
        folders: String,
    },
    /// The machine does not allow what a broker needs.
    #[error(transparent)]
    Machine(#[from] Refusal),
    /// A port cannot be bound.
    #[error("cannot listen on {address}: {source}; {advice} {setting}")]
    Port {
        /// The listener's address.
        address: String,
        /// What the system said.
        source: std::io::Error,
        /// What to do.
        advice: &'static str,
        /// The setting that names the address.
        setting: &'static str,
    },
    /// A listener's host has no address.
    #[error("the listener's host {host} cannot be resolved: {source}")]
    Host {
        /// The host as set.
        host: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The memory does not suffice.
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
    /// `coreline.cores` names CPUs that the process may not use.
    #[error("coreline.cores names CPU {cpu}, but this process may use only {allowed}")]
    Cpu {
        /// The CPU.
        cpu: usize,
        /// Those that may be used.
        allowed: String,
    },
}

/// All that a start needs and that was checked.
#[derive(Debug)]
pub struct Prepared {
    /// The settings, with ports and advertised names filled in.
    pub config: BrokerConfig,
    /// Bytes for each purpose.
    pub budgets: Budgets,
    /// The CPU of each shard; `None` leaves a shard where the system puts it.
    pub cpus: Vec<Option<usize>>,
    /// The admin port, bound; `None` for no admin port.
    pub admin: Option<TcpListener>,
    /// What goes wrong with shards' operations (tests).
    pub faults: Option<ShardFaults>,
    /// Held as long as the broker runs, one a folder.
    pub locks: Vec<DirectoryLock>,
    /// Data folders that cannot be used: the broker serves the others.
    pub offline: Vec<OfflineDirectory>,
    /// What an operator should be warned of.
    pub warnings: Vec<String>,
}

/// Checks and claims what the settings name.
///
/// # Errors
/// A [`StartupError`] that says what to do.
pub fn prepare(mut config: BrokerConfig) -> Result<Prepared, StartupError> {
    let Claimed { locks, offline } = folders::claim(&mut config)?;
    ports::settle(&mut config.listeners.clients)?;
    let admin = config.admin_listener.as_ref().map(ports::bind_admin);
    let admin = admin.transpose()?;
    let allowed = cpus::allowed();
    let cpus = cpus::choose(&config.cores, &allowed)?;
    // One ring for each shard and one for the controller.
    check_ring(cpus.len() + 1)?;
    check_open_files(OPEN_FILES_MIN)?;
    let folders = || locks.iter().map(DirectoryLock::folder);
    let machine = machine::measure(folders());
    let budgets = Budgets::divide(&config, machine, cpus.len())?;
    let mut warnings: Vec<String> = offline.iter().map(OfflineDirectory::told).collect();
    for folder in folders() {
        warnings.extend(warnings_of_folder(folder)?);
    }
    if cpus.len() > allowed.len() {
        warnings.push(format!(
            "{} shards share {} CPUs; coreline.cores above the number of CPUs only costs",
            cpus.len(),
            allowed.len()
        ));
    }
    Ok(Prepared {
        config,
        budgets,
        cpus,
        admin,
        faults: None,
        locks,
        offline,
        warnings,
    })
}

/// What this machine would refuse of settings that are valid by themselves, by setting; nothing is
/// claimed.
#[must_use]
pub fn refusals(config: &BrokerConfig) -> Vec<(&'static str, StartupError)> {
    let machine = Machine {
        memory_bytes: 0,
        disk_bytes: 0,
    };
    let cpus = match cpus::choose(&config.cores, &cpus::allowed()) {
        Ok(cpus) => cpus,
        Err(refusal) => return vec![("coreline.cores", refusal)],
    };
    match Budgets::divide(config, machine, cpus.len()) {
        Ok(_) => Vec::new(),
        Err(refusal) => vec![("coreline.memory", refusal.into())],
    }
}

fn warnings_of_folder(folder: &Path) -> Result<Vec<String>, StartupError> {
    let mut warnings = Vec::new();
    if is_temporary(folder) {
        warnings.push(format!(
            "the data is in {}, which the system may empty at any time; set log.dirs to a folder \
             that stays",
            folder.display()
        ));
    }
    if let DirectIo::Buffered(notice) | DirectIo::Unknown(notice) = direct_io(folder)? {
        warnings.push(notice);
    }
    warnings.extend(file_system(folder).ok().and_then(|found| found.notice));
    Ok(warnings)
}

fn is_temporary(path: &Path) -> bool {
    ["/tmp", "/var/tmp", "/dev/shm"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod startup_test;
