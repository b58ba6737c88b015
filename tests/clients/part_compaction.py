"""Compaction beside Apache Kafka's: the same batches to both under the same settings; once both have
cleaned, the same records are left at the same offsets, in the same batches. Apache's dump tool reads
what is left, `coreline log verify` finds what is damaged in it; and Apache's LogCompactionTester."""

import gzip
import json
import random
import re
import struct
import subprocess
import time

from brokers import Coreline, Kafka
from part_dump import dump
from part_roundtrip import run_tasks
from part_tools import tool
from report import check
from wire import Batch, Connection, Refused, array, batches, crc32c, produce, string, varint

EACH_CORES = False
# Kafka cleans in seconds; a loaded machine takes longer.
CLEANED_SECONDS_MAX = 90
GZIP, HORIZON = 1, 0x40
NOW = int(time.time() * 1000)
KEYS = 50
SETTINGS = {
    "log.cleaner.backoff.ms": 100, "log.segment.delete.delay.ms": 500, "log.cleaner.min.cleanable.ratio": 1,
    "log.initial.task.delay.ms": 0, "log.retention.check.interval.ms": 300,
}
# Name, codec, producers, settings.
TOPICS = [
    ("plain", 0, False, {}),
    ("gzip", GZIP, False, {}),
    ("soon", 0, False, {"delete.retention.ms": 0}),
    ("sequences", 0, True, {"delete.retention.ms": 0}),
    ("young", 0, False, {"min.compaction.lag.ms": 3_600_000, "max.compaction.lag.ms": 7_200_000}),
]
INCREMENTAL_ALTER_CONFIGS, TOPIC, SET = 44, 2, 0
NO_TIMESTAMP, NO_PRODUCER = -1, -1


def alter(connection, topic, name, value):
    config = string(name) + struct.pack(">b", SET) + string(str(value))
    body = array([struct.pack(">b", TOPIC) + string(topic) + array([config])]) + b"\0"
    answer = connection.ask(INCREMENTAL_ALTER_CONFIGS, 0, body)
    answer.take("i")
    for error, text, _, _ in answer.array(
            lambda: (answer.take("h"), answer.string(), answer.take("b"), answer.string())):
        if error:
            raise Refused(f"{name} of {topic}: {error} {text}")


def keyed(rows, codec, timestamp, producer=(-1, -1, -1)):
    """A batch of (key, value) rows; a value of None is a tombstone."""
    out = b""
    for index, (key, value) in enumerate(rows):
        body = b"\0" + varint(index) + varint(index) + varint(len(key)) + key
        body += varint(-1 if value is None else len(value)) + (value or b"") + varint(0)
        out += varint(len(body)) + body
    if codec == GZIP:
        out = gzip.compress(out, mtime=0)
    last = len(rows) - 1
    tail = struct.pack(">hiqqqhii", codec, last, timestamp, timestamp + last, *producer, len(rows)) + out
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc32c(tail)) + tail


def take_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def rows_of(batch, data):
    """(offset, key, value, timestamp) of a stored batch."""
    data = gzip.decompress(data) if batch.attributes & 7 == GZIP else data
    rows, at = [], 0
    for _ in range(batch.count):
        _, at = take_varint(data, at)
        at += 1
        since, at = take_varint(data, at)
        delta, at = take_varint(data, at)
        fields = []
        for _ in range(2):
            length, at = take_varint(data, at)
            fields.append(None if length < 0 else data[at:at + length])
            at += max(0, length)
        headers, at = take_varint(data, at)
        check(headers == 0, f"{headers} headers")
        rows.append((batch.base_offset + delta, *fields, since))
    return rows


def stored(connection, topic):
    """Every batch that is left, with its rows."""
    offset, end = 0, connection.list_offset(topic, 0, -1)
    found = []
    while offset < end:
        data = connection.fetch(topic, 0, offset)
        at = 0
        for batch in batches(data):
            found.append((batch, rows_of(batch, data[at + 61:at + batch.size])))
            at += batch.size
        if not at:
            break
        offset = found[-1][0].base_offset + found[-1][0].last_delta + 1
    return found


def fill(connection, name, codec, has_producers, seed):
    """The same for each broker, byte by byte but for the producers' ids."""
    draw = random.Random(f"{name}-{seed}")
    ids = [connection.init_producer() for _ in range(6)] if has_producers else []
    next_sequence = [0] * len(ids)
    for number in range(160):
        rows = []
        for _ in range(draw.randint(1, 6)):
            key = b"key-%d" % draw.randrange(KEYS)
            value = None if draw.random() < 0.2 else bytes([draw.randrange(256)]) * draw.randrange(120)
            rows.append((key, value))
        producer = (-1, -1, -1)
        if ids:
            # The first ones fall silent: all of theirs goes in the end.
            which = draw.randrange(min(len(ids), 1 + number // 20))
            which = len(ids) - 1 - which if number > 80 else which
            producer = (*ids[which], next_sequence[which])
            next_sequence[which] += len(rows)
        batch = keyed(rows, codec, NOW - 3_000_000 + seed * 500_000 + number * 1_000, producer)
        error, _ = produce(connection, name, 0, batch)
        check(error == 0, f"a batch of {name} was refused: {error}")


def cleaned_to(broker, topic):
    """What the checkpoint says, and where the active segment begins."""
    try:
        text = (broker.data / "cleaner-offset-checkpoint").read_text()
        bases = [int(file.stem) for file in (broker.data / f"{topic}-0").glob("*.log")]
    except OSError:
        return None, None
    found = re.search(rf"^{topic} 0 (\d+)$", text, re.M)
    return int(found.group(1)) if found else None, max(bases, default=None)


def wait_until_clean(brokers, topic):
    began, where = time.monotonic(), []
    while time.monotonic() - began < CLEANED_SECONDS_MAX:
        where = [cleaned_to(broker, topic) for broker in brokers]
        if all(to is not None and to == base and to > 0 for to, base in where):
            return
        time.sleep(0.1)
    check(False, f"{topic} is not cleaned: (checkpoint, active segment) {where}")


def header(batch):
    """What both must have alike: not the leader's epoch, the producer's id, the length of what was
    compressed anew and the horizon's time."""
    times = (bool(batch.attributes & HORIZON), batch.max_timestamp)
    return (batch.base_offset, batch.last_delta, batch.attributes, times, batch.producer_epoch,
            batch.base_sequence, batch.count)


def compare(kafka, own):
    """Records, then batches. Ours keeps the offsets of the last batch of each segment. Answers what there is
    of each, and the timestamps of batches without records that both have."""
    records = [[row for _, rows in side for row in rows] for side in (kafka, own)]
    offsets = [[row[0] for row in rows] for rows in records]
    check(offsets[0] == offsets[1], f"offsets differ: {sorted(set(offsets[0]) ^ set(offsets[1]))[:20]}")

    def absolute(side):
        first = lambda batch: 0 if batch.attributes & HORIZON else batch.first_timestamp
        return [(row[:3], None if batch.attributes & HORIZON else first(batch) + row[3])
                for batch, rows in side for row in rows]
    check(absolute(kafka) == absolute(own), "records differ")
    ends = {batch.base_offset for batch, _ in kafka}
    extra = [batch for batch, _ in own if batch.base_offset not in ends]
    for batch in extra:
        said = (batch.count, batch.max_timestamp, batch.producer_id, batch.attributes)
        check(said == (0, NO_TIMESTAMP, NO_PRODUCER, 0), f"{batch.base_offset} is ours alone: {said}")
    kept = [batch for batch, _ in own if batch.base_offset in ends]
    for left, right in zip([batch for batch, _ in kafka], kept, strict=True):
        check(header(left) == header(right), f"batch {left.base_offset}: {header(left)}, {header(right)}")
        if left.attributes & HORIZON:
            apart = abs(left.first_timestamp - right.first_timestamp)
            check(apart < 2 * CLEANED_SECONDS_MAX * 1_000, f"horizons {apart} ms apart")
    flagged = sum(bool(batch.attributes & HORIZON) for batch in kept)
    empty = {batch.max_timestamp for batch in kept if batch.count == 0}
    return (f"{len(records[0])} records in {len(kept)} batches, {flagged} with a horizon, {len(empty)} empty in "
            f"both, {len(extra)} in ours alone"), empty


def beside_kafka(report, make_broker, cores):
    own = make_broker("compaction", {**SETTINGS, "coreline.cores": cores})
    kafka = Kafka(own.folder / "kafka", own.port + 2, SETTINGS)
    brokers, empty_times = (kafka, own), {}
    with kafka, own:
        connections = [Connection(broker.bootstrap) for broker in brokers]
        for connection in connections:
            for name, _, _, more in TOPICS:
                connection.create_topic(name, 1, {
                    "cleanup.policy": "compact", "internal.segment.bytes": 6_000, **more})
        for pass_number in (1, 2, 3):
            for connection in connections:
                for name, codec, has_producers, _ in TOPICS:
                    fill(connection, name, codec, has_producers and pass_number == 1, pass_number)
                    # Segments are finished a moment after they were rolled: one pass takes them all.
                time.sleep(1.5)
                for name, _, _, _ in TOPICS:
                    alter(connection, name, "min.cleanable.dirty.ratio", 0)
            for name, _, _, _ in TOPICS:
                def same(name=name):
                    if name == "young":
                        time.sleep(1)
                    else:
                        wait_until_clean(brokers, name)
                    text, empty_times[name] = compare(*(stored(connection, name) for connection in connections))
                    return text
                report.cell(f"compaction of {name}, pass {pass_number}", same)
            for connection in connections:
                for name, _, _, _ in TOPICS:
                    alter(connection, name, "min.cleanable.dirty.ratio", 1)
        for connection in connections:
            connection.close()
        report.cell("compaction: Apache's consumer reads both alike", lambda: consumed(brokers))
        for broker in brokers:
            broker.stop()
    report.cell("compaction: DumpLogSegments", lambda: dumped(own, set().union(*empty_times.values())))
    report.cell("compaction: verify of whole logs", lambda: verified(own, 0) and "whole")
    report.cell("compaction: verify of damaged logs", lambda: damaged(own))


def consumed(brokers):
    read = []
    for broker in brokers:
        out = [broker.folder / f"{name}.read" for name, *_ in TOPICS]
        tasks = [{"do": "consume", "topic": name, "partitions": 1, "output": str(file)}
                 for (name, *_), file in zip(TOPICS, out)]
        for answer in run_tasks("java", broker, tasks, broker.folder):
            check("error" not in answer, f"{broker.name}: {answer}")
        read.append([[{**json.loads(line), "t": 0} for line in file.read_text().splitlines()]
                     for file in out])
    check(read[0] == read[1], "what is read differs")
    check(all(read[0]), "nothing was read")
    return f"{sum(map(len, read[0]))} records"


def dumped(broker, empty_times):
    """Offsets that are gone are no complaint: the tool has no word for compaction. Neither are times of
    batches without records that Kafka has too."""
    for pattern, flags in (("*.log", ["--deep-iteration"]), ("*.index", ["--index-sanity-check"]),
                           ("*.index", ["--verify-index-only"]), ("*.timeindex", ["--index-sanity-check"]),
                           ("*.timeindex", ["--verify-index-only"])):
        files = sorted(file for name, *_ in TOPICS for file in broker.data.glob(f"{name}-0/{pattern}"))
        check(files, f"no {pattern}")
        text = dump(files, *flags, has_holes=True, empty_times=empty_times)
        if flags == ["--deep-iteration"]:
            check("deleteHorizonMs: OptionalLong[" in text, "no horizon is shown")
    left = [file for file in broker.data.glob("*-0/0*") if file.suffix in (".cleaned", ".swap", ".deleted")]
    check(not left, f"left: {left}")
    return f"{len(files)} segments"


def verified(broker, code):
    words = [str(Coreline.binary), "log", "verify", str(broker.data)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    check(done.returncode == code, f"exit code {done.returncode}: {text[-1000:]}")
    return text


def damaged(broker):
    """One bit at a time, in batches whole, rewritten and empty."""
    draw, count = random.Random(1), 0
    segments = sorted(file for name, *_ in TOPICS for file in broker.data.glob(f"{name}-0/*.log"))
    for file in draw.sample([file for file in segments if file.stat().st_size], 12):
        whole = file.read_bytes()
        at = draw.randrange(len(whole))
        while at in range(12, 16):
            # The leader's epoch is covered by no checksum; a newer one cannot be told.
            at = draw.randrange(len(whole))
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1:])
        words = [str(Coreline.binary), "log", "verify", str(broker.data)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        file.write_bytes(whole)
        check(done.returncode != 0 and file.name in done.stdout + done.stderr,
              f"byte {at} of {file}: exit code {done.returncode}: {done.stdout[-500:]}")
        count += 1
    return f"{count} of {count} found"


def torture(report, make_broker, cores):
    """Apache's LogCompactionTester: messages of few keys, a part of them deletes, sent while the broker
    cleans; of each key the last one sent is the last one that a group reads."""
    messages, topics = 100_000, 2
    broker = make_broker("torture", {
        "coreline.cores": cores, "log.cleaner.backoff.ms": 50, "log.cleaner.min.cleanable.ratio": 0.01,
        # By time too: what is compressed does not fill a segment.
        "log.segment.bytes": 1_048_576, "log.roll.ms": 200, "log.cleaner.delete.retention.ms": 100,
        "log.segment.delete.delay.ms": 100})

    def cell(codec):
        text = tool("log-compaction-tester", "--bootstrap-server", broker.bootstrap, "--messages", messages,
                    "--topics", topics, "--duplicates", 5, "--percent-deletes", 10,
                    "--compression-type", codec, "--sleep", 5)
        rows = re.search(r"(\d+) rows of data produced, (\d+) rows of data consumed", text)
        values = re.search(r"Validated (\d+) values, 0 mismatches", text)
        check(rows and values and "Data verification is completed" in text, text[-500:])
        produced, consumed, valid = (int(found) for found in (*rows.groups(), values.group(1)))
        check(produced == messages * topics, f"{produced} rows produced")
        check(consumed < produced * 0.9, f"{consumed} of {produced} rows are left: hardly cleaned")
        return f"{valid} values validated, {100 * (1 - consumed / produced):.1f} % reduction"

    with broker:
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            report.cell(f"compaction: LogCompactionTester, {codec}", lambda codec=codec: cell(codec))
        broker.stop()
    report.cell("compaction: verify after LogCompactionTester", lambda: verified(broker, 0) and "whole")


def run(report, make_broker, dose, cores):
    # A minute, most of it Kafka's: the small dose is in the tests of the code.
    if dose == "accept":
        beside_kafka(report, make_broker, cores)
        torture(report, make_broker, cores)
