"""Side by side, in turn: Apache Kafka and Coreline, io_uring's executor and glommio's."""

import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from common import (CORELINE_PORT, KAFKA_PORT, ROOT, STEADY_CACHE, Broker, build, delete_topic, figures, load, run, spread,
                    start_coreline)

PRODUCER_PACE_US = 360
RIVAL_WARMUP_SECONDS = 30
# The files of a deleted topic go at once in both brokers, then the next one is measured.
DELETED_SOON = "log.segment.delete.delay.ms=100"
DELETED_SECONDS = 1.5


def kafka_home():
    return os.environ.get("KAFKA_HOME") or run([str(ROOT / "scripts/kafka"), "home"]).strip()


def prepare_kafka(folder, port, *overrides):
    """Formats a folder for Apache Kafka; answers the words that start it there."""
    folder.mkdir(parents=True, exist_ok=True)
    home = kafka_home()
    settings = [
        "process.roles=broker,controller", "node.id=1",
        f"controller.quorum.voters=1@127.0.0.1:{port + 1000}",
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1000}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names=CONTROLLER",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        f"log.dirs={folder}/data", "offsets.topic.replication.factor=1",
    ] + list(overrides)
    (folder / "server.properties").write_text("\n".join(settings) + "\n")
    tool = f"{home}/bin"
    cluster = run([f"{tool}/kafka-storage.sh", "random-uuid"]).strip()
    run([f"{tool}/kafka-storage.sh", "format", "-t", cluster, "-c", str(folder / "server.properties")],
        stderr=subprocess.STDOUT)
    return ["env", "KAFKA_HEAP_OPTS=-Xms1g -Xmx1g", "KAFKA_OPTS=-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20",
            f"{tool}/kafka-run-class.sh", "kafka.Kafka", str(folder / "server.properties")]


def start_kafka(folder, port=KAFKA_PORT, *overrides):
    return Broker("kafka", port, prepare_kafka(folder, port, *overrides), folder)


WORKLOADS = [
    (record, acks, partitions)
    for record in (100, 1024) for acks in (1, -1) for partitions in (1, 100)
]


def bench_paired(arguments):
    """Records per broker CPU-second, ours over Kafka's, at two paces."""
    program = build("load")["load"]
    folder = Path(tempfile.mkdtemp(prefix="coreline-bench-"))
    brokers = []
    try:
        ours = start_coreline(folder / "coreline", CORELINE_PORT, STEADY_CACHE, DELETED_SOON)
        brokers.append(ours)
        durable = ["log.flush.interval.messages=1"] if arguments.flushed else []
        rival = start_kafka(folder / "kafka", KAFKA_PORT, DELETED_SOON, *durable)
        brokers.append(rival)
        print(f"Coreline durable; Kafka {'flushing every batch' if durable else 'not flushing'}; "
              f"records per broker CPU-second, median (min to max) of {arguments.pairs} pairs")
        # The rival's compiler needs tens of seconds of load; ours gets the same.
        for broker in brokers:
            load(program, broker, "produce", topic="warm-up", partitions=4, seconds=1,
                 warmup_seconds=arguments.rival_warmup)
            delete_topic(broker, "warm-up")
        for pace in ("saturated", "paced"):
            for record, acks, partitions in WORKLOADS:
                if arguments.acks not in (None, acks):
                    continue
                paired_row(program, (ours, rival), arguments, (pace, record, acks, partitions))
    finally:
        for broker in brokers:
            broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def paired_row(program, brokers, arguments, row):
    pace, record, acks, partitions = row
    options = {
        "topic": f"t-{record}-{acks}-{partitions}", "record_bytes": record, "acks": acks,
        "partitions": partitions, "seconds": arguments.seconds, "warmup_seconds": 1,
    }
    if pace == "paced":
        options |= {"connections": 1, "interval_us": PRODUCER_PACE_US}
    else:
        options |= {"connections": 4, "depth": 5}
    ratios, figures_of, tails = [], {broker.name: [] for broker in brokers}, {b.name: [] for b in brokers}
    for _ in range(arguments.pairs):
        pair = {}
        for broker in brokers:
            seen = load(program, broker, "produce", **options)
            delete_topic(broker, options["topic"])
            time.sleep(DELETED_SECONDS)
            pair[broker.name] = seen["records_per_broker_cpu_s"]
            figures_of[broker.name].append(seen["records_per_broker_cpu_s"])
            tails[broker.name].append(seen["p999_us"])
        ratios.append(pair["coreline"] / pair["kafka"])
    medians = {name: statistics.median(values) for name, values in figures_of.items()}
    tail = {name: statistics.median(values) for name, values in tails.items()}
    print(f"{pace:9} {record:5} B acks={acks:2} partitions={partitions:3} "
          f"coreline {medians['coreline']:12,.0f} kafka {medians['kafka']:12,.0f} ratio {spread(ratios)} "
          f"p99.9 {tail['coreline']:.0f} µs / {tail['kafka']:.0f} µs", flush=True)


def build_backend(name, features):
    """Builds the broker and the wake bench with one backend; answers copies of both."""
    out = ROOT / "target/backends" / name
    out.mkdir(parents=True, exist_ok=True)
    run(["cargo", "build", "--release", "--quiet", *features])
    told = run(["cargo", "bench", "--no-run", "--bench", "wake", *features], stderr=subprocess.STDOUT)
    wake = ROOT / re.search(r"\((target/[^)]+)\)", told).group(1)
    copies = {"broker": out / "coreline", "wake": out / "wake"}
    shutil.copy2(ROOT / "target/release/coreline", copies["broker"])
    shutil.copy2(wake, copies["wake"])
    return copies


BACKEND_LOADS = {
    f"paced, {PRODUCER_PACE_US} µs": {"connections": 1, "interval_us": PRODUCER_PACE_US},
    "saturated, 8 connections of 5": {"connections": 8, "depth": 5},
}


def bench_backends(arguments):
    """Broker CPU a produce request and the cost of a wake, ours and glommio's, A B A B."""
    # The default one last: it stays in target/release.
    programs = {"glommio": build_backend("glommio", ["--features", "glommio"])}
    programs["io_uring"] = build_backend("io_uring", [])
    generator = build("load")["load"]
    wake_costs(programs, arguments)
    folder = Path(tempfile.mkdtemp(prefix="coreline-bench-"))
    brokers = []
    try:
        for number, (name, program) in enumerate(programs.items()):
            broker = start_coreline(folder / name, CORELINE_PORT + number, program=program["broker"])
            broker.name = name
            brokers.append(broker)
        for row, options in BACKEND_LOADS.items():
            backend_row(generator, brokers, arguments, (row, options))
    finally:
        for broker in brokers:
            broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def print_backends(title, seen):
    ratios = [ours / other for ours, other in zip(seen["io_uring"], seen["glommio"])]
    medians = {name: statistics.median(values) for name, values in seen.items()}
    print(f"{title:44} io_uring {medians['io_uring']:8.1f} glommio {medians['glommio']:8.1f} "
          f"ratio {spread(ratios)}", flush=True)


def wake_costs(programs, arguments):
    for pause, messages in ((1_000, 2_000), (20_000, 200)):
        seen = {name: [] for name in programs}
        for _ in range(arguments.pairs):
            for name, program in programs.items():
                words = [str(program["wake"]), "--pause-us", str(pause), "--messages", str(messages)]
                seen[name].append(figures(run(words))["wake_cpu_us"])
        print_backends(f"wake after {pause // 1000} ms idle, CPU µs", seen)


def backend_row(generator, brokers, arguments, row):
    title, options = row
    cpu, p99, rate = ({broker.name: [] for broker in brokers} for _ in range(3))
    for _ in range(arguments.pairs):
        for broker in brokers:
            seen = load(generator, broker, "produce", topic=title.split(",")[0], record_bytes=100,
                        seconds=arguments.seconds, warmup_seconds=1, **options)
            cpu[broker.name].append(seen["broker_cpu_us_per_request"])
            p99[broker.name].append(seen["p99_us"])
            rate[broker.name].append(seen["requests"] / arguments.seconds)
    print_backends(f"{title}: CPU µs a request", cpu)
    print_backends(f"{title}: p99 µs", p99)
    print_backends(f"{title}: requests/s", rate)
