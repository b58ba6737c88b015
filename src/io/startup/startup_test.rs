//! Each check on this machine, and each explanation from made-up facts.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use super::cgroup::{Groups, meminfo_total};
use super::ring::{RingFacts, explain};
use super::*;

#[test]
fn this_machine_allows_rings() {
    assert_eq!(check_ring(2), Ok(()));
}

#[test]
fn each_reason_against_rings_has_its_remedy() {
    let said = |errno: i32, disabled: Option<u8>, filtered: bool| {
        let facts = RingFacts {
            release: "5.4.0".to_owned(),
            disabled,
            filtered,
        };
        explain(&io::Error::from_raw_os_error(errno), &facts)
    };
    assert!(said(libc::EPERM, Some(2), false).contains("sysctl -w kernel.io_uring_disabled=0"));
    assert!(said(libc::EPERM, Some(1), true).contains("kernel.io_uring_group"));
    assert!(said(libc::EPERM, Some(0), true).contains("seccomp=unconfined"));
    assert!(said(libc::ENOSYS, None, true).contains("seccomp=unconfined"));
    assert!(said(libc::EPERM, None, false).contains("SELinux"));
    assert!(said(libc::ENOSYS, None, false).contains("5.4.0"));
    assert!(said(libc::EINVAL, Some(0), false).contains("newer"));
    assert!(said(libc::ENOMEM, Some(0), false).contains("ulimit -l"));
    assert!(said(libc::EMFILE, Some(0), false).contains("ulimit -n"));
    assert!(said(libc::EIO, Some(0), false).contains("Input/output error"));
}

#[test]
fn open_files_are_raised_and_checked_at_the_limit() {
    let limit = raise_open_files().unwrap();
    assert!(limit >= 256);
    assert_eq!(check_open_files(limit), Ok(()));
    assert_eq!(limits::explain(1_000, 1_000), Ok(()));
    let refused = limits::explain(1_000, 1_001).unwrap_err().0;
    assert!(refused.contains("LimitNOFILE=1001"), "{refused}");
}

#[test]
fn a_shared_port_is_found_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let refused = probe_port(address).unwrap_err().0;
    assert!(refused.contains("in use"), "{refused}");
    drop(listener);
    assert_eq!(probe_port(address), Ok(()));
    // Also one that would share its port.
    let mut runtime = crate::io::Runtime::start(crate::io::RuntimeOptions::for_tests()).unwrap();
    let shared = runtime.block_on(async move {
        let _listener = crate::io::TcpListener::bind(address, 1).unwrap();
        probe_port(address)
    });
    assert!(shared.is_err());
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], 9_092));
    assert!(
        probe_port(elsewhere)
            .unwrap_err()
            .0
            .contains("not an address")
    );
}

#[test]
fn a_directory_has_one_user() {
    let folder = tempfile::tempdir().unwrap();
    let lock = lock_directory(folder.path()).unwrap();
    let refused = lock_directory(folder.path()).unwrap_err().0;
    assert!(refused.contains("in use by another broker"), "{refused}");
    assert!(refused.contains(&format!("process {}", std::process::id())));
    drop(lock);
    assert!(lock_directory(folder.path()).is_ok());
    let missing = lock_directory(&folder.path().join("missing"))
        .unwrap_err()
        .0;
    assert!(missing.contains("cannot be locked"), "{missing}");
}

#[test]
fn direct_io_is_tried_out() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    assert!(direct_io(folder.path()).is_ok());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let refused = direct_io(&folder.path().join("missing")).unwrap_err().0;
    assert!(refused.contains("log.dirs"), "{refused}");
    if let Ok(shared_memory) = direct_io(Path::new("/dev/shm")) {
        let known = file_system(Path::new("/dev/shm")).unwrap();
        assert!(shared_memory != DirectIo::Supported || known.notice.is_some());
    }
}

#[test]
fn file_systems_are_named_with_what_they_do_not_promise() {
    use super::storage::describe;
    assert_eq!(describe(0xEF53, || true).notice, None);
    assert!(
        describe(0xEF53, || false)
            .notice
            .unwrap()
            .contains("journal")
    );
    assert_eq!(describe(0x5846_5342, || false).notice, None);
    assert!(
        describe(0x0102_1994, || false)
            .notice
            .unwrap()
            .contains("tmpfs")
    );
    assert!(describe(7, || false).notice.is_some());
    assert!(file_system(Path::new("/")).is_ok());
    assert!(file_system(Path::new("/missing")).is_err());
}

#[test]
fn cpus_are_cut_by_the_quota() {
    let cpus = usable_cpus();
    assert!(!cpus.allowed.is_empty());
    let cpus = |count: usize, quota_percent| UsableCpus {
        allowed: (0..count).collect(),
        quota_percent,
    };
    assert_eq!(cpus(8, None).shards(), 8);
    assert_eq!(cpus(8, Some(250)).shards(), 3);
    assert_eq!(cpus(8, Some(300)).shards(), 3);
    assert_eq!(cpus(8, Some(50)).shards(), 1);
    assert_eq!(cpus(2, Some(1_000)).shards(), 2);
    assert_eq!(cpus(0, None).shards(), 1);
}

#[test]
fn the_tightest_group_counts() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("a/cpu.max", "150000 100000\n");
    write("a/b/cpu.max", "max 100000\n");
    write("a/b/memory.max", "max\n");
    write("a/memory.max", "1048576\n");
    let groups = Groups::parse("0::/a/b\n", root.path());
    assert_eq!(groups.cpu_quota_percent(), Some(150));
    assert_eq!(groups.memory_max(), Some(1_048_576));
    // Version 1.
    write("cpu,cpuacct/c/cpu.cfs_quota_us", "50000\n");
    write("cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
    write("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    write("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    write("memory/c/memory.limit_in_bytes", "4096\n");
    let groups = Groups::parse("3:cpu,cpuacct:/c\n9:memory:/c\nnonsense\n", root.path());
    assert_eq!(groups.cpu_quota_percent(), Some(50));
    assert_eq!(groups.memory_max(), Some(4_096));
    assert_eq!(Groups::parse("", root.path()).memory_max(), None);
    assert_eq!(
        meminfo_total("MemTotal:  2048 kB\nMemFree: 1 kB\n"),
        Some(2 << 20)
    );
    assert!(memory_limit_bytes() > 1 << 20);
}
