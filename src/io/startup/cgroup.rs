//! CPUs and memory that this process may use: the machine's, cut by cpuset, quota and cgroup.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// CPUs for shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsableCpus {
    /// CPU numbers that the process may run on (cpuset, taskset), ascending.
    pub allowed: Vec<usize>,
    /// CPU time that the cgroup's quota gives, in hundredths of a CPU; `None`: no quota.
    pub quota_percent: Option<u64>,
}

impl UsableCpus {
    /// How many shards make sense: as many as CPUs, but no more than the quota feeds (rounded up),
    /// at least one.
    #[must_use]
    pub fn shards(&self) -> usize {
        let by_quota = self
            .quota_percent
            .map_or(usize::MAX, |percent| percent.div_ceil(100) as usize);
        self.allowed.len().min(by_quota).max(1)
    }
}

/// Reads the CPUs that this process may use. To be asked before any thread is pinned.
#[must_use]
pub fn usable_cpus() -> UsableCpus {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let allowed = (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .collect();
    let groups = Groups::of_this_process();
    UsableCpus {
        allowed,
        quota_percent: groups.cpu_quota_percent(),
    }
}

/// Memory that this process may use, in bytes: the machine's or the tightest cgroup limit.
#[must_use]
pub fn memory_limit_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| meminfo_total(&text))
        .unwrap_or(u64::MAX);
    Groups::of_this_process()
        .memory_max()
        .map_or(machine, |limit| limit.min(machine))
}

pub(super) fn meminfo_total(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The folders of this process's cgroups, from its own up to the root.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) unified: Vec<PathBuf>,
    pub(super) cpu: Vec<PathBuf>,
    pub(super) memory: Vec<PathBuf>,
}

impl Groups {
    fn of_this_process() -> Self {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::parse(&text, Path::new("/sys/fs/cgroup"))
    }

    /// `text` as /proc/self/cgroup: `hierarchy:controllers:path` by line; version 2 has no
    /// controllers named.
    pub(super) fn parse(text: &str, root: &Path) -> Self {
        let mut groups = Self::default();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
                continue;
            };
            let has = |name: &str| controllers.split(',').any(|found| found == name);
            if controllers.is_empty() {
                groups.unified = upwards(root, path);
            }
            if has("cpu") {
                groups.cpu = upwards(&root.join(controllers), path);
            }
            if has("memory") {
                groups.memory = upwards(&root.join("memory"), path);
            }
        }
        groups
    }

    pub(super) fn cpu_quota_percent(&self) -> Option<u64> {
        let unified = self.unified.iter().filter_map(|folder| {
            let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
            let (quota, period) = text.trim().split_once(' ')?;
            percent(quota, period)
        });
        let first = self.cpu.iter().filter_map(|folder| {
            let quota = fs::read_to_string(folder.join("cpu.cfs_quota_us")).ok()?;
            let period = fs::read_to_string(folder.join("cpu.cfs_period_us")).ok()?;
            percent(quota.trim(), period.trim())
        });
        unified.chain(first).min()
    }

    pub(super) fn memory_max(&self) -> Option<u64> {
        let read = |folder: &PathBuf, name: &str| -> Option<u64> {
            let text = fs::read_to_string(folder.join(name)).ok()?;
            text.trim().parse().ok()
        };
        let unified = self
            .unified
            .iter()
            .filter_map(|folder| read(folder, "memory.max"));
        let first = self
            .memory
            .iter()
            .filter_map(|folder| read(folder, "memory.limit_in_bytes"));
        unified.chain(first).min()
    }
}

/// "max" or -1: no quota.
fn percent(quota: &str, period: &str) -> Option<u64> {
    let quota: u64 = quota.parse().ok()?;
    let period: u64 = period.parse().ok()?;
    quota.checked_mul(100)?.checked_div(period)
}

/// The group's folder and its parents'. In a container the path may be the host's: then only the
/// root is there, which is the container's own group.
fn upwards(root: &Path, path: &str) -> Vec<PathBuf> {
    let below = Path::new(path.trim_start_matches('/'));
    below
        .ancestors()
        .map(|ancestor| root.join(ancestor))
        .collect()
}
