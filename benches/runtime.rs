//! What does the runtime itself cost a request? CPU of the serving process for the job of RUNTIME
//! §1 (receive 16 KiB, crc32c, copy, direct synchronous write, 60-byte answer), paced and
//! saturated, and of waking an idle shard.
//!
//! Floor: the same job without a runtime, one blocking thread a connection (read, pwritev2, write):
//! no scheduling at all, but a thread each. Clients are a process of their own on another CPU.
//!
//! `cargo bench --bench runtime [-- seconds]`

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as Client};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use coreline::io::{
    self, AlignedBuffer, Durability, File, OpenOptions, Runtime, RuntimeOptions, TaskClass,
    TcpListener, TcpStream, uring,
};
use nix::sys::resource::{UsageWho, getrusage};

const REQUEST_BYTES: usize = 16 * 1024;
const ANSWER_BYTES: usize = 60;
const BLOCKS: u64 = 1_024;

/// A load: connections, requests in flight on each, requests a second in all (0: as many as go).
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    connections: usize,
    deep: usize,
    per_second: u64,
}

const LOADS: [Load; 3] = [
    Load {
        name: "paced 2,800/s",
        connections: 1,
        deep: 1,
        per_second: 2_800,
    },
    Load {
        name: "paced 300/s",
        connections: 1,
        deep: 1,
        per_second: 300,
    },
    Load {
        name: "saturated 8 x 5",
        connections: 8,
        deep: 5,
        per_second: 0,
    },
];

fn pin(cpu: usize) {
    core_affinity::set_for_current(core_affinity::CoreId { id: cpu });
}

fn cpu_used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process knows its own use");
    let of = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1_000)
    };
    of(usage.user_time()) + of(usage.system_time())
}

/// The clients' process: prints how many requests were answered.
fn run_clients(arguments: &[String]) {
    let number = |index: usize| -> u64 { arguments[index].parse().expect("a number") };
    let address: SocketAddr = arguments[0].parse().expect("an address");
    let (connections, deep, per_second) = (number(1), number(2) as usize, number(3));
    let until = Instant::now() + Duration::from_millis(number(4));
    pin(1);
    let threads: Vec<_> = (0..connections)
        .map(|_| std::thread::spawn(move || client(address, deep, per_second, until)))
        .collect();
    let all: u64 = threads
        .into_iter()
        .map(|thread| thread.join().expect("a client"))
        .sum();
    println!("{all}");
}

fn client(address: SocketAddr, deep: usize, per_second: u64, until: Instant) -> u64 {
    let mut stream = Client::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    let requests = vec![7; REQUEST_BYTES * deep];
    let mut answer = [0; ANSWER_BYTES];
    let mut answered = 0u64;
    let started = Instant::now();
    if per_second == 0 {
        stream.write_all(&requests).expect("a connection");
    }
    while Instant::now() < until {
        if let Some(due) = (answered * 1_000_000_000).checked_div(per_second) {
            let due = started + Duration::from_nanos(due);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        stream
            .write_all(&requests[..REQUEST_BYTES])
            .expect("a connection");
        stream.read_exact(&mut answer).expect("an answer");
        answered += 1;
    }
    answered
}

fn start_clients(address: SocketAddr, load: Load, length: Duration) -> std::process::Child {
    let program = std::env::current_exe().expect("this binary has a path");
    Command::new(program)
        .arg("clients")
        .args([
            address.to_string(),
            load.connections.to_string(),
            load.deep.to_string(),
            load.per_second.to_string(),
            length.as_millis().to_string(),
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("this binary can be started again")
}

fn answered(child: std::process::Child) -> u64 {
    let output = child.wait_with_output().expect("the clients end");
    let text = String::from_utf8(output.stdout).expect("a number");
    text.trim().parse().expect("a number")
}

async fn serve(stream: TcpStream, file: File) -> std::io::Result<()> {
    let mut received = BytesMut::with_capacity(8 * REQUEST_BYTES);
    let mut block = AlignedBuffer::with_capacity(REQUEST_BYTES);
    let mut position = 0u64;
    loop {
        received.reserve(REQUEST_BYTES);
        let (count, back) = stream.receive(received).await;
        received = back;
        if count? == 0 {
            return Ok(());
        }
        let mut answers = Vec::new();
        while received.len() >= REQUEST_BYTES {
            let request = received.split_to(REQUEST_BYTES);
            let checksum = crc32c::crc32c(&request);
            block.clear();
            block.extend_from_slice(&request);
            let at = position % BLOCKS * REQUEST_BYTES as u64;
            let (written, back) = file.write_at(at, block, Durability::Stable).await;
            written?;
            block = back;
            position += 1;
            answers.push(Bytes::copy_from_slice(&[checksum as u8; ANSWER_BYTES]));
        }
        if !answers.is_empty() {
            stream.send_vectored(answers).await?;
        }
    }
}

/// A file that is written once over, so that the measured writes only overwrite.
fn prepared(folder: &std::path::Path) -> std::path::PathBuf {
    let path = folder.join("file");
    let zeros = vec![0; REQUEST_BYTES * BLOCKS as usize];
    std::fs::write(&path, zeros).expect("room");
    std::fs::File::open(&path)
        .and_then(|file| file.sync_all())
        .expect("a flush");
    path
}

struct Cost {
    requests: u64,
    cpu: Duration,
    enters: u64,
}

fn measure_ours(load: Load, length: Duration, folder: &std::path::Path) -> Cost {
    let options = RuntimeOptions {
        cpu: Some(0),
        ..RuntimeOptions::for_tests()
    };
    let mut runtime = Runtime::start(options).expect("io_uring is allowed");
    let path = prepared(folder);
    runtime.block_on(async move {
        let options = OpenOptions {
            write: true,
            direct: true,
            ..OpenOptions::default()
        };
        let file = File::open(&path, options).await.expect("the file is there");
        let listener =
            TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 64).expect("a free port");
        let address = listener.local_address().expect("bound");
        let accepting = io::spawn(TaskClass::Produce, async move {
            let mut tasks = Vec::new();
            for _ in 0..load.connections {
                let (stream, _) = listener.accept().await.expect("a client");
                tasks.push(io::spawn(TaskClass::Produce, serve(stream, file.clone())));
            }
            for task in tasks {
                let _ = task.await;
            }
        });
        let child = start_clients(address, load, length);
        let (cpu, enters) = (cpu_used(), uring::enters());
        accepting.await;
        let (cpu, enters) = (cpu_used() - cpu, uring::enters() - enters);
        Cost {
            requests: answered(child),
            cpu,
            enters,
        }
    })
}

fn measure_floor(load: Load, length: Duration, folder: &std::path::Path) -> Cost {
    let path = prepared(folder);
    let listener = StdListener::bind("127.0.0.1:0").expect("a free port");
    let child = start_clients(listener.local_addr().expect("bound"), load, length);
    let cpu = cpu_used();
    let threads: Vec<_> = (0..load.connections)
        .map(|_| {
            let (stream, _) = listener.accept().expect("a client");
            let path = path.clone();
            std::thread::spawn(move || serve_blocking(stream, &path))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a server thread");
    }
    Cost {
        requests: answered(child),
        cpu: cpu_used() - cpu,
        enters: 0,
    }
}

fn serve_blocking(mut stream: Client, path: &std::path::Path) {
    use std::os::unix::fs::OpenOptionsExt;
    pin(0);
    let _ = stream.set_nodelay(true);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .custom_flags(nix::libc::O_DIRECT | nix::libc::O_DSYNC)
        .open(path)
        .expect("the file is there");
    let mut block = AlignedBuffer::zeroed(REQUEST_BYTES);
    let mut request = vec![0; REQUEST_BYTES];
    let mut position = 0u64;
    while stream.read_exact(&mut request).is_ok() {
        let checksum = crc32c::crc32c(&request);
        block.copy_from_slice(&request);
        let at = (position % BLOCKS * REQUEST_BYTES as u64) as i64;
        nix::sys::uio::pwrite(&file, &block, at).expect("a write");
        position += 1;
        if stream.write_all(&[checksum as u8; ANSWER_BYTES]).is_err() {
            break;
        }
    }
    debug_assert!(file.as_raw_fd() >= 0);
}

/// CPU of a shard for one message that finds it asleep.
fn measure_wake(pause: Duration, wakes: u32) -> Duration {
    let (sender, mut inbox) = io::inbox::<u32>(64);
    let (told, thread) = std::sync::mpsc::channel();
    let shard = std::thread::spawn(move || {
        let options = RuntimeOptions {
            cpu: Some(0),
            ..RuntimeOptions::for_tests()
        };
        let mut runtime = Runtime::start(options).expect("io_uring is allowed");
        told.send(nix::unistd::gettid())
            .expect("the measuring thread waits");
        runtime.block_on(async {
            let mut messages = Vec::new();
            while inbox.receive_batch(&mut messages).await {
                messages.clear();
            }
        });
    });
    let thread = thread.recv().expect("the shard starts");
    let used = || -> u64 {
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"));
        let text = text.expect("the shard's thread lives");
        text.split(' ')
            .next()
            .and_then(|ns| ns.parse().ok())
            .expect("nanoseconds")
    };
    std::thread::sleep(Duration::from_millis(50));
    let before = used();
    for number in 0..wakes {
        sender.try_send(number).expect("room");
        std::thread::sleep(pause);
    }
    let cost = (used() - before) / u64::from(wakes);
    drop(sender);
    shard.join().expect("the shard ends");
    Duration::from_nanos(cost)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|role| role == "clients") {
        run_clients(&arguments[1..]);
        return;
    }
    let seconds = arguments
        .iter()
        .find_map(|text| text.parse().ok())
        .unwrap_or(4);
    let length = Duration::from_secs(seconds);
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("writable");
    println!(
        "{:<18} {:>22} {:>10} {:>9} {:>8}",
        "load", "server", "requests", "CPU us", "enters"
    );
    for load in LOADS {
        for (server, measure) in [
            (
                "coreline",
                measure_ours as fn(Load, Duration, &std::path::Path) -> Cost,
            ),
            ("floor: a thread each", measure_floor),
        ] {
            let cost = measure(load, length, folder.path());
            let each = |value: f64| value / cost.requests.max(1) as f64;
            println!(
                "{:<18} {server:>22} {:>10} {:>9.1} {:>8.2}",
                load.name,
                cost.requests,
                each(cost.cpu.as_secs_f64() * 1e6),
                each(cost.enters as f64),
            );
        }
    }
    for (pause, wakes) in [
        (Duration::from_millis(1), 1_000),
        (Duration::from_millis(20), 100),
    ] {
        let cost = measure_wake(pause, wakes);
        println!("wake after {pause:?} of sleep: {cost:?} of the shard's CPU");
    }
}
