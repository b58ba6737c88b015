//! What does waking an idle shard cost? A thread sends one message into the inbox of a runtime on
//! a thread of its own, waits until that is idle again, and so on; the receiver's CPU time a
//! message is the cost, taken over all threads of the process but the sender's.
//!
//!     cargo bench --bench wake [-- --pause-us 1000 --messages 2000]

use std::time::{Duration, Instant};

use clap::Parser;
use coreline::io::{Runtime, RuntimeOptions, inbox};
use hdrhistogram::Histogram;
use nix::time::{ClockId, clock_gettime};

#[derive(Parser)]
struct Arguments {
    /// How long the receiver is idle before each message.
    #[arg(long, default_value_t = 1_000)]
    pause_us: u64,
    #[arg(long, default_value_t = 2_000)]
    messages: u32,
    /// Given by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock).expect("a CPU clock exists");
    Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32)
}

fn others_cpu() -> Duration {
    cpu(ClockId::CLOCK_PROCESS_CPUTIME_ID) - cpu(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn main() {
    let arguments = Arguments::parse();
    let (sender, mut inbox) = inbox::<Instant>(1);
    let receiver = std::thread::spawn(move || {
        let mut latency =
            Histogram::<u64>::new_with_bounds(1, 10_000_000_000, 3).expect("fixed bounds");
        let mut runtime = Runtime::start(RuntimeOptions::default()).expect("io_uring is allowed");
        runtime.block_on(async {
            let mut messages = Vec::new();
            while inbox.receive_batch(&mut messages).await {
                for sent in messages.drain(..) {
                    latency.saturating_record(sent.elapsed().as_nanos() as u64);
                }
            }
        });
        latency
    });
    let pause = Duration::from_micros(arguments.pause_us);
    std::thread::sleep(Duration::from_millis(200));
    let before = others_cpu();
    for _ in 0..arguments.messages {
        std::thread::sleep(pause);
        // On a busy machine the last message may still be there: then this one would wake nobody.
        while sender.try_send(Instant::now()).is_err() {
            std::thread::sleep(pause);
        }
    }
    std::thread::sleep(pause);
    let used = others_cpu() - before;
    drop(sender);
    let latency = receiver.join().expect("the receiver ends");
    println!(
        "pause_us={} messages={} wake_cpu_us={:.2} wake_p50_us={:.1} wake_p99_us={:.1}",
        arguments.pause_us,
        arguments.messages,
        used.as_secs_f64() * 1e6 / f64::from(arguments.messages),
        latency.value_at_quantile(0.5) as f64 / 1e3,
        latency.value_at_quantile(0.99) as f64 / 1e3,
    );
}
