"""Apache Kafka's own tools against the broker."""

import re
import subprocess
import time

from brokers import kafka_home
from report import check
from wire import Connection, stored_batches

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TOOL_SECONDS_MAX = 180
ARRIVES_SECONDS_MAX = 30
ONE_CORES_IN_CI = True


def tool(name, *arguments, stdin=None):
    """Runs a tool; answers what it printed. A non-zero exit or an exception in it is a failure."""
    words = [str(kafka_home() / f"bin/{name}.sh"), *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, input=stdin,
                          timeout=TOOL_SECONDS_MAX)
    text = done.stdout + done.stderr
    check(done.returncode == 0, f"{name} ended with {done.returncode}: {text[-1500:]}")
    check("Exception" not in text, f"{name} printed an exception: {text[-1500:]}")
    return done.stdout


def perf(broker, topic, acks, codec, size, count):
    printed = tool(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", count, "--record-size", size,
        "--throughput", -1, "--producer-props", f"bootstrap.servers={broker.bootstrap}",
        f"acks={acks}", f"compression.type={codec}", "max.request.size=2097152",
        f"batch.size={max(16_384, 4 * size)}",
        # An idempotent producer insists on acks=all.
        f"enable.idempotence={'true' if acks == 'all' else 'false'}")
    last = printed.strip().splitlines()[-1]
    sent = int(re.match(r"(\d+) records sent", last).group(1))
    check(sent == count, f"{sent} of {count} records sent: {last}")
    return re.search(r"[\d.]+ records/sec", last).group(0)


def perf_cell(broker, acks, codec, size, count):
    topic = f"perf-{acks}-{codec}-{size}"
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(topic, 1)
    rate = perf(broker, topic, acks, codec, size, count)
    # Nobody waits for what is sent with acks=0: some of it may still be on its way.
    until = time.monotonic() + (ARRIVES_SECONDS_MAX if acks == "0" else 0)
    with Connection(broker.bootstrap) as connection:
        while (end := connection.list_offset(topic, 0, -1)) != count and time.monotonic() < until:
            time.sleep(0.1)
    check(end == count, f"the log ends at {end}, sent were {count}")
    found = list(stored_batches(broker.bootstrap, topic, 1))
    check(sum(batch.count for _, batch in found) == count, "the batches hold another number")
    codecs = {batch.codec for _, batch in found}
    check(codecs == {codec}, f"asked for {codec}, stored {codecs}")
    with Connection(broker.bootstrap) as connection:
        connection.delete_topic(topic)
    return rate


def topics_cell(broker):
    at = ("--bootstrap-server", broker.bootstrap)
    tool("kafka-topics", *at, "--create", "--topic", "made", "--partitions", 3,
         "--config", "segment.bytes=2097152")
    listed = tool("kafka-topics", *at, "--list").split()
    check("made" in listed, f"not listed: {listed}")
    described = tool("kafka-topics", *at, "--describe", "--topic", "made")
    check("PartitionCount: 3" in described and "segment.bytes=2097152" in described, described)
    check(described.count("Leader: ") == 3, described)
    offsets = tool("kafka-get-offsets", *at, "--topic", "made").split()
    check(sorted(offsets) == [f"made:{index}:0" for index in range(3)], f"{offsets}")
    tool("kafka-topics", *at, "--delete", "--topic", "made")
    listed = tool("kafka-topics", *at, "--list").split()
    check("made" not in listed, f"still listed: {listed}")


def console_cell(broker):
    at = ("--bootstrap-server", broker.bootstrap)
    lines = [f"line {index}" for index in range(500)]
    tool("kafka-console-producer", *at, "--topic", "console", stdin="\n".join(lines) + "\n")
    printed = tool("kafka-console-consumer", *at, "--topic", "console", "--partition", 0,
                   "--offset", "earliest", "--max-messages", len(lines), "--timeout-ms", 30_000)
    check(printed.splitlines() == lines, "the lines differ")
    offsets = tool("kafka-get-offsets", *at, "--topic", "console").split()
    check(offsets == [f"console:0:{len(lines)}"], f"{offsets}")


def run(report, make_broker, dose, cores):
    """All acks and codecs at 100 B, some at 1 KiB and 64 KiB; topic tools; console tools."""
    with make_broker("tools", {"coreline.cores": cores}) as broker:
        report.cell(f"tools kafka-topics cores={cores}", lambda: topics_cell(broker))
        report.cell(f"tools console cores={cores}", lambda: console_cell(broker))
        whole = dose == "accept"
        for acks in ("0", "1", "all"):
            for codec in CODECS:
                count = 300_000 if whole else 30_000
                report.cell(f"tools perf acks={acks} {codec} 100 B cores={cores}",
                            lambda: perf_cell(broker, acks, codec, 100, count))
        some = [(acks, codec) for acks in ("0", "1", "all") for codec in CODECS]
        for size, count, once in ((1024, 20_000, ("all", "lz4")), (65_536, 500, ("1", "none"))):
            for acks, codec in some if whole else [once]:
                report.cell(f"tools perf acks={acks} {codec} {size} B cores={cores}",
                            lambda: perf_cell(broker, acks, codec, size, count))
