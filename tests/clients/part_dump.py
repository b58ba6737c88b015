"""Apache's DumpLogSegments reads a cleanly closed data folder without one complaint."""

import re
import subprocess

from brokers import kafka_home
from part_roundtrip import run_tasks, Sending
from part_tools import perf
from report import check
from wire import Connection
import records

# What the tool prints when something is wrong with a file.
COMPLAINTS = re.compile(
    r"Exception|isvalid: false|mismatch|Mismatch|Found timestamp mismatch|out of order|"
    r"Non-consecutive|corrupt|invalid|Could not|failed|dangling", re.IGNORECASE)


def dump(files, *flags, has_holes=False, empty_times=()):
    """`has_holes`: of a compacted log. `empty_times`: timestamps of batches whose records have gone. Kafka
    keeps those with such a batch and names them in its time index; its tool finds no record of that time."""
    words = [str(kafka_home() / "bin/kafka-dump-log.sh"), *flags, "--files",
             ",".join(str(file) for file in files)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    # The tool takes the first record of a segment for the successor of offset -1.
    text = re.sub(r"Non-consecutive offsets in .*\n  -1 is followed by \d+\n(?!  )", "",
                  done.stdout + done.stderr)
    of_empty = "|".join(map(str, empty_times)) or "none"
    text = re.sub(rf"Found timestamp mismatch in :.*\n(  Index timestamp: ({of_empty}), log timestamp: -1\n)+"
                  r"(?!  )", "", text)
    if has_holes:
        text = re.sub(r"Non-consecutive offsets in .*\n(  -?\d+ is followed by \d+\n)+", "", text)
    check(done.returncode == 0, f"kafka-dump-log ended with {done.returncode}: {text[-1500:]}")
    for line in text.splitlines():
        # `isvalid: true` and the word in a record's own text are no complaints.
        found = COMPLAINTS.search(line.split(" payload: ")[0].replace("isvalid: true", ""))
        check(not found, f"kafka-dump-log {' '.join(flags)}: {line[:500]}")
    return text


def fill(broker):
    """Several segments in several codecs: small ones, so that indexes and rolls are there."""
    folder = broker.folder
    sent = {"mixed": records.mixed()}
    files = {"mixed": folder / "mixed.jsonl"}
    records.save(sent["mixed"], files["mixed"])
    plan = [Sending("java", codec, True, "mixed") for codec in ("none", "lz4", "zstd")]
    with Connection(broker.bootstrap) as connection:
        for one in plan:
            connection.create_topic(one.topic, records.PARTITIONS, {
                "segment.bytes": 1_048_576, "index.interval.bytes": 100})
        connection.create_topic("rolled", 1, {"segment.bytes": 1_048_576})
    perf(broker, "rolled", "all", "none", 100, 50_000)
    for _ in range(2):
        for answer in run_tasks("java", broker, [one.task(files) for one in plan], folder):
            check("error" not in answer, f"{answer}")


def run(report, make_broker, _dose, cores):
    settings = {"coreline.cores": cores, "log.retention.ms": -1}
    broker = make_broker("dump", settings)
    with broker:
        fill(broker)
        code, seconds = broker.stop()
        report.cell(f"dump clean stop cores={cores}",
                    lambda: check(code in (0, 143), f"exit code {code}") or f"{seconds:.2f} s")

    def cell_of(pattern, *flags):
        def cell():
            files = sorted(broker.data.glob(pattern))
            if broker.name == "kafka" and "timeindex" in pattern:
                # Apache Kafka leaves its metadata log's time index at its preallocated size.
                files = [file for file in files if "__cluster_metadata" not in str(file)]
            check(files, f"no {pattern} in {broker.data}")
            dump(files, *flags)
            return f"{len(files)} files"
        report.cell(f"dump {pattern} {' '.join(flags)} cores={cores}", cell)

    cell_of("*-[0-9]*/*.log", "--deep-iteration")
    cell_of("*-[0-9]*/*.index", "--index-sanity-check")
    cell_of("*-[0-9]*/*.timeindex", "--index-sanity-check")
    cell_of("*-[0-9]*/*.index", "--verify-index-only")
    cell_of("*-[0-9]*/*.timeindex", "--verify-index-only")
    cell_of("__cluster_metadata-0/*.log", "--cluster-metadata-decoder")

    def several_segments():
        logs = list(broker.data.glob("rolled-0/*.log"))
        check(len(logs) > 3, f"only {len(logs)} segment: nothing rolled")
        return f"{len(logs)} segments"
    report.cell(f"dump rolls cores={cores}", several_segments)
