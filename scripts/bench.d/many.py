"""`scripts/bench many`: create, stop, start, restart after kill -9 and delete with many partitions;
then the same stops and starts with a large log (G14)."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tests/clients"))
import wire  # noqa: E402
from common import CORELINE_PORT, KAFKA_PORT, ROOT, build  # noqa: E402
from rivals import prepare_kafka  # noqa: E402

TOPIC = "many"
SYNCS = ("fsync", "fdatasync", "syncfs")
LARGE_BATCH_BYTES = 1 << 20


class Node:
    """A broker that is started and stopped several times on one folder."""

    def __init__(self, name, words, folder, port):
        self.name, self.words, self.folder, self.port = name, words, folder, port
        self.process = None

    def start(self):
        """Seconds from exec to the first answer."""
        began = time.monotonic()
        log = open(self.folder / "log", "a")
        self.process = subprocess.Popen(self.words, stdout=log, stderr=log, cwd=self.folder)
        while True:
            try:
                with self.connect() as connection:
                    connection.api_versions()
                    return time.monotonic() - began
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"{self.name} ended with {self.process.returncode}:\n"
                             + (self.folder / "log").read_text()[-2000:])
                time.sleep(0.005)

    def connect(self):
        return wire.Connection(f"127.0.0.1:{self.port}", timeout=120)

    def end(self, sign):
        """Seconds from the signal to the process's end."""
        began = time.monotonic()
        self.process.send_signal(sign)
        self.process.wait(120)
        return time.monotonic() - began

    def counted(self, work):
        """What `work` answers, and how many flushes the broker asked the kernel for meanwhile,
        those that its ring does for it aside; None without strace."""
        if shutil.which("strace") is None:
            return work(), None
        with tempfile.NamedTemporaryFile() as out:
            words = ["strace", "-f", "-c", "-e", "trace=" + ",".join(SYNCS), "-o", out.name]
            trace = subprocess.Popen([*words, "-p", str(self.process.pid)], stderr=subprocess.DEVNULL)
            time.sleep(0.5)
            answer = work()
            if trace.poll() is None:
                trace.send_signal(signal.SIGINT)
            trace.wait()
            rows = re.findall(r"(\d+)(?:\s+\d+)?\s+(\w+)$", Path(out.name).read_text(), re.M)
        return answer, sum(int(calls) for calls, name in rows if name in SYNCS)


def partitions_led(connection, partitions):
    _, found = connection.metadata([TOPIC])[TOPIC]
    return sum(error == 0 for error, _ in found.values()) == partitions


def produce_to_each(connection, partitions, batch):
    """One request with a batch for each partition; they must all be taken."""
    parts = [wire.struct.pack(">ii", index, len(batch)) + batch for index in range(partitions)]
    body = wire.string(None) + wire.struct.pack(">hi", -1, 60_000)
    answer = connection.ask(0, 3, body + wire.array([wire.string(TOPIC) + wire.array(parts)]))
    answer.take("i")
    answer.string()
    errors = [error for _, error, _, _ in answer.array(lambda: answer.take("ihqq")) if error]
    if errors:
        raise wire.Refused(f"Produce: {errors[:5]}")


def fill(node, partitions):
    batch = wire.batch_of([b"x" * 100] * 10)
    with node.connect() as connection:
        while not partitions_led(connection, partitions):
            time.sleep(0.01)
        for _ in range(3):
            produce_to_each(connection, partitions, batch)


def timed(work):
    began = time.monotonic()
    work()
    return time.monotonic() - began


def create(node, partitions):
    def ask():
        with node.connect() as connection:
            connection.create_topic(TOPIC, partitions)
            while not partitions_led(connection, partitions):
                time.sleep(0.005)
    return timed(ask)


def delete(node):
    def ask():
        with node.connect() as connection:
            connection.delete_topic(TOPIC)
    return timed(ask)


def folders_gone(node, limit=60):
    """Seconds until no folder of the topic is left; None after the limit (Kafka waits a minute)."""
    began = time.monotonic()
    while time.monotonic() - began < limit:
        if not any(name.startswith(TOPIC + "-") for name in os.listdir(node.folder / "data")):
            return time.monotonic() - began
        time.sleep(0.01)
    return None


def row(node, name, seconds, note=""):
    print(f"{node.name:9} {name:44} {seconds:7.2f} s {note}", flush=True)


def noted(node, name, work, count):
    if not count:
        return row(node, name, work())
    seconds, syncs = node.counted(work)
    row(node, name, seconds, "" if syncs is None else f"  {syncs} flushes (traced)")


def many_partitions(node, partitions, count=False):
    """`count` traces flushes, which slows everything down."""
    label = f"{partitions} partitions"
    row(node, "start on an empty folder", node.start())
    noted(node, f"create {label}", lambda: create(node, partitions), count)
    fill(node, partitions)
    noted(node, f"stop, {label}", lambda: node.end(signal.SIGTERM), count)
    row(node, f"start after a clean stop, {label}", node.start())
    fill(node, partitions)
    node.end(signal.SIGKILL)
    row(node, f"start after kill -9, {label}", node.start())
    fill(node, partitions)
    noted(node, f"delete {label}", lambda: delete(node), count)
    gone = folders_gone(node, 5)
    if gone is not None:
        row(node, "until their folders are gone", gone)
    row(node, "stop, nothing left", node.end(signal.SIGTERM))


def large_log(node, gib):
    """Kill -9 and clean stop with a log of `gib` GiB in one partition."""
    label = f"{gib} GiB"
    node.start()
    batch = wire.batch_of([b"x" * 1000] * (LARGE_BATCH_BYTES // 1010))
    with node.connect() as connection:
        connection.create_topic("large", 1)
        while connection.metadata(["large"])["large"][1].get(0, (1, 0))[0]:
            time.sleep(0.01)

        def write():
            for _ in range(int(gib * (1 << 30)) // len(batch)):
                error, _ = wire.produce(connection, "large", 0, batch)
                if error:
                    sys.exit(f"Produce: {error}")
        seconds = timed(write)
    row(node, f"{label} written, acks=all", seconds)
    node.end(signal.SIGKILL)
    row(node, f"start after kill -9, {label}", node.start())
    row(node, f"stop, {label}", node.end(signal.SIGTERM))
    row(node, f"start after a clean stop, {label}", node.start())
    node.end(signal.SIGTERM)


def run(node, arguments):
    try:
        many_partitions(node, arguments.partitions, arguments.count)
        gib = 2.0 if arguments.gib is None else arguments.gib
        if gib > 0:
            shutil.rmtree(node.folder / "data", ignore_errors=True)
            if node.name == "kafka":
                return
            large_log(node, gib)
    finally:
        if node.process and node.process.poll() is None:
            node.process.kill()
            node.process.wait()


def bench_many(arguments):
    build()
    folder = Path(tempfile.mkdtemp(prefix="coreline-many-"))
    try:
        (folder / "coreline").mkdir()
        words = [str(ROOT / "target/release/coreline")]
        settings = [f"listeners=PLAINTEXT://127.0.0.1:{CORELINE_PORT}", f"log.dirs={folder}/coreline/data"]
        words += [word for setting in settings for word in ("--override", setting)]
        run(Node("coreline", words, folder / "coreline", CORELINE_PORT), arguments)
        if not arguments.alone:
            words = prepare_kafka(folder / "kafka", KAFKA_PORT)
            run(Node("kafka", words, folder / "kafka", KAFKA_PORT), arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
