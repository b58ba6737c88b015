//! What does an append cost a core, and how many journal writes does it share? Validates, stamps,
//! journals and acknowledges batches of one shard on the real disk, `--in-flight` at a time over
//! `--partitions` logs; the floor is one CRC-32C and one copy of the same bytes.
//!
//!     cargo bench --bench append [-- --batch-bytes 16384 --in-flight 16 --partitions 1]

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use clap::Parser;
use coreline::base::ids::{LeaderEpoch, PartitionIndex, ShardId, Uuid};
use coreline::base::random::Random;
use coreline::io::{self, AlignedBuffer, Runtime, RuntimeOptions, TaskClass};
use coreline::log::{
    AppendContext, Log, LogConfig, LogIdentity, RecoveryOptions, ShardLogs, ShardLogsOptions,
    recover,
};
use coreline::wire::record_batch::{BatchBuilder, NewRecord};

#[derive(Clone, Parser)]
struct Arguments {
    #[arg(long, default_value_t = 16_384)]
    batch_bytes: usize,
    #[arg(long, default_value_t = 16)]
    in_flight: usize,
    #[arg(long, default_value_t = 1)]
    partitions: usize,
    #[arg(long, default_value_t = 20_000)]
    batches: usize,
    /// Where the log directory goes: the disk to measure.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Given by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

const RECORD_BYTES: usize = 100;
const JOURNAL_BYTES: u64 = 256 << 20;
const CACHE_BYTES: usize = 256 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

fn thread_cpu() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("this thread has a CPU clock");
    Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32)
}

fn batch(bytes: usize) -> BytesMut {
    let value = [b'v'; RECORD_BYTES];
    let mut builder = BatchBuilder::default();
    for _ in 0..(bytes / (RECORD_BYTES + 8)).max(1) {
        builder.append(NewRecord {
            value: Some(&value),
            ..NewRecord::default()
        });
    }
    builder.build().expect("an uncompressed batch builds")
}

/// CPU nanoseconds of one checksum and one copy of the batch.
fn floor_ns(batch: &[u8]) -> f64 {
    const ROUNDS: u32 = 20_000;
    let mut target = AlignedBuffer::with_capacity(batch.len());
    let before = thread_cpu();
    for _ in 0..ROUNDS {
        std::hint::black_box(crc32c::crc32c(std::hint::black_box(batch)));
        target.clear();
        target.extend_from_slice(std::hint::black_box(batch));
        std::hint::black_box(&target);
    }
    (thread_cpu() - before).as_nanos() as f64 / f64::from(ROUNDS)
}

async fn open(arguments: &Arguments, folder: PathBuf) -> (Rc<ShardLogs>, Vec<Rc<Log>>) {
    let mut random = Random::new(u64::from(std::process::id()));
    let incarnation = random.next_uuid();
    let options = RecoveryOptions {
        directory: folder.clone(),
        incarnation,
        shard_count: 1,
        journal_bytes: JOURNAL_BYTES,
    };
    let report = recover(options).await.expect("an empty folder recovers");
    let logs = ShardLogs::open(ShardLogsOptions {
        directory: folder,
        shard: ShardId(0),
        incarnation,
        journal_bytes: report.journal_bytes_per_shard,
        cache_bytes: CACHE_BYTES,
        random_seed: random.next_u64(),
        metrics: Default::default(),
    })
    .await
    .expect("the shard's logs open");
    let mut all = Vec::with_capacity(arguments.partitions);
    for number in 0..arguments.partitions {
        let identity = LogIdentity {
            topic: "bench".to_owned(),
            topic_id: Uuid([7; 16]),
            partition: PartitionIndex(number as i32),
        };
        let log = logs
            .create_log(identity, LogConfig::default())
            .await
            .expect("a log is created");
        all.push(log);
    }
    (logs, all)
}

async fn produce(arguments: Arguments, logs: Vec<Rc<Log>>, place: usize, batch: BytesMut) {
    let mut next = place;
    for _ in 0..arguments.batches / arguments.in_flight {
        let Some(log) = logs.get(next % logs.len()) else {
            return;
        };
        next += arguments.in_flight;
        let context = AppendContext::client(LeaderEpoch(0), io::now(), PATIENCE);
        let appended = log
            .append(batch.clone(), context)
            .await
            .expect("an append succeeds");
        log.wait_durable(appended.last_offset.plus(1))
            .await
            .expect("it becomes durable");
    }
}

fn main() {
    let arguments = Arguments::parse();
    let base = arguments.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = base.join(format!("coreline-append-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let batch = batch(arguments.batch_bytes);
    let floor = floor_ns(&batch);
    let mut runtime = Runtime::start(RuntimeOptions::default()).expect("io_uring is allowed");
    let count = arguments.batches / arguments.in_flight * arguments.in_flight;
    let (cpu, wall, cycles) = runtime.block_on(async {
        let (shard, logs) = open(&arguments, folder.clone()).await;
        let (cycles, before, begin) = (shard.journal_cycles(), thread_cpu(), Instant::now());
        let producers: Vec<_> = (0..arguments.in_flight)
            .map(|place| {
                let work = produce(arguments.clone(), logs.clone(), place, batch.clone());
                io::spawn(TaskClass::Produce, work)
            })
            .collect();
        for producer in producers {
            producer.await;
        }
        let figures = (
            thread_cpu() - before,
            begin.elapsed(),
            shard.journal_cycles() - cycles,
        );
        shard.close().await.expect("the shard closes");
        figures
    });
    drop(runtime);
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    let per_batch = cpu.as_nanos() as f64 / count as f64;
    println!(
        "batch_bytes={} in_flight={} partitions={} cpu_us_per_batch={:.2} floor_us={:.2} \
         ratio={:.2} journal_writes_per_batch={:.4} allowed={:.4} mb_per_s={:.1}",
        batch.len(),
        arguments.in_flight,
        arguments.partitions,
        per_batch / 1000.0,
        floor / 1000.0,
        per_batch / floor,
        cycles as f64 / count as f64,
        2.0 / arguments.in_flight as f64,
        (count * batch.len()) as f64 / 1e6 / wall.as_secs_f64(),
    );
}
