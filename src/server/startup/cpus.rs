//! Which CPUs shards run on: cpuset and quota are respected.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::StartupError;
use crate::base::config::Cores;

/// The CPUs that this process may use, lowest first; no more of them than its quota pays for.
pub(super) fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return vec![0];
    };
    let mut cpus: Vec<usize> = (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .collect();
    if cpus.is_empty() {
        cpus.push(0);
    }
    cpus
}

/// How many CPUs' worth of time the cgroup grants, rounded up; `None` without a limit.
fn quota() -> Option<usize> {
    let v2 = std::fs::read_to_string("/sys/fs/cgroup/cpu.max").ok();
    if let Some(text) = v2 {
        return parse_quota(&text);
    }
    let read = |name: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/cpu/{name}")).ok();
    let quota = read("cpu.cfs_quota_us")?;
    let period = read("cpu.cfs_period_us")?;
    parse_quota(&format!("{} {}", quota.trim(), period.trim()))
}

/// `quota period`, both microseconds; `max` or a negative quota is none.
pub(super) fn parse_quota(text: &str) -> Option<usize> {
    let (quota, period) = text.trim().split_once(' ')?;
    let quota: usize = quota.parse().ok()?;
    let period: usize = period.trim().parse().ok().filter(|period| *period > 0)?;
    Some(quota.div_ceil(period).max(1))
}

/// The CPU of each shard.
pub(super) fn choose(cores: &Cores, allowed: &[usize]) -> Result<Vec<Option<usize>>, StartupError> {
    match cores {
        Cores::All => {
            let count = quota().map_or(allowed.len(), |quota| quota.min(allowed.len()));
            Ok(allowed.iter().take(count).copied().map(Some).collect())
        }
        // Shards beyond the CPUs are left to the scheduler: two pinned to one CPU would starve
        // each other while another CPU idles.
        Cores::Count(count) => {
            let pin = *count <= allowed.len();
            let cpu_of = |shard| allowed.get(shard).copied().filter(|_| pin);
            Ok((0..*count).map(cpu_of).collect())
        }
        Cores::Cpus(cpus) => match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            None => Ok(cpus.iter().copied().map(Some).collect()),
            Some(cpu) => Err(StartupError::Cpu {
                cpu: *cpu,
                allowed: text_of(allowed),
            }),
        },
    }
}

fn text_of(cpus: &[usize]) -> String {
    let texts: Vec<String> = cpus.iter().map(usize::to_string).collect();
    texts.join(",")
}
