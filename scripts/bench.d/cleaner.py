"""What producers notice of the cleaner, which goes through gigabytes on their own shard."""

import re
import shutil
import tempfile
import time
from pathlib import Path

from common import CORELINE_PORT, build, delete_topic, load, start_coreline, tell_paced
from retention import alter_topic, paced, room
from segments import GIB

SEGMENT_BYTES = 64 << 20
RECORD_BYTES = 1024
# The load's stretch, in which the cleaner must be at work from beginning to end.
SECONDS_MIN = 8.0
GIB_WANTED = 4.0
# Records of a key: the rest goes.
DUPLICATES = 3
LINE = re.compile(r"cleaned offsets .* records and (\d+) of (\d+) bytes stay, .* after ([0-9.]+) s")


def fill_keyed(programs, broker, topic, wanted):
    """Records of few keys, until the topic holds so many bytes."""
    written, keys = 0, max(1, int(wanted / (RECORD_BYTES + 20) / DUPLICATES))
    while written < wanted:
        written += load(programs["load"], broker, "produce", topic=topic, batch_bytes=65_536,
                        record_bytes=RECORD_BYTES, seconds=2, warmup_seconds=0, keys=keys)["bytes"]


def cleanings(folder):
    """(bytes that stayed, bytes gone through, seconds) of each cleaning so far."""
    found = LINE.findall((folder / "log").read_text())
    return [(int(stay), int(read), float(took)) for stay, read, took in found]


def bench_cleaner(arguments):
    """Interleaved: the same paced load without, and beside a cleaning."""
    programs = build("load")
    folder = Path(tempfile.mkdtemp(prefix="coreline-bench-"))
    gib = room(folder, arguments.gib or GIB_WANTED)
    seconds = max(arguments.seconds, SECONDS_MIN)
    overrides = [f"log.segment.bytes={SEGMENT_BYTES}", "log.cleaner.backoff.ms=100",
                 "log.segment.delete.delay.ms=0", "log.cleaner.min.cleanable.ratio=0.01"]
    without, beside = [], []
    broker = start_coreline(folder, CORELINE_PORT, *overrides)
    try:
        for pair in range(arguments.pairs):
            topic, before = f"old{pair}", len(cleanings(folder))
            fill_keyed(programs, broker, topic, gib * GIB)
            time.sleep(2)
            without.append(paced(programs, broker, seconds)[0])
            beside.append(paced(programs, broker, seconds,
                                lambda: alter_topic(broker, topic, "cleanup.policy", "compact"))[0])
            lasted = time.monotonic()
            while len(cleanings(folder)) == before and time.monotonic() - lasted < 600:
                time.sleep(0.1)
            stayed, read, took = cleanings(folder)[-1]
            beyond = time.monotonic() - lasted
            delete_topic(broker, topic)
            told = "to the end" if beyond > 0.2 else f"{took:.1f} of its {seconds:.0f} s"
            print(f"    pair {pair + 1}: {read / GIB:.2f} GiB gone through, {stayed / GIB:.2f} stayed, {took:.1f} s, "
                  f"beside the load {told}; p99 {without[-1]['p99_us'] / 1e3:.2f} ms without, "
                  f"{beside[-1]['p99_us'] / 1e3:.2f} ms beside", flush=True)
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"produce, 1,000 batches of 4 KiB a second, acks=all, on the shard of a log of {gib:.0f} GiB; ms")
    tell_paced(without, beside, "the cleaner")
