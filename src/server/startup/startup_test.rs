use super::*;
use crate::base::config::{AdminAddress, Cores, Sources, read};

fn config(folder: &Path, port: u16) -> BrokerConfig {
    let overrides = [
        format!("log.dirs={}", folder.display()),
        format!("listeners=PLAINTEXT://127.0.0.1:{port}"),
        "coreline.cores=1".to_owned(),
        "coreline.admin.listener=".to_owned(),
    ];
    let sources = Sources {
        file: None,
        overrides: &overrides,
    };
    read(sources).expect("valid").0
}

#[test]
fn a_folder_is_used_by_one_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = prepare(config(folder.path(), 0)).expect("free");
    let listener = &first.config.listeners.clients[0];
    assert_ne!(listener.port, 0);
    assert_eq!(listener.advertised_port, listener.port);
    assert_eq!(listener.advertised_host, "127.0.0.1");
    assert_eq!(first.cpus.len(), 1);
    assert!(
        first
            .warnings
            .iter()
            .any(|warning| warning.contains("/tmp"))
    );
    let refusal = prepare(config(folder.path(), 0)).expect_err("in use");
    assert!(
        refusal.to_string().contains("in use by another process"),
        "{refusal}"
    );
    drop(first);
    prepare(config(folder.path(), 0)).expect("free again");
}

#[test]
fn each_folder_is_claimed_once_and_one_that_cannot_be_used_is_left_out() {
    let root = tempfile::tempdir().expect("a folder");
    let path = |name: &str| root.path().join(name);
    let of = |names: &[&str]| {
        let mut config = config(root.path(), 0);
        config.log_dirs = names.iter().map(|name| path(name)).collect();
        config
    };
    let first = prepare(of(&["a", "b"])).expect("free");
    assert_eq!(first.config.log_dirs, [path("a"), path("b")]);
    assert_eq!(first.config.metadata_log_dir(), path("a"));
    let refusal = prepare(of(&["c", "b"])).expect_err("b is in use");
    assert!(
        matches!(refusal, StartupError::FolderInUse { .. }),
        "{refusal}"
    );
    drop(first);
    std::fs::write(path("file"), "").expect("written");
    let prepared = prepare(of(&["a", "file", "b"])).expect("two can be used");
    let offline: Vec<_> = prepared
        .offline
        .iter()
        .map(|one| one.path.clone())
        .collect();
    assert_eq!(offline, [path("file")]);
    assert_eq!(
        (prepared.locks.len(), prepared.config.log_dirs.len()),
        (2, 3)
    );
    let told = prepared
        .warnings
        .iter()
        .filter(|line| line.contains("/file is offline"));
    assert_eq!(told.count(), 1);
    drop(prepared);
    // The metadata log's has to serve, and some other.
    assert!(prepare(of(&["file", "a"])).is_err());
    let mut elsewhere = of(&["file"]);
    elsewhere.metadata_log_dir = Some(path("a"));
    let refusal = prepare(elsewhere).expect_err("nowhere to put data");
    assert!(
        matches!(refusal, StartupError::NoFolder { .. }),
        "{refusal}"
    );
    std::os::unix::fs::symlink(path("a"), path("alias")).expect("linked");
    for twice in [&["a", "alias"][..], &["b", "a", "alias"], &["b", "b/"]] {
        let refusal = prepare(of(twice)).expect_err("twice");
        assert!(
            matches!(refusal, StartupError::FolderTwice { .. }),
            "{refusal}"
        );
    }
    let mut last = of(&["b", "a"]);
    last.metadata_log_dir = Some(path("alias"));
    let prepared = prepare(last).expect("free");
    assert_eq!(prepared.config.metadata_log_dir(), path("a"));
    assert_eq!(prepared.locks.len(), 2);
}

#[test]
fn a_port_that_another_shares_willingly_is_refused() {
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrIn};
    use nix::sys::socket::{bind, getsockname, listen, setsockopt, socket, sockopt};
    use std::os::fd::AsRawFd;

    let folder = tempfile::tempdir().expect("a folder");
    let other = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::empty(),
        None,
    )
    .expect("a socket");
    setsockopt(&other, sockopt::ReusePort, &true).expect("SO_REUSEPORT");
    bind(other.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).expect("bound");
    listen(&other, Backlog::new(1).expect("small")).expect("listening");
    let address: SockaddrIn = getsockname(other.as_raw_fd()).expect("an address");
    let refusal = prepare(config(folder.path(), address.port())).expect_err("in use");
    assert!(matches!(refusal, StartupError::Port { .. }), "{refusal}");
    let text = refusal.to_string();
    assert!(
        text.contains("ss -ltnp") && text.ends_with(" listeners"),
        "{text}"
    );
}

#[test]
fn a_port_in_use_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = other.local_addr().expect("an address").port();
    assert!(prepare(config(folder.path(), port)).is_err());
    drop(other);
    prepare(config(folder.path(), port)).expect("free");
}

#[test]
fn an_admin_port_is_held_and_one_in_use_refused_by_its_setting() {
    let folder = tempfile::tempdir().expect("a folder");
    let with_admin = |port| {
        let mut config = config(folder.path(), 0);
        let host = "127.0.0.1".to_owned();
        config.admin_listener = Some(AdminAddress { host, port });
        config
    };
    let first = prepare(with_admin(0)).expect("free");
    let held = first.admin.as_ref().map(TcpListener::local_addr);
    let address = held.expect("a port").expect("an address");
    assert!(TcpListener::bind(address).is_err(), "nobody else listens");
    drop(first);
    let other = TcpListener::bind(address).expect("given up");
    let refusal = prepare(with_admin(address.port())).expect_err("in use");
    let text = refusal.to_string();
    assert!(text.contains("ss -ltnp"), "{text}");
    assert!(text.ends_with("coreline.admin.listener"), "{text}");
    drop(other);
}

#[test]
fn a_folder_that_is_a_file_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let refusal = prepare(config(file.path(), 0)).expect_err("a file");
    assert!(matches!(refusal, StartupError::Folder { .. }), "{refusal}");
}

#[test]
fn cores_respect_what_is_allowed() {
    let allowed = [2, 3, 5];
    assert_eq!(
        cpus::choose(&Cores::Count(2), &allowed).expect("ok"),
        [Some(2), Some(3)]
    );
    assert_eq!(
        cpus::choose(&Cores::Count(4), &allowed).expect("ok"),
        [None; 4]
    );
    let listed = cpus::choose(&Cores::Cpus(vec![5, 2]), &allowed).expect("ok");
    assert_eq!(listed, [Some(5), Some(2)]);
    let refusal = cpus::choose(&Cores::Cpus(vec![4]), &allowed).expect_err("not allowed");
    assert!(refusal.to_string().contains("2,3,5"), "{refusal}");
}

#[test]
fn a_folder_within_another_is_refused_by_whatever_name() {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(root.path().join("a/b")).expect("made");
    std::os::unix::fs::symlink(root.path().join("a/b"), root.path().join("c")).expect("linked");
    for names in [["a", "a/b"], ["a/b", "a"], ["a", "c"], ["x/../a", "a/new"]] {
        let mut config = config(root.path(), 0);
        config.log_dirs = names.iter().map(|name| root.path().join(name)).collect();
        let refusal = prepare(config).expect_err("nested");
        assert!(
            matches!(refusal, StartupError::FolderWithin { .. }),
            "{names:?}: {refusal}"
        );
    }
    let mut config = config(&root.path().join("a"), 0);
    config.metadata_log_dir = Some(root.path().join("c"));
    let refusal = prepare(config).expect_err("the metadata log's too");
    assert!(refusal.to_string().contains("lies within"), "{refusal}");
}

#[test]
fn what_a_machine_refuses_is_told_before_a_start() {
    let mut config = config(Path::new("/tmp/x"), 0);
    let most = *cpus::allowed().iter().max().expect("a CPU");
    config.cores = Cores::Cpus(vec![most]);
    assert!(refusals(&config).is_empty(), "the limit");
    config.cores = Cores::Cpus(vec![most, most + 1]);
    let names =
        |config: &BrokerConfig| -> Vec<&str> { refusals(config).iter().map(|one| one.0).collect() };
    assert_eq!(names(&config), ["coreline.cores"], "one past it");
    config.cores = Cores::Count(1);
    let least = Budgets::memory_bytes_min(1, 1);
    config.memory_bytes = Some(least);
    assert!(refusals(&config).is_empty(), "the limit");
    config.memory_bytes = Some(least - 1);
    assert_eq!(names(&config), ["coreline.memory"], "one past it");
}

#[test]
fn quotas_and_memory_read_as_the_kernel_writes_them() {
    assert_eq!(cpus::parse_quota("max 100000\n"), None);
    assert_eq!(cpus::parse_quota("150000 100000\n"), Some(2));
    assert_eq!(cpus::parse_quota("50000 100000"), Some(1));
    assert_eq!(cpus::parse_quota("-1 100000"), None);
    assert_eq!(cpus::parse_quota("1 0"), None);
    let meminfo = "MemFree: 1 kB\nMemTotal:       24576 kB\n";
    assert_eq!(machine::total_memory(meminfo), Some(24_576 * 1024));
    assert_eq!(machine::total_memory("x"), None);
}
