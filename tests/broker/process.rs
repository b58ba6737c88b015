//! Brokers in processes of their own.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Below the ports that the kernel gives to outgoing connections: none of those can take one of
/// these between its choice here and the broker's bind.
const FIRST_PORT: u32 = 12_000;
const PORTS: u32 = 18_000;

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
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "it does not serve"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, address }
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

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
