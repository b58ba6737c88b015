//! The broker as a process of its surroundings: what it prints may go nowhere, the terminal may be
//! closed, and a command whose text cannot be printed says so.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::OpenOptions;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const COMMAND: &str = env!("CARGO_BIN_EXE_coreline");
const WAIT_MAX: Duration = Duration::from_secs(60);

struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    fn start(mut command: Command, folder: &Path, out: Stdio) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let address = address.unwrap();
        for setting in [
            format!("listeners=PLAINTEXT://{address}"),
            format!("log.dirs={}", folder.display()),
            "coreline.cores=1".to_owned(),
            "coreline.memory=134217728".to_owned(),
            "coreline.admin.listener=".to_owned(),
        ] {
            command.arg("--override").arg(setting);
        }
        let command = command.stdin(Stdio::null()).stdout(out);
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut running = Self { child, address };
        running.wait_until_served();
        running
    }

    fn wait_until_served(&mut self) {
        let began = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            assert_eq!(self.child.try_wait().unwrap(), None, "it has ended");
            assert!(began.elapsed() < WAIT_MAX, "it does not serve");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal, after which the broker is to serve on.
    fn send(&mut self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(pid, signal).unwrap();
        std::thread::sleep(Duration::from_millis(500));
    }

    /// Sends a signal; answers the exit code.
    fn end(mut self, signal: Signal) -> Option<i32> {
        self.send(signal);
        let began = Instant::now();
        while began.elapsed() < WAIT_MAX {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn full() -> Stdio {
    Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap())
}

#[test]
fn a_broker_that_cannot_print_serves_on_and_stops_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, pipe) = std::io::pipe().unwrap();
    drop(reader);
    for out in [full(), Stdio::from(pipe)] {
        let mut running = Running::start(Command::new(COMMAND), folder.path(), out);
        running.send(Signal::SIGUSR1);
        running.wait_until_served();
        assert_eq!(running.end(Signal::SIGTERM), Some(0));
        assert!(folder.path().join(".kafka_cleanshutdown").exists());
    }
}

#[test]
fn a_closed_terminal_stops_it_in_order_unless_that_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    // The tests themselves may run where it is ignored.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", COMMAND]);
    let running = Running::start(command, folder.path(), Stdio::null());
    assert_eq!(running.end(Signal::SIGHUP), Some(0));
    assert!(folder.path().join(".kafka_cleanshutdown").exists());
    let mut command = Command::new("nohup");
    command.arg(COMMAND);
    let mut running = Running::start(command, folder.path(), Stdio::null());
    running.send(Signal::SIGHUP);
    running.wait_until_served();
    assert_eq!(running.end(Signal::SIGTERM), Some(0));
}

#[test]
fn a_command_whose_text_cannot_be_printed_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.properties");
    std::fs::write(&file, "node.id=1\n").unwrap();
    let file = file.to_str().unwrap();
    for words in [vec!["--settings"], vec!["check", file]] {
        let done = Command::new(COMMAND).args(&words).stdout(full()).output();
        let done = done.unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {told}");
        assert!(
            told.starts_with("cannot print to standard output: "),
            "{told}"
        );
        assert!(!told.contains("panicked"), "{told}");
    }
}
