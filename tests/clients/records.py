"""What the round trips send: every shape a record can have, and how what comes back is compared."""

import base64
import hashlib
import json
import random

PARTITIONS = 3
FIRST_TIMESTAMP = 1_700_000_000_000
LARGE_BYTES = 10 << 20
TOPIC_BYTES_MAX = 12 << 20


def encode(data):
    return None if data is None else base64.b64encode(data).decode()


def compressible(rng, size):
    word = bytes(rng.choices(b"abcdefgh", k=64))
    return (word * (size // 64 + 1))[:size]


def record(index, key, value, headers=(), partition=None):
    return {
        "p": index % PARTITIONS if partition is None else partition,
        "k": encode(key),
        "v": encode(value),
        "h": [[name, encode(content)] for name, content in headers],
        "t": FIRST_TIMESTAMP + index,
    }


def mixed(seed=1):
    """Keys, headers, null values; 0 bytes to 64 KiB."""
    rng = random.Random(seed)
    out = []

    def add(key, value, headers=()):
        out.append(record(len(out), key, value, headers))

    for size in (1, 100, 1024, 65_536):
        for key in (None, b"", b"key-%d" % size, rng.randbytes(32)):
            add(key, compressible(rng, size))
    add(b"gone", None)
    add(b"empty", b"")
    add(b"both", rng.randbytes(300), [("one", b"1"), ("one", b"2"), ("two", b"")])
    add(None, b"only headers count", [("h\u00e9ader", "\u65e5\u672c".encode()), ("null", None)])
    add(b"tombstone with header", None, [("why", b"because")])
    for index in range(200):
        add(b"k%d" % (index % 7), compressible(rng, rng.randint(200, 900)))
    return out


def with_header_values(sent):
    """For clients that cannot send a header without a value."""
    out = json.loads(json.dumps(sent))
    for one in out:
        one["h"] = [[name, content or ""] for name, content in one["h"]]
    return out


def large(seed=2):
    """Up to 10 MiB; the topic's limit is raised."""
    rng = random.Random(seed)
    out = [record(0, b"m", compressible(rng, 1 << 20)), record(1, None, rng.randbytes(1 << 20))]
    out.append(record(2, b"l", compressible(rng, LARGE_BYTES)))
    out.append(record(0, b"after", b"x"))
    return out


def text_only(seed=3):
    """For kcat, which splits its input at line ends: no tabs, no line ends, one header for all."""
    rng = random.Random(seed)
    out = []
    for index in range(200):
        size = rng.choice([1, 10, 100, 400, 1024, 20_000])
        key = None if index % 5 == 0 else b"k%d" % (index % 9)
        value = None if index % 17 == 3 else compressible(rng, size)
        out.append(record(index, key, value, [("h", b"1")]))
    return out


def save(records, path):
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


def digest(data):
    return None if data is None else hashlib.sha256(data).hexdigest()


def shape(one, timestamps=True):
    """What must come back of a sent record."""
    value = None if one["v"] is None else base64.b64decode(one["v"])
    found = {"k": one["k"], "v": digest(value), "n": len(value or b""), "h": one["h"]}
    if timestamps:
        found["t"] = one["t"]
    return found


def compare(sent, consumed, timestamps=True):
    """Nothing when each partition's records came back as they were sent; else what differs first."""
    for partition in range(PARTITIONS):
        want = [shape(one, timestamps) for one in sent if one["p"] == partition]
        got = [one for one in consumed if one["p"] == partition]
        got.sort(key=lambda one: one["o"])
        if [one["o"] for one in got] != list(range(len(got))):
            return f"partition {partition}: offsets are not 0 to {len(got) - 1}"
        if len(want) != len(got):
            return f"partition {partition}: {len(got)} records of {len(want)} came back"
        for index, (one, other) in enumerate(zip(want, got)):
            other = {name: other[name] for name in one}
            if one != other:
                return f"partition {partition} record {index}: sent {one}, got {other}"
    return None
