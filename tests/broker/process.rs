//! Brokers in processes of their own.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A broker in a process of its own, which can be killed.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
}

impl Process {
    pub fn start(folder: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap();
        drop(port);
        let mut command = Command::new(env!("CARGO_BIN_EXE_coreline"));
        for setting in [
            format!("listeners=PLAINTEXT://{address}"),
            format!("log.dirs={}", folder.display()),
            "coreline.cores=2".to_owned(),
            "coreline.memory=268435456".to_owned(),
            "coreline.admin.listener=".to_owned(),
        ] {
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
