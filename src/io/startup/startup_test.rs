//! Each check on this machine, and each explanation from made-up facts.

use std::io;
use std::path::Path;

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
fn a_full_disk_does_not_forbid_the_start() {
    let folder = std::path::Path::new("/somewhere");
    let full = std::io::Error::from_raw_os_error(libc::ENOSPC);
    let Ok(DirectIo::Unknown(notice)) = super::storage::judge(folder, Err(full)) else {
        panic!("a full disk is no refusal");
    };
    assert!(notice.contains("/somewhere is full"), "{notice}");
    let forbidden = std::io::Error::from_raw_os_error(libc::EACCES);
    let refusal = super::storage::judge(folder, Err(forbidden)).unwrap_err();
    assert!(refusal.0.contains("log.dirs="), "{refusal}");
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
