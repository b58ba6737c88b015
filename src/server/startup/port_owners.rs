//! Whether a process that lives has a port open.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

/// Whether some process has a socket of this TCP port open, or may have: of other users' processes
/// the system does not tell. Sockets that only the kernel holds on to belong to no process.
pub(super) fn is_open(port: u16) -> bool {
    is_open_in(Path::new("/proc"), port)
}

fn is_open_in(proc: &Path, port: u16) -> bool {
    let tables = ["net/tcp", "net/tcp6"].map(|name| fs::read_to_string(proc.join(name)));
    let sockets: HashSet<OsString> = tables
        .iter()
        .flatten()
        .flat_map(|table| sockets(table, port))
        .collect();
    let Ok(processes) = fs::read_dir(proc) else {
        return true;
    };
    processes.flatten().any(|process| {
        let is_process = process.file_name().to_string_lossy().parse::<u32>().is_ok();
        is_process && has_open(&process.path().join("fd"), &sockets)
    })
}

/// The sockets of a table of `/proc/net` with this local port, as their descriptors link to them.
fn sockets(table: &str, port: u16) -> impl Iterator<Item = OsString> + '_ {
    table.lines().filter_map(move |line| {
        let mut fields = line.split_whitespace();
        let (_, local) = fields.nth(1)?.rsplit_once(':')?;
        let inode = fields.nth(7)?;
        let is_it = u16::from_str_radix(local, 16).ok()? == port && inode != "0";
        is_it.then(|| format!("socket:[{inode}]").into())
    })
}

fn has_open(descriptors: &Path, sockets: &HashSet<OsString>) -> bool {
    match fs::read_dir(descriptors) {
        Ok(entries) => entries.flatten().any(|entry| {
            let target = fs::read_link(entry.path());
            target.is_ok_and(|target| sockets.contains(target.as_os_str()))
        }),
        // One that has just ended has nothing open.
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_socket_of_this_process_is_open_until_it_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_open(port));
        let inode = |port| {
            let table = fs::read_to_string("/proc/net/tcp").unwrap();
            sockets(&table, port).count()
        };
        assert_eq!(inode(port), 1);
        drop(listener);
        assert_eq!(inode(port), 0);
    }

    #[test]
    fn a_socket_that_no_process_has_open_is_an_orphan() {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        fs::create_dir_all(proc.join("net")).unwrap();
        fs::create_dir_all(proc.join("17/fd")).unwrap();
        // Port 9092 (2384 in hexadecimal), as the kernel prints it.
        let line = |inode| {
            format!(
                "   0: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000     \
                 0        0 {inode} 1 ffff8f2b 100 0 0 10 0\n"
            )
        };
        let head =
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n";
        fs::write(proc.join("net/tcp"), head.to_owned() + &line(4711)).unwrap();
        symlink("socket:[815]", proc.join("17/fd/3")).unwrap();
        assert!(!is_open_in(proc, 9092));
        symlink("socket:[4711]", proc.join("17/fd/4")).unwrap();
        assert!(is_open_in(proc, 9092));
        assert!(!is_open_in(proc, 9093));
        // Without a list of processes nothing is known.
        assert!(is_open_in(&proc.join("nowhere"), 9092));
    }
}
