"""What producers notice of a retention pass that deletes gigabytes on their own shard."""

import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from common import CLIENT_CPU, CORELINE_PORT, ask, build, figures, start_coreline, tell_paced, text
from segments import GIB, fill

SEGMENT_BYTES = 256 << 20
CHECK_MS = 500
# The load's stretch: the pass begins in its first second and must end in it.
SECONDS_MIN, WARMUP_SECONDS = 8.0, 1.0
GIB_WANTED, GIB_SPARE = 10.0, 3.0
# Blocks are given back at 0.78 GiB a second at most.
GIB_A_SECOND = 0.6
INCREMENTAL_ALTER_CONFIGS, TOPIC, SET, DELETE = 44, 2, 0, 1


def limit_retention(broker, topic, retention_bytes):
    """Sets the topic's retention.bytes; None takes the limit away."""
    alter_topic(broker, topic, "retention.bytes", None if retention_bytes is None else str(retention_bytes))


def alter_topic(broker, topic, name, value):
    """Sets one of a topic's settings; None takes it away."""
    config = text(name) + struct.pack(">b", DELETE if value is None else SET) + text(value)
    body = struct.pack(">ib", 1, TOPIC) + text(topic) + struct.pack(">i", 1) + config + b"\0"
    answer = ask(broker, INCREMENTAL_ALTER_CONFIGS, 0, body)
    code, = struct.unpack_from(">h", answer, 12)
    if code:
        raise RuntimeError(f"{name} of {topic}: error {code}")


def held(folder):
    """Bytes of a partition's segments, those marked for deletion among them."""
    total = 0
    for file in (folder / "data/old-0").iterdir():
        try:
            total += file.stat().st_size if ".log" in file.name else 0
        except FileNotFoundError:
            pass
    return total


def paced(programs, broker, seconds, beside=None):
    """A paced load's latencies; `beside` runs in its first second and after."""
    words = ["taskset", "-c", CLIENT_CPU, str(programs["load"]), "produce", "--bootstrap",
             f"127.0.0.1:{broker.port}", "--topic", "new", "--connections", "4", "--acks", "-1", "--batch-bytes",
             "4096", "--interval-us", "4000", "--seconds", str(seconds), "--warmup-seconds", str(WARMUP_SECONDS)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        time.sleep(WARMUP_SECONDS + 0.3)
        told = beside() if beside else None
        printed, _ = process.communicate(timeout=seconds + 120)
    finally:
        process.kill()
    return figures(printed), told


def room(folder, wanted):
    """So many GiB fit."""
    free = shutil.disk_usage(folder).free / GIB
    if free >= 1.05 * wanted + GIB_SPARE:
        return wanted
    fitting = max(1.0, (free - GIB_SPARE) / 1.05 // 1)
    print(f"    {free:.1f} GiB are free: {fitting:.0f} GiB instead of {wanted:.0f}")
    return fitting


def bench_retention(arguments):
    """Interleaved: the same paced load without, and beside the deletion of all but one segment."""
    programs = build("load")
    folder = Path(tempfile.mkdtemp(prefix="coreline-bench-"))
    gib = room(folder, arguments.gib or GIB_WANTED)
    seconds = max(arguments.seconds, SECONDS_MIN, gib / GIB_A_SECOND + 2)
    overrides = [f"log.segment.bytes={SEGMENT_BYTES}", f"log.retention.check.interval.ms={CHECK_MS}",
                 "log.initial.task.delay.ms=0", "log.segment.delete.delay.ms=0"]
    broker = start_coreline(folder, CORELINE_PORT, *overrides)
    without, beside, took = [], [], []

    def delete():
        began, before = time.monotonic(), held(folder)
        limit_retention(broker, "old", 1)
        while held(folder) > 2 * SEGMENT_BYTES:
            if time.monotonic() - began > seconds - 1:
                raise RuntimeError(f"the pass has not ended: {held(folder)} of {before} bytes are left")
            time.sleep(0.02)
        took.append(time.monotonic() - began)
        return before - held(folder)

    try:
        for pair in range(arguments.pairs):
            fill(programs, broker, "old", int(gib * GIB))
            without.append(paced(programs, broker, seconds)[0])
            found, deleted = paced(programs, broker, seconds, delete)
            beside.append(found)
            limit_retention(broker, "old", None)
            print(f"    pair {pair + 1}: {deleted / GIB:.1f} GiB went in {took[-1]:.1f} s; p99 "
                  f"{without[-1]['p99_us'] / 1e3:.2f} ms without, {found['p99_us'] / 1e3:.2f} ms beside", flush=True)
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"produce, 1,000 batches of 4 KiB a second, acks=all, {gib:.0f} GiB in segments of 256 MiB; ms")
    tell_paced(without, beside, "a retention pass")
