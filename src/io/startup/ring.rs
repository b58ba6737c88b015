//! Whether rings can be made, and by what they are forbidden.

use std::fs;
use std::io;

use super::Refusal;
use crate::io::uring;

/// What the system says about itself, for the explanation.
#[derive(Clone, Debug, Default)]
pub(super) struct RingFacts {
    /// Kernel release, as `uname -r`.
    pub(super) release: String,
    /// `kernel.io_uring_disabled`: 0 all may, 1 a group may, 2 nobody may.
    pub(super) disabled: Option<u8>,
    /// A seccomp filter is on this process (containers).
    pub(super) filtered: bool,
}

impl RingFacts {
    fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let status = text("/proc/self/status");
        let filtered = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp:"))
            .is_some_and(|mode| mode.trim() == "2");
        Self {
            release: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            disabled: text("/proc/sys/kernel/io_uring_disabled")
                .trim()
                .parse()
                .ok(),
            filtered,
        }
    }
}

/// Makes `rings` rings of the sizes that shards use, all at the same time, and drops them.
pub fn check_ring(rings: usize) -> Result<(), Refusal> {
    match uring::probe(rings) {
        Ok(()) => Ok(()),
        Err(error) => Err(Refusal(explain(&error, &RingFacts::read()))),
    }
}

const NEEDED: &str = "Coreline needs io_uring (Linux 6.1 or later)";

pub(super) fn explain(error: &io::Error, facts: &RingFacts) -> String {
    let release = &facts.release;
    let cause = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => return explain_forbidden(facts),
        Some(libc::ENOSYS) if facts.filtered => return explain_forbidden(facts),
        Some(libc::ENOSYS) => format!("this kernel ({release}) has none: install a newer one"),
        Some(libc::EINVAL) => format!(
            "this kernel ({release}) lacks what is asked of it (SINGLE_ISSUER, DEFER_TASKRUN): \
             install a newer one"
        ),
        Some(libc::ENOMEM) => "there was no memory for the rings: raise the memory limit of the \
                               cgroup or container, or the locked-memory limit (ulimit -l, \
                               LimitMEMLOCK= in a systemd unit), or lower coreline.cores"
            .to_owned(),
        Some(libc::EMFILE | libc::ENFILE) => {
            "there was no file descriptor left: raise the open-files limit (ulimit -n, \
             LimitNOFILE= in a systemd unit)"
                .to_owned()
        }
        _ => format!("the kernel ({release}) answered: {error}"),
    };
    format!("{NEEDED}, but {cause}.")
}

fn explain_forbidden(facts: &RingFacts) -> String {
    let cause = match facts.disabled {
        Some(2) => {
            "the setting kernel.io_uring_disabled=2 forbids it to everybody: allow it with \
                    `sysctl -w kernel.io_uring_disabled=0`"
        }
        Some(1) => {
            "the setting kernel.io_uring_disabled=1 forbids it to ordinary users: allow it \
                    with `sysctl -w kernel.io_uring_disabled=0`, or put the broker's user into \
                    the group that kernel.io_uring_group names"
        }
        _ if facts.filtered => {
            "a seccomp filter forbids it, as Docker's default profile does: start the container \
             with `--security-opt seccomp=unconfined`, or with a profile that allows \
             io_uring_setup, io_uring_enter and io_uring_register (in Kubernetes: \
             securityContext.seccompProfile)"
        }
        _ => {
            "a security module (SELinux, AppArmor) or a sandbox forbids it: allow io_uring_setup, \
             io_uring_enter and io_uring_register to this process"
        }
    };
    format!("{NEEDED}, but {cause}.")
}
