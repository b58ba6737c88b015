"""What nobody should send: closed or refused with Kafka's code, without growth, without a flood of
log lines."""

import os
import socket
import struct
import time

from report import check
from wire import Connection, Refused, batch_of, produce, produce_body, string

EACH_CORES = False
CLOSE_SECONDS_MAX = 15
MIB = 1 << 20
# Resident memory may grow by this much for reasons of its own (allocator, first use of code).
RSS_SLACK_BYTES = 16 * MIB

OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, UNKNOWN_TOPIC = 1, 2, 3
MESSAGE_TOO_LARGE, INVALID_TOPIC, INVALID_ACKS, INVALID_PARTITIONS = 10, 17, 21, 37
INVALID_RECORD = 87


def rss(broker):
    with open(f"/proc/{broker.process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def head(key, version, size):
    return struct.pack(">i", size) + struct.pack(">hhi", key, version, 1) + string("bad")


FRAMES = {
    "a frame of 200 MiB": struct.pack(">i", 200 * MIB) + b"\0" * 100,
    "a negative frame": struct.pack(">i", -1) + b"\0" * 100,
    "an unknown key": head(999, 0, 100) + b"\0" * 200,
    "a version below the lowest": head(1, 0, 100) + b"\0" * 200,
    "a version above the highest": head(3, 99, 100) + b"\0" * 200,
    "a body cut short": head(3, 1, 13) + b"\0" * 0,
    "a body of a billion elements": head(3, 1, 17) + struct.pack(">i", 1 << 30),
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("16030100c8010000c40303") + bytes(range(256))[:200],
    "random bytes": bytes((index * 7919 + 13) & 0xFF for index in range(4096)),
}


def must_close(broker, data):
    with socket.create_connection(("127.0.0.1", broker.port), CLOSE_SECONDS_MAX) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass
        except TimeoutError:
            check(False, "the connection stays open")
        except OSError:
            pass  # closed with our bytes unread, or before the last of them left


def closed_cell(broker, data):
    must_close(broker, data)
    with Connection(broker.bootstrap) as connection:
        check(connection.api_versions(), "the broker no longer answers")


def memory_cell(broker):
    """Frames announced and not sent hold no memory."""
    before = rss(broker)
    connections = []
    try:
        for _ in range(100):
            connection = socket.create_connection(("127.0.0.1", broker.port), 5)
            connection.sendall(head(0, 3, 90 * MIB) + b"\0" * 1000)
            connections.append(connection)
        time.sleep(1)
        grown = rss(broker) - before
        check(grown < 100 * MIB + RSS_SLACK_BYTES, f"{grown >> 20} MiB for 100 announced frames")
        with Connection(broker.bootstrap) as connection:
            check(connection.api_versions(), "the broker no longer answers")
        return f"+{grown / MIB:.1f} MiB"
    finally:
        for connection in connections:
            connection.close()


def flood_cell(broker):
    """Two thousand bad connections: few lines, each naming the peer."""
    before = broker.log.read_text(errors="replace").count("\n")
    for _ in range(2000):
        with socket.create_connection(("127.0.0.1", broker.port), 5) as connection:
            connection.sendall(FRAMES["an unknown key"])
    time.sleep(0.5)
    lines = broker.log.read_text(errors="replace").splitlines()[before:]
    check(1 <= len(lines) <= 200, f"{len(lines)} lines for 2000 connections")
    check("127.0.0.1:" in lines[0], f"no peer in: {lines[0]}")
    return f"{len(lines)} lines"


def code_cells(report, broker):
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("input", 1, {"max.message.bytes": 10_000})
    good = batch_of([b"x"])

    def expect(name, error, topic="input", partition=0, batch=good, acks=-1):
        def cell():
            with Connection(broker.bootstrap) as connection:
                found, _ = produce(connection, topic, partition, batch, acks)
                check(found == error, f"code {found} instead of {error}")
        report.cell(f"input {name}", cell)

    expect("a good batch", 0)
    expect("a wrong checksum", CORRUPT_MESSAGE, batch=batch_of([b"x"], crc=1))
    expect("a batch too large", MESSAGE_TOO_LARGE, batch=batch_of([b"x" * 10_000]))
    expect("magic 1", INVALID_RECORD, batch=batch_of([b"x"], magic=1))
    expect("a base offset", INVALID_RECORD, batch=batch_of([b"x"], base_offset=5))
    expect("a wrong count", INVALID_RECORD, batch=batch_of([b"x", b"y"], count=3))
    expect("two batches", INVALID_RECORD, batch=good + good)
    expect("no batch", INVALID_RECORD, batch=b"")
    expect("an unknown partition", UNKNOWN_TOPIC, partition=7)
    expect("acks of 2", INVALID_ACKS, acks=2)

    def create(name, error, *arguments):
        def cell():
            try:
                with Connection(broker.bootstrap) as connection:
                    connection.create_topic(*arguments)
            except Refused as refusal:
                check(f": {error} " in str(refusal), str(refusal))
                return
            check(False, "it was created")
        report.cell(f"input {name}", cell)

    create("a topic name with a slash", INVALID_TOPIC, "a/b", 1)
    create("the topic name ..", INVALID_TOPIC, "..", 1)
    create("a topic name of 250 letters", INVALID_TOPIC, "x" * 250, 1)
    create("no partitions", INVALID_PARTITIONS, "none", 0)
    create("an unknown topic setting", 40, "typo", 1, {"segment.byte": 1})
    create("a topic setting out of range", 40, "range", 1, {"segment.bytes": 1})

    def acks_zero():
        """An error has no answer to stand in: the connection closes."""
        with Connection(broker.bootstrap, CLOSE_SECONDS_MAX) as connection:
            body = produce_body("input", 0, batch_of([b"x"], crc=1), acks=0)
            lead = struct.pack(">hhi", 0, 3, 1) + string("bad")
            connection.socket.sendall(struct.pack(">i", len(lead) + len(body)) + lead + body)
            check(connection.socket.recv(1) == b"", "an answer to acks=0")
    report.cell("input acks=0 with a fault closes", acks_zero)


def run(report, make_broker, dose, _cores):
    with make_broker("input", {"coreline.cores": 2}) as broker:
        for name, data in FRAMES.items():
            report.cell(f"input {name}", lambda: closed_cell(broker, data))
        code_cells(report, broker)
        if broker.name == "coreline":
            report.cell("input announced frames hold no memory", lambda: memory_cell(broker))
            report.cell("input a flood is logged in few lines", lambda: flood_cell(broker))
        rounds = 200 if dose == "accept" else 20

        def noise():
            import random
            rng = random.Random(8)
            for _ in range(rounds):
                must_close(broker, rng.randbytes(rng.randint(1, 5000)))
            with Connection(broker.bootstrap) as connection:
                check(connection.api_versions(), "the broker no longer answers")
        report.cell("input noise", noise)
