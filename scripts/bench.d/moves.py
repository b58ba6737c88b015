"""What producers notice of a partition that moves between two log directories beside them."""

import shutil
import struct
import tempfile
import time
from pathlib import Path

from common import CORELINE_PORT, ask, build, spread, start_coreline, tell_paced, text
from retention import SECONDS_MIN, paced, room
from segments import GIB, fill

ALTER_REPLICA_LOG_DIRS = 34
GIB_WANTED = 1.0
# A rate that an operator may choose for moves while clients are at work.
RATE = 50 << 20
LIMIT_NAME = "replica.alter.log.dirs.io.max.bytes.per.second"


def order(broker, directory, topic):
    """Has partition 0 of the topic moved."""
    body = (struct.pack(">i", 1) + text(str(directory)) + struct.pack(">i", 1) + text(topic)
            + struct.pack(">ii", 1, 0))
    answer = ask(broker, ALTER_REPLICA_LOG_DIRS, 1, body)
    code, = struct.unpack(">h", answer[-2:])
    if code:
        raise RuntimeError(f"move of {topic} to {directory}: error {code}")


def measure(programs, arguments, folder, gib, *settings):
    """The loads without and beside moves, and how long these took; each goes back where the last came from."""
    directories = [folder / name for name in ("a", "b")]
    broker = start_coreline(folder, CORELINE_PORT, f"log.dirs={directories[0]},{directories[1]}", *settings)
    without, beside, took = [], [], []
    try:
        size = fill(programs, broker, "old", int(gib * GIB))
        seconds = max(arguments.seconds, SECONDS_MIN)
        if settings:
            seconds = max(seconds, 1.2 * size / RATE + 2)
        for _ in range(arguments.pairs):
            source, target = sorted(directories, key=lambda one: not (one / "old-0").is_dir())

            def move():
                began = time.monotonic()
                order(broker, target, "old")
                while not (target / "old-0").is_dir() or (source / "old-0").is_dir():
                    if time.monotonic() - began > seconds - 1:
                        raise RuntimeError("the move has not ended")
                    time.sleep(0.02)
                took.append(time.monotonic() - began)

            without.append(paced(programs, broker, seconds)[0])
            beside.append(paced(programs, broker, seconds, move)[0])
    finally:
        broker.stop()
    return without, beside, took


def bench_moves(arguments):
    """Interleaved: the same paced load without, and beside a partition that moves; on one disk."""
    programs = build("load")
    folder = Path(tempfile.mkdtemp(prefix="coreline-bench-"))
    try:
        gib = room(folder, arguments.gib or GIB_WANTED)
        for name, settings in (("without a limit", []), (f"at {RATE >> 20} MiB/s", [f"{LIMIT_NAME}={RATE}"])):
            shutil.rmtree(folder, ignore_errors=True)
            without, beside, took = measure(programs, arguments, folder, gib, *settings)
            print(f"produce, 1,000 batches of 4 KiB a second, acks=all, {gib:.1f} GiB move {name} in "
                  f"{spread(took)} s; ms")
            tell_paced(without, beside, f"a move {name}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
