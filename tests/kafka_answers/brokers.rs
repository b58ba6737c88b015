//! The two brokers that are asked: Apache Kafka and Coreline, each with its data in a folder of its
//! own, both ended with the test.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use coreline::base::random::Random;

use crate::process::free_address;

/// How long a broker may take to serve; Apache Kafka takes about 5 s on a slow machine.
const READY_MAX: Duration = Duration::from_secs(120);

/// Settings of both; some that topics inherit under other names and in other units.
const SETTINGS: &str = "node.id=1\nnum.partitions=1\nauto.create.topics.enable=true\n\
    log.retention.hours=100\nlog.roll.ms=7200000\nlog.roll.hours=3\nlog.segment.bytes=33554432\n\
    log.retention.bytes=-1\n";

/// A broker that runs.
pub struct Broker {
    process: Child,
    pub port: u16,
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    free_address().port()
}

impl Broker {
    /// Coreline, as Cargo built it.
    pub fn coreline(folder: &Path) -> Self {
        Self::coreline_with(folder, "")
    }

    /// The same with more settings.
    pub fn coreline_with(folder: &Path, more: &str) -> Self {
        let port = free_port();
        let settings = folder.join("server.properties");
        let text = format!(
            "{SETTINGS}listeners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={}\ncoreline.cores=1\n\
             coreline.admin.listener=\n\
             offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n{more}",
            folder.join("data").display()
        );
        std::fs::write(&settings, text).expect("settings are written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_coreline"));
        command.arg(&settings);
        Self::start(command, folder, port)
    }

    /// Apache Kafka, one node; a new folder is formatted at the metadata version that Coreline
    /// writes.
    pub fn kafka(folder: &Path) -> Self {
        Self::kafka_with(folder, "")
    }

    /// The same with more settings.
    pub fn kafka_with(folder: &Path, more: &str) -> Self {
        let (port, controller) = (free_port(), free_port());
        let settings = folder.join("server.properties");
        let text = format!(
            "{SETTINGS}process.roles=broker,controller\n\
             controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             controller.listener.names=CONTROLLER\nlog.dirs={}\n\
             offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n{more}",
            folder.join("data").display()
        );
        std::fs::write(&settings, text).expect("settings are written");
        if folder.join("data/meta.properties").exists() {
            // Somebody's data: taken over as it is.
            return Self::start(kafka_command(&settings), folder, port);
        }
        let home = kafka_home();
        let seed = Instant::now().elapsed().subsec_nanos() ^ u32::from(port);
        let cluster_id = Random::new(u64::from(seed)).next_uuid().to_string();
        let formatted = Command::new(home.join("bin/kafka-storage.sh"))
            .args([
                "format",
                "--standalone",
                "--release-version",
                "4.0-IV3",
                "-t",
            ])
            .arg(cluster_id)
            .arg("-c")
            .arg(&settings)
            .output()
            .expect("kafka-storage runs");
        let told = String::from_utf8_lossy(&formatted.stderr);
        assert!(formatted.status.success(), "kafka-storage: {told}");
        Self::start(kafka_command(&settings), folder, port)
    }

    /// Stops it in order and waits until it has ended.
    pub fn stop(mut self) {
        let id = i32::try_from(self.process.id()).expect("a process id");
        let group = nix::unistd::Pid::from_raw(id);
        nix::sys::signal::kill(group, nix::sys::signal::Signal::SIGTERM).expect("a signal");
        let ended = self.process.wait().expect("its end");
        // Java reports a stop by a signal as 143.
        assert!(ended.success() || ended.code() == Some(143), "{ended}");
    }

    fn start(mut command: Command, folder: &Path, port: u16) -> Self {
        let log = || {
            File::create_new(folder.join("log"))
                .or_else(|_| File::options().append(true).open(folder.join("log")))
        };
        let process = command
            .stdin(Stdio::null())
            .stdout(log().expect("a log"))
            .stderr(log().expect("a log"))
            .spawn()
            .expect("the broker starts");
        let mut broker = Self { process, port };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = broker.process.try_wait().expect("its state");
            let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            assert!(ended.is_none(), "the broker ended: {log}");
            assert!(
                begun.elapsed() < READY_MAX,
                "the broker does not serve: {log}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        broker
    }
}

fn kafka_command(settings: &Path) -> Command {
    let mut command = Command::new(kafka_home().join("bin/kafka-run-class.sh"));
    command.arg("kafka.Kafka").arg(settings);
    command.env("KAFKA_HEAP_OPTS", "-Xmx384m");
    command
}

/// `KAFKA_HOME`, or what `scripts/kafka` has downloaded.
pub fn kafka_home() -> PathBuf {
    if let Some(home) = std::env::var_os("KAFKA_HOME") {
        return PathBuf::from(home);
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/kafka");
    let output = Command::new(script)
        .arg("home")
        .output()
        .expect("scripts/kafka runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "scripts/kafka home: {told}");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}
