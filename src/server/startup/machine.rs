//! How large the machine is, as far as this process may use it.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::base::config::Machine;

/// Assumed where the system does not say.
const MEMORY_BYTES_FALLBACK: u64 = 1 << 30;
/// Assumed where the system does not say.
const DISK_BYTES_FALLBACK: u64 = 16 << 30;

/// Measures memory and the disks under `folders`.
pub(super) fn measure<'a>(folders: impl Iterator<Item = &'a Path>) -> Machine {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = total_memory(&meminfo).unwrap_or(MEMORY_BYTES_FALLBACK);
    let measured = folders.filter_map(|folder| statvfs(folder).ok());
    let bytes = measured.map(|disk| disk.blocks().saturating_mul(disk.fragment_size()));
    Machine {
        memory_bytes: cgroup_memory().map_or(total, |limit| limit.min(total)),
        disk_bytes: bytes.max().unwrap_or(DISK_BYTES_FALLBACK),
    }
}

/// `MemTotal` of /proc/meminfo, in bytes.
pub(super) fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The cgroup's limit, in bytes; `None` without one.
fn cgroup_memory() -> Option<u64> {
    let files = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    files
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok())
        .and_then(|text| text.trim().parse().ok())
}
