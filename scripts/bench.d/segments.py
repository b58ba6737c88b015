"""Gates of segments: readers of old data, rolls, and the start after kill -9 with a large log."""

import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from common import BROKER_CPU, CLIENT_CPU, CORELINE_PORT, build, coreline, gate, load, spread, start_coreline

# Producers are paced, so that what is measured is no queue of their own.
PRODUCER_PACE_US = 1_000
GIB = 1 << 30
COLD_BYTES = GIB
RESTART_GIB = float(os.environ.get("CORELINE_BENCH_RESTART_GIB", "3"))


def bench_roll(arguments):
    """The latest acknowledgement around a roll, over the p99 of all; median of the rolls, then of the runs."""
    programs = build("load")
    segment = 8 << 20
    ratios, worst = [], []
    for _ in range(arguments.pairs):
        with coreline(f"log.segment.bytes={segment}") as broker:
            seen = load(programs["load"], broker, "produce", topic="g13", connections=1, segment_bytes=segment,
                        interval_us=PRODUCER_PACE_US, seconds=arguments.seconds)
        ratios.append(seen["roll_p50_us"] / seen["p99_us"])
        worst.append(seen["roll_max_us"] / seen["p99_us"])
    gate("G13 latest ack around a roll ÷ p99", statistics.median(ratios), 3.0)
    print(f"    the worst roll of each run ÷ p99: {spread(worst)}")


def fill(programs, broker, topic, wanted):
    """Large batches until the topic holds so many bytes."""
    written = 0
    while written < wanted:
        written += load(programs["load"], broker, "produce", topic=topic, batch_bytes=65_536, record_bytes=1024,
                        seconds=1, warmup_seconds=0)["bytes"]
    return written


def bench_cold(arguments):
    """What one consumer of data that no memory holds gets, and what a small producer notices of it."""
    programs = build("load")
    folder = Path(tempfile.mkdtemp(prefix="coreline-bench-"))
    broker = start_coreline(folder)
    try:
        fill(programs, broker, "cold", COLD_BYTES)
        broker.stop()
        broker = start_coreline(folder)
        for fetch in (65_536, 1 << 20):
            rates = [load(programs["load"], broker, "fetch", topic="cold", connections=1, fetch_bytes=fetch,
                          seconds=arguments.seconds)["mb_per_s"] for _ in range(arguments.pairs)]
            print(f"cold fetch, {fetch >> 10:5} KiB a fetch: MB/s {spread(rates)}", flush=True)
        gate_fairness(programs, broker, arguments)
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def gate_fairness(programs, broker, arguments):
    small = {"topic": "g10", "connections": 1, "interval_us": 2_000, "batch_bytes": 4096, "seconds": arguments.seconds}
    ratios = []
    for _ in range(arguments.pairs):
        alone = load(programs["load"], broker, "produce", **small)["p99_us"]
        words = ["nice", "-n", "10", "taskset", "-c", CLIENT_CPU, str(programs["load"]), "fetch", "--topic", "cold",
                 "--bootstrap", f"127.0.0.1:{broker.port}", "--connections", "1", "--seconds", str(arguments.seconds + 2)]
        reader = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        try:
            ratios.append(load(programs["load"], broker, "produce", **small)["p99_us"] / alone)
        finally:
            reader.wait()
    gate("G10 p99 of a small producer beside a cold reader ÷ alone", statistics.median(ratios), 2.0)


def bench_restart(arguments):
    """Seconds from the start of a broker that was killed to its open port: recovery ends before that."""
    programs = build("load")
    folder = Path(tempfile.mkdtemp(prefix="coreline-bench-"))
    broker = start_coreline(folder)
    try:
        written = fill(programs, broker, "g14", int(RESTART_GIB * GIB))
        took = []
        for _ in range(arguments.pairs):
            # Killed under load, with as much unwritten as there ever is.
            words = ["taskset", "-c", CLIENT_CPU, str(programs["load"]), "produce", "--topic", "g14", "--bootstrap",
                     f"127.0.0.1:{broker.port}", "--batch-bytes", "65536", "--record-bytes", "1024", "--seconds", "30"]
            producer = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.7)
            broker.process.send_signal(signal.SIGKILL)
            broker.process.wait()
            producer.kill()
            producer.wait()
            begun = time.monotonic()
            broker = start_coreline(folder)
            took.append(time.monotonic() - begun)
        size = sum(file.stat().st_size for file in (folder / "data").glob("g14-*/*.log"))
        print(f"    {written / GIB:.1f} GiB written before, {size / GIB:.1f} GiB of log at the end; CPU {BROKER_CPU}, port "
              f"{CORELINE_PORT}; seconds {spread(took)}")
        gate("G14 start after kill -9, seconds", statistics.median(took), 2.0)
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)
