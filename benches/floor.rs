//! The physical limit for this design on the machine at hand: one thread that receives 64 KiB from
//! loopback TCP, runs CRC-32C over it, copies it once into an aligned buffer and writes it with
//! direct I/O, several writes in flight. Its parts are measured apart as well.
//!
//!     cargo bench --bench floor [-- --chunk BYTES --folder FOLDER]
//!
//! Figures are nanoseconds of this thread's CPU time a byte; the write probe is also wall clock.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use coreline::io::AlignedBuffer;
use io_uring::{IoUring, opcode, types};

const TOTAL_BYTES: usize = 512 << 20;
const WRITES_IN_FLIGHT_MAX: usize = 8;
const FILE_BYTES: u64 = 64 << 20;
const PROBES: usize = 200;

#[derive(Parser)]
struct Arguments {
    /// Bytes received, summed, copied and written at a time; a multiple of 4096.
    #[arg(long, default_value_t = 64 << 10)]
    chunk: usize,
    /// Where the test file goes: the disk to measure.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// CPU of the peer's thread; wherever this one may run when not given. scripts/bench puts it on
    /// the load generator's: a peer elsewhere has to be woken there, as a broker's clients have. On
    /// the same CPU a loopback send takes a quarter of that, which no broker can have.
    #[arg(long)]
    peer_cpu: Option<usize>,
    /// Given by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

fn thread_cpu() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("this thread has a CPU clock");
    Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32)
}

/// CPU nanoseconds a byte of `work`, which handles `TOTAL_BYTES`.
fn per_byte(work: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
    let before = thread_cpu();
    work()?;
    Ok((thread_cpu() - before).as_nanos() as f64 / TOTAL_BYTES as f64)
}

static PEER_CPU: std::sync::OnceLock<usize> = std::sync::OnceLock::new();

/// Moves this thread, a peer's, to its CPU.
fn move_to_peer_cpu() -> io::Result<()> {
    let Some(cpu) = PEER_CPU.get() else {
        return Ok(());
    };
    let mut set = nix::sched::CpuSet::new();
    set.set(*cpu)?;
    Ok(nix::sched::sched_setaffinity(
        nix::unistd::Pid::from_raw(0),
        &set,
    )?)
}

fn socket_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    Ok((client, server))
}

/// A peer on a thread of its own that sends `TOTAL_BYTES`.
fn sender(mut stream: TcpStream, chunk_bytes: usize) -> std::thread::JoinHandle<io::Result<()>> {
    std::thread::spawn(move || {
        move_to_peer_cpu()?;
        let chunk = vec![7u8; chunk_bytes];
        for _ in 0..TOTAL_BYTES / chunk_bytes {
            stream.write_all(&chunk)?;
        }
        Ok(())
    })
}

fn receive_part(chunk_bytes: usize) -> io::Result<f64> {
    let (client, mut server) = socket_pair()?;
    let peer = sender(client, chunk_bytes);
    let mut chunk = vec![0; chunk_bytes];
    let figure = per_byte(|| {
        for _ in 0..TOTAL_BYTES / chunk_bytes {
            server.read_exact(&mut chunk)?;
        }
        Ok(())
    })?;
    peer.join()
        .map_err(|_| io::Error::other("the sender died"))??;
    Ok(figure)
}

fn send_part(chunk_bytes: usize) -> io::Result<f64> {
    let (mut client, mut server) = socket_pair()?;
    let peer = std::thread::spawn(move || -> io::Result<()> {
        move_to_peer_cpu()?;
        let mut chunk = vec![0; chunk_bytes];
        while server.read(&mut chunk)? > 0 {}
        Ok(())
    });
    let chunk = vec![7u8; chunk_bytes];
    let figure = per_byte(|| {
        for _ in 0..TOTAL_BYTES / chunk_bytes {
            client.write_all(&chunk)?;
        }
        Ok(())
    })?;
    drop(client);
    peer.join()
        .map_err(|_| io::Error::other("the receiver died"))??;
    Ok(figure)
}

fn crc_part(chunk_bytes: usize) -> io::Result<f64> {
    let chunk = vec![7u8; chunk_bytes];
    let mut sum = 0u32;
    let figure = per_byte(|| {
        for _ in 0..TOTAL_BYTES / chunk_bytes {
            sum = sum.wrapping_add(crc32c::crc32c(std::hint::black_box(&chunk)));
        }
        Ok(())
    })?;
    std::hint::black_box(sum);
    Ok(figure)
}

fn copy_part(chunk_bytes: usize) -> io::Result<f64> {
    let chunk = vec![7u8; chunk_bytes];
    let mut target = AlignedBuffer::zeroed(chunk_bytes);
    per_byte(|| {
        for _ in 0..TOTAL_BYTES / chunk_bytes {
            target.clear();
            target.extend_from_slice(std::hint::black_box(&chunk));
            std::hint::black_box(&target);
        }
        Ok(())
    })
}

fn direct_file(folder: &std::path::Path) -> io::Result<File> {
    let path = folder.join("floor.bin");
    let zeros = vec![0u8; 1 << 20];
    let mut plain = File::create(&path)?;
    for _ in 0..FILE_BYTES >> 20 {
        plain.write_all(&zeros)?;
    }
    plain.sync_all()?;
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path)
}

/// Writes chunks round and round a file of allocated blocks, several in flight.
struct Writer {
    ring: IoUring,
    file: File,
    buffers: Vec<AlignedBuffer>,
    free: Vec<usize>,
    position: u64,
    chunk_bytes: usize,
}

impl Writer {
    fn new(file: File, chunk_bytes: usize) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(2 * WRITES_IN_FLIGHT_MAX as u32)?;
        let buffers: Vec<AlignedBuffer> = (0..WRITES_IN_FLIGHT_MAX)
            .map(|_| AlignedBuffer::zeroed(chunk_bytes))
            .collect();
        let free = (0..buffers.len()).collect();
        Ok(Self {
            ring,
            file,
            buffers,
            free,
            position: 0,
            chunk_bytes,
        })
    }

    fn reap(&mut self, wanted: usize) -> io::Result<()> {
        self.ring.submit_and_wait(wanted)?;
        for completion in self.ring.completion() {
            if completion.result() != self.chunk_bytes as i32 {
                return Err(io::Error::other(format!(
                    "a write gave {}",
                    completion.result()
                )));
            }
            self.free.push(completion.user_data() as usize);
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        while self.free.is_empty() {
            self.reap(1)?;
        }
        let place = self.free.pop().expect("reaped above");
        let buffer = &mut self.buffers[place];
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let fd = types::Fd(self.file.as_raw_fd());
        let entry = opcode::Write::new(fd, buffer.as_ptr(), self.chunk_bytes as u32)
            .offset(self.position)
            .build()
            .user_data(place as u64);
        self.position = (self.position + self.chunk_bytes as u64) % FILE_BYTES;
        // SAFETY: the buffer lives in `self` and is not touched until its completion frees it.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        self.ring.submit()?;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        while self.free.len() < self.buffers.len() {
            self.reap(1)?;
        }
        Ok(())
    }
}

fn write_part(folder: &std::path::Path, chunk_bytes: usize) -> io::Result<f64> {
    let mut writer = Writer::new(direct_file(folder)?, chunk_bytes)?;
    let chunk = vec![7u8; chunk_bytes];
    per_byte(|| {
        for _ in 0..TOTAL_BYTES / chunk_bytes {
            writer.write(&chunk)?;
        }
        writer.finish()
    })
}

fn floor_server(folder: &std::path::Path, chunk_bytes: usize) -> io::Result<(f64, f64)> {
    let mut writer = Writer::new(direct_file(folder)?, chunk_bytes)?;
    let (client, mut server) = socket_pair()?;
    let peer = sender(client, chunk_bytes);
    let mut chunk = vec![0; chunk_bytes];
    let begin = Instant::now();
    let figure = per_byte(|| {
        for _ in 0..TOTAL_BYTES / chunk_bytes {
            server.read_exact(&mut chunk)?;
            std::hint::black_box(crc32c::crc32c(&chunk));
            writer.write(&chunk)?;
        }
        writer.finish()
    })?;
    let gigabytes = TOTAL_BYTES as f64 / 1e9 / begin.elapsed().as_secs_f64();
    peer.join()
        .map_err(|_| io::Error::other("the sender died"))??;
    Ok((figure, gigabytes))
}

fn median(mut samples: Vec<Duration>) -> f64 {
    samples.sort();
    samples[samples.len() / 2].as_nanos() as f64 / 1000.0
}

/// Wall-clock medians of a 4 KiB overwrite that is durable, in two ways.
fn durable_write_probe(folder: &std::path::Path) -> io::Result<(f64, f64)> {
    let file = direct_file(folder)?;
    let block = AlignedBuffer::zeroed(4096);
    let mut flushed = Vec::with_capacity(PROBES);
    for place in 0..PROBES as u64 {
        let begin = Instant::now();
        file.write_all_at(&block, place * 4096)?;
        file.sync_data()?;
        flushed.push(begin.elapsed());
    }
    let flags = libc::O_DIRECT | libc::O_DSYNC;
    let path = folder.join("floor.bin");
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(path)?;
    let mut synchronous = Vec::with_capacity(PROBES);
    for place in 0..PROBES as u64 {
        let begin = Instant::now();
        file.write_all_at(&block, place * 4096)?;
        synchronous.push(begin.elapsed());
    }
    Ok((median(flushed), median(synchronous)))
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let chunk = arguments.chunk;
    arguments.peer_cpu.map(|cpu| PEER_CPU.set(cpu));
    let folder = arguments.folder.unwrap_or_else(std::env::temp_dir);
    let folder = folder.join(format!("coreline-floor-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (receive, send, crc) = (receive_part(chunk)?, send_part(chunk)?, crc_part(chunk)?);
    let (copy, write) = (copy_part(chunk)?, write_part(&folder, chunk)?);
    let (server, gigabytes) = floor_server(&folder, chunk)?;
    let (flushed, synchronous) = durable_write_probe(&folder)?;
    std::fs::remove_dir_all(&folder)?;
    let parts = receive + crc + copy + write;
    println!(
        "recv_ns_per_byte={receive:.3} send_ns_per_byte={send:.3} crc32c_ns_per_byte={crc:.3}"
    );
    println!("memcpy_ns_per_byte={copy:.3} write_ns_per_byte={write:.3} parts={parts:.3}");
    println!("floor_server_ns_per_byte={server:.3} gb_per_s={gigabytes:.2}");
    println!("write_fdatasync_4k_us={flushed:.0} write_dsync_4k_us={synchronous:.0}");
    Ok(())
}
