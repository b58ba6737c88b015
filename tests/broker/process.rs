//! Brokers in processes of their own.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Below the ports that the kernel gives to outgoing connections: none of those can take one of
/// these between its choice here and the broker's bind. And below those of `tests/clients` and of
/// `scripts`, which begin at 21,500.
const FIRST_PORT: u32 = 12_000;
const PORTS: u32 = 9_000;

/// A port of 127.0.0.1 that nobody listens on, another one each time.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at the same time begin far from each other.
    let first = std::process::id().wrapping_mul(97);
    loop {
        let number = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = (FIRST_PORT + number % PORTS) as u16;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener.local_addr().unwrap();
        }
    }
}

/// A broker in a process of its own, which can be killed.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
}

/// `coreline.memory` where a test does not say otherwise.
const MEMORY_BYTES: u64 = 256 << 20;

impl Process {
    pub fn start(folder: &Path) -> Self {
        Self::start_with(&folder.display().to_string(), 2)
    }

    /// On these `log.dirs`, with so many shards.
    pub fn start_with(log_dirs: &str, cores: usize) -> Self {
        Self::spawn(log_dirs, cores, MEMORY_BYTES)
    }

    /// With so much memory, on two shards.
    pub fn start_within(folder: &Path, memory_bytes: u64) -> Self {
        Self::spawn(&folder.display().to_string(), 2, memory_bytes)
    }

    /// On two shards with these settings too.
    pub fn start_set(folder: &Path, settings: &[&str]) -> Self {
        Self::spawn_set(&folder.display().to_string(), 2, MEMORY_BYTES, settings)
    }

    /// The same on so many shards.
    pub fn start_on(folder: &Path, cores: usize, settings: &[&str]) -> Self {
        Self::spawn_set(&folder.display().to_string(), cores, MEMORY_BYTES, settings)
    }

    fn spawn(log_dirs: &str, cores: usize, memory_bytes: u64) -> Self {
        Self::spawn_set(log_dirs, cores, memory_bytes, &[])
    }

    fn spawn_set(log_dirs: &str, cores: usize, memory_bytes: u64, settings: &[&str]) -> Self {
        let address = free_address();
        let mut command = Command::new(env!("CARGO_BIN_EXE_coreline"));
        for setting in [
            format!("listeners=PLAINTEXT://{address}"),
            format!("log.dirs={log_dirs}"),
            format!("coreline.cores={cores}"),
            format!("coreline.memory={memory_bytes}"),
            "coreline.admin.listener=".to_owned(),
        ] {
            command.arg("--override").arg(setting);
        }
        for setting in settings {
            command.arg("--override").arg(setting);
        }
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut started = Self { child, address };
        let deadline = Instant::now() + Duration::from_secs(60);
        // Another broker that has the port by then is not taken for this one, which ends.
        while !started.listens() || TcpStream::connect(address).is_err() {
            let ended = started.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended on {address}: {ended:?}");
            assert!(Instant::now() < deadline, "it does not serve on {address}");
            std::thread::sleep(Duration::from_millis(20));
        }
        started
    }

    /// Whether the process itself has the socket that listens on its port.
    fn listens(&self) -> bool {
        let id = self.child.id();
        let table = std::fs::read_to_string(format!("/proc/{id}/net/tcp")).unwrap_or_default();
        let port = format!(":{:04X}", self.address.port());
        let sockets = table.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // Address, state and inode; 0A is TCP_LISTEN.
            let is_it = fields.get(1)?.ends_with(&port) && *fields.get(3)? == "0A";
            let inode = fields.get(9).filter(|_| is_it)?;
            Some(PathBuf::from(format!("socket:[{inode}]")))
        });
        let sockets: Vec<PathBuf> = sockets.collect();
        let Ok(open) = std::fs::read_dir(format!("/proc/{id}/fd")) else {
            return false;
        };
        let mut open = open.filter_map(|one| std::fs::read_link(one.ok()?.path()).ok());
        open.any(|one| sockets.contains(&one))
    }

    /// Of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What is in memory now.
    pub fn resident_bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.unwrap().parse::<usize>().unwrap() * 1024
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// How long the threads of a process have had a CPU.
pub fn busy_time_of(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        // One that has just ended is gone.
        let told = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        told.split_whitespace().next()?.parse::<u64>().ok()
    };
    Duration::from_nanos(threads.filter_map(of_thread).sum())
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
