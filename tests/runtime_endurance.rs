//! The runtime under pressure from outside: a competing process on its core, and thousands of
//! connections that come and go. The clients and the competitor are processes of their own: this
//! same binary, started again with a role in its environment.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Client};
use std::process::{Child, Command};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use coreline::io::{
    self, AlignedBuffer, Durability, File, Leftovers, OpenOptions, Runtime, RuntimeOptions,
    TaskClass, TcpListener, TcpStream, TurnBudget,
};

const ROLE: &str = "CORELINE_TEST_ROLE";
const ADDRESS: &str = "CORELINE_TEST_ADDRESS";

/// No wait of a client may last longer.
const HANG: Duration = Duration::from_secs(10);
/// CPU time that the shard may use between a request and its answer: more means that it was busy
/// with something else than the work at hand.
const STALL: Duration = Duration::from_millis(100);

fn bulk_runs() -> usize {
    dose("CORELINE_STALL_RUNS", 25)
}

fn dose(variable: &str, usual: usize) -> usize {
    let asked = std::env::var(variable).ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A child that is ended with the test.
struct Process(Child);

impl Process {
    fn start(role: &str, address: &str) -> Self {
        let program = std::env::current_exe().expect("this binary has a path");
        let child = Command::new(program)
            .args(["role_of_a_child_process", "--exact", "--nocapture"])
            .env(ROLE, role)
            .env(ADDRESS, address)
            .spawn()
            .expect("this binary can be started again");
        Self(child)
    }

    fn is_done(&mut self) -> bool {
        match self.0.try_wait().expect("the child can be waited for") {
            Some(status) => {
                assert!(status.success(), "the child failed");
                true
            }
            None => false,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test of its own: does what the environment says when started as a child.
#[test]
fn role_of_a_child_process() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let address = std::env::var(ADDRESS).unwrap_or_default();
    match role.as_str() {
        "spin" => spin(address.parse().expect("a CPU")),
        "connect" => connect_many(address.parse().expect("an address")),
        "panic" => panic_in_a_task(),
        other => panic!("unknown role {other}"),
    }
}

/// With the policy that a broker has: whatever follows the panic must not happen.
fn panic_in_a_task() {
    let mut runtime = Runtime::start(RuntimeOptions::default()).expect("io_uring is allowed");
    runtime.block_on(async {
        let guarded = io::spawn_guarded(TaskClass::Produce, async { panic!("only a connection") });
        assert!(guarded.await.is_err());
        println!("the guarded panic passed");
        io::spawn(TaskClass::Background, async {
            panic!("the journal is broken")
        });
        io::sleep(Duration::from_secs(5)).await;
        println!("the process lived on");
    });
}

#[test]
fn an_unguarded_panic_ends_the_process_at_once_with_its_reason() {
    use std::os::unix::process::ExitStatusExt;
    let program = std::env::current_exe().expect("this binary has a path");
    let output = Command::new(program)
        .args(["role_of_a_child_process", "--exact", "--nocapture"])
        .env(ROLE, "panic")
        .output()
        .expect("this binary can be started again");
    let said = String::from_utf8_lossy(&output.stdout);
    let reason = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the guarded panic passed"), "{said}");
    assert!(!said.contains("the process lived on"), "{said}");
    assert!(reason.contains("the journal is broken"), "{reason}");
    let aborted = output.status.signal() == Some(nix::libc::SIGABRT);
    assert!(aborted, "{:?}", output.status);
}

fn pin(cpu: usize) {
    core_affinity::set_for_current(core_affinity::CoreId { id: cpu });
}

fn spin(cpu: usize) {
    pin(cpu);
    let until = Instant::now() + Duration::from_secs(300);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

const REQUEST_BYTES: usize = 16 * 1024;
const ANSWER_BYTES: usize = 60;

/// Answers each 16 KiB with 60 bytes, after a checksum and a synchronous write.
async fn serve_bulk(stream: TcpStream, file: File) -> std::io::Result<()> {
    let mut budget = TurnBudget::default();
    let mut received = BytesMut::with_capacity(4 * REQUEST_BYTES);
    let mut block = AlignedBuffer::zeroed(4_096);
    loop {
        received.reserve(REQUEST_BYTES);
        let (count, back) = stream.receive(received).await;
        received = back;
        if count? == 0 {
            return Ok(());
        }
        budget.restart();
        let mut answers = Vec::new();
        while received.len() >= REQUEST_BYTES {
            let request = received.split_to(REQUEST_BYTES);
            let checksum = crc32c::crc32c(&request);
            block[..4].copy_from_slice(&checksum.to_le_bytes());
            answers.push(Bytes::from(vec![checksum as u8; ANSWER_BYTES]));
            budget.spend(REQUEST_BYTES).await;
        }
        if !answers.is_empty() {
            let (written, back) = file.write_at(0, block, Durability::Stable).await;
            written?;
            block = back;
            stream.send_vectored(answers).await?;
        }
    }
}

/// Serves until told to stop; tells its address and its thread's number first.
fn bulk_shard(
    cpu: usize,
    ready: &mpsc::Sender<(SocketAddr, i32)>,
    mut stop: io::Inbox<()>,
) -> Leftovers {
    let options = RuntimeOptions {
        cpu: Some(cpu),
        ..RuntimeOptions::for_tests()
    };
    let mut runtime = Runtime::start(options).expect("io_uring is allowed");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("writable");
    runtime.block_on(async {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 64).unwrap();
        let address = listener.local_address().unwrap();
        ready
            .send((address, nix::unistd::gettid().as_raw()))
            .unwrap();
        let options = OpenOptions {
            write: true,
            create: true,
            direct: true,
            ..OpenOptions::default()
        };
        let file = File::open(&folder.path().join("file"), options)
            .await
            .unwrap();
        io::spawn(TaskClass::Produce, async move {
            while let Ok((stream, _)) = listener.accept().await {
                let file = file.clone();
                io::spawn_guarded(
                    TaskClass::Produce,
                    async move { serve_bulk(stream, file).await },
                );
            }
        });
        stop.receive_batch(&mut Vec::new()).await;
    });
    runtime.end()
}

/// CPU time that a thread of this process has used.
fn cpu_time(thread: i32) -> Duration {
    let path = format!("/proc/self/task/{thread}/schedstat");
    let text = std::fs::read_to_string(path).expect("the shard's thread lives");
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.expect("nanoseconds come first"))
}

/// One connection's share of a bulk run; answers the most CPU time between request and answer.
fn bulk_client(address: SocketAddr, shard: i32) -> Duration {
    const ROUNDS: usize = 25;
    const DEEP: usize = 5;
    let mut client = Client::connect(address).expect("the shard listens");
    client.set_nodelay(true).unwrap();
    client.set_read_timeout(Some(HANG)).unwrap();
    client.set_write_timeout(Some(HANG)).unwrap();
    let requests = vec![7; REQUEST_BYTES * DEEP];
    let mut answers = [0; ANSWER_BYTES * DEEP];
    let mut worst = Duration::ZERO;
    for _ in 0..ROUNDS {
        let before = cpu_time(shard);
        client.write_all(&requests).expect("hangs while sending");
        client
            .read_exact(&mut answers)
            .expect("hangs while answering");
        worst = worst.max(cpu_time(shard).saturating_sub(before));
    }
    worst
}

#[test]
fn no_stall_beside_a_competing_process_on_the_same_core() {
    let cpus = core_affinity::get_core_ids().expect("Linux tells its CPUs");
    let cpu = cpus.last().expect("there is a CPU").id;
    let (ready, started) = mpsc::channel();
    let (stop, stopped) = io::inbox(1);
    let shard = std::thread::spawn(move || bulk_shard(cpu, &ready, stopped));
    let (address, thread) = started.recv_timeout(HANG).expect("the shard starts");
    let _competitor = Process::start("spin", &cpu.to_string());
    for run in 0..bulk_runs() {
        let clients: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(move || bulk_client(address, thread)))
            .collect();
        for client in clients {
            let worst = client.join().expect("no client hangs");
            assert!(
                worst < STALL,
                "run {run}: {worst:?} of CPU before an answer"
            );
        }
    }
    stop.try_send(()).unwrap();
    let left = shard.join().unwrap();
    assert_eq!((left.timers, left.operations, left.handles), (0, 0, 0));
}

const ROUNDS: usize = 3;

fn connections() -> usize {
    dose("CORELINE_LEAK_CONNECTIONS", 2_000)
}

/// Opens many connections, speaks on each, and drops them: one half in order, the other with an
/// answer unread, so that the server sees a reset.
fn connect_many(address: SocketAddr) {
    for _ in 0..ROUNDS {
        let mut clients = Vec::new();
        for _ in 0..connections() {
            let mut client = Client::connect(address).expect("the server accepts");
            client.set_read_timeout(Some(HANG)).unwrap();
            client.write_all(b"x").unwrap();
            clients.push(client);
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let mut answer = [0; 2];
            let wanted = 1 + number % 2;
            client
                .read_exact(&mut answer[..wanted])
                .expect("the server answers");
        }
    }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("Linux").count()
}

async fn serve_small(stream: TcpStream) {
    loop {
        let (count, _) = stream.receive(BytesMut::with_capacity(16)).await;
        if !matches!(count, Ok(1..)) {
            return;
        }
        let answer = vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        if stream.send_vectored(answer).await.is_err() {
            return;
        }
    }
}

#[test]
fn thousands_of_connections_leave_nothing_behind() {
    let mut runtime = Runtime::start(RuntimeOptions::for_tests()).expect("io_uring is allowed");
    runtime.block_on(async {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 4_096).unwrap();
        let address = listener.local_address().unwrap();
        let before = open_descriptors();
        let (served, open) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0usize)));
        let (counted, now_open) = (Rc::clone(&served), Rc::clone(&open));
        io::spawn(TaskClass::Produce, async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.set(counted.get() + 1);
                now_open.set(now_open.get() + 1);
                let now_open = Rc::clone(&now_open);
                io::spawn(TaskClass::Produce, async move {
                    serve_small(stream).await;
                    now_open.set(now_open.get() - 1);
                });
            }
        });
        let mut clients = Process::start("connect", &address.to_string());
        let deadline = Instant::now() + 12 * HANG;
        while !clients.is_done() {
            assert!(Instant::now() < deadline, "{} served", served.get());
            io::sleep(Duration::from_millis(10)).await;
        }
        let deadline = Instant::now() + HANG;
        while open.get() > 0 {
            assert!(Instant::now() < deadline, "{} still open", open.get());
            io::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(served.get(), ROUNDS * connections());
        // The other test of this process may open and close some meanwhile.
        let mut after = open_descriptors();
        while after > before && Instant::now() < deadline {
            io::sleep(Duration::from_millis(100)).await;
            after = open_descriptors();
        }
        assert!(
            after < before + 50,
            "{before} descriptors before, {after} after"
        );
    });
    let left = runtime.end();
    let expected = Leftovers {
        tasks: 1,
        ..Leftovers::default()
    };
    assert_eq!(left, expected, "the accepting task is all that was left");
}
