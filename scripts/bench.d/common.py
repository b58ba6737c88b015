"""What all parts of scripts/bench share: builds, brokers, the load generator, verdicts."""

import os
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CLIENT_CPU, BROKER_CPU = "1", "0"
CORELINE_PORT = int(os.environ.get("CORELINE_BENCH_PORT", "21990"))
KAFKA_PORT = CORELINE_PORT + 1
# A full tail cache is a broker's steady state: the warm-up fills this one, and from then on no
# buffer is memory that the kernel has yet to find and clear.
STEADY_CACHE = f"coreline.cache.bytes={256 << 20}"
BUILD_SECONDS_MAX = 3600
RUN_SECONDS_MAX = 600


def run(words, seconds=RUN_SECONDS_MAX, **options):
    """What a program prints; it may take so many seconds."""
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, cwd=ROOT, timeout=seconds,
                          **options).stdout


def build(*benches):
    """Builds the broker and the named bench programs; answers the programs' paths."""
    run(["cargo", "build", "--release", "--quiet"], BUILD_SECONDS_MAX)
    found = {}
    for bench in benches:
        out = run(["cargo", "bench", "--no-run", "--bench", bench], BUILD_SECONDS_MAX, stderr=subprocess.STDOUT)
        found[bench] = ROOT / re.search(r"\((target/[^)]+)\)", out).group(1)
    return found


def figures(text):
    """`name=value` words as numbers where they are numbers."""
    out = {}
    for name, value in re.findall(r"(\w+)=(\S+)", text):
        try:
            out[name] = float(value)
        except ValueError:
            out[name] = value
    return out


def wait_for_port(port, process):
    for _ in range(600):
        if process.poll() is not None:
            sys.exit(f"the broker on port {port} ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"nothing listens on port {port} after 60 s")


class Broker:
    """One broker process pinned to the broker's CPU, its data in a folder of its own."""

    def __init__(self, name, port, words, folder, cpus=BROKER_CPU):
        self.name, self.port, self.folder = name, port, folder
        log = open(folder / "log", "w")
        words = ["taskset", "-c", cpus] + words
        self.process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
        self.pid = self.process.pid
        wait_for_port(port, self.process)

    def stop(self):
        """Answers what the broker said; at its end it prints its counters."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return (self.folder / "log").read_text()


def start_coreline(folder, port=CORELINE_PORT, *overrides, program=ROOT / "target/release/coreline",
                   cores=1, cpus=BROKER_CPU):
    folder.mkdir(parents=True, exist_ok=True)
    words = [str(program)]
    settings = [f"listeners=PLAINTEXT://127.0.0.1:{port}", f"log.dirs={folder}/data", f"coreline.cores={cores}",
                "coreline.admin.listener="]
    for setting in settings + list(overrides):
        words += ["--override", setting]
    return Broker("coreline", port, words, folder, cpus)


@contextmanager
def coreline(*overrides, cores=1, cpus=BROKER_CPU):
    """A broker in a folder that goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="coreline-bench-"))
    broker = None
    try:
        broker = start_coreline(folder, CORELINE_PORT, *overrides, cores=cores, cpus=cpus)
        yield broker
    finally:
        if broker is not None:
            broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def load(program, broker, mode, raw=False, **options):
    words = ["taskset", "-c", CLIENT_CPU, str(program), mode, "--bootstrap", f"127.0.0.1:{broker.port}",
             "--broker-pid", str(broker.pid)]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    told = run(words)
    return told if raw else figures(told)


def text(word):
    """A string of the protocol; None is one that is null."""
    return struct.pack(">h", -1) if word is None else struct.pack(">h", len(word)) + word.encode()


def ask(broker, key, version, body):
    """What the broker answers to a request of an inflexible version, from its correlation id on."""
    request = struct.pack(">hhi", key, version, 1) + text("bench") + body
    with socket.create_connection(("127.0.0.1", broker.port), timeout=60) as client:
        client.sendall(struct.pack(">i", len(request)) + request)
        with client.makefile("rb") as answers:
            return answers.read(struct.unpack(">i", answers.read(4))[0])


def delete_topic(broker, topic):
    """DeleteTopics 1, so that a long run of saturated producers does not fill the disk."""
    answer = ask(broker, 20, 1, struct.pack(">i", 1) + text(topic) + struct.pack(">i", 30_000))
    code = struct.unpack(">h", answer[-2:])[0]
    if code != 0:
        sys.exit(f"deleting {topic} on port {broker.port} gave error {code}")


def spread(values):
    return f"{statistics.median(values):10.2f} ({min(values):.2f} to {max(values):.2f})"


def tell_paced(without, beside, what):
    """A paced load's latencies without and beside something, pair by pair, and the gate of both."""
    for name in ("p50_us", "p99_us", "p999_us", "max_us"):
        if name in without[0]:
            columns = [spread([one[name] / 1e3 for one in runs]) for runs in (without, beside)]
            print(f"    {name[:-3]:5} without {columns[0]}   beside {what} {columns[1]}", flush=True)
    ratios = [one["p99_us"] / other["p99_us"] for one, other in zip(beside, without)]
    gate(f"p99 beside {what} ÷ without", statistics.median(ratios), 2.0)


def gate(name, value, target):
    verdict = "ok" if round(value, 2) <= target else "MISSED"
    print(f"{name:58} {value:8.3f}   target ≤{target:<5} {verdict}", flush=True)
