"""Kafka's protocol by hand, for what no client library shows: batch headers as they are stored, and
answers without retries. Old, inflexible versions only."""

import socket
import struct
import time

COORDINATOR_LOAD_IN_PROGRESS = 14
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


class Refused(Exception):
    """The broker answered with an error code."""


def string(text):
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def array(items):
    return struct.pack(">i", len(items)) + b"".join(items)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return values[0] if len(values) == 1 else values

    def string(self):
        size = self.take("h")
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def bytes(self):
        size = self.take("i")
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size:self.at]

    def array(self, read):
        return [read() for _ in range(max(0, self.take("i")))]


class Connection:
    def __init__(self, bootstrap, timeout=30):
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.correlation = 0

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def receive(self, size):
        parts = []
        while size:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def ask(self, key, version, body):
        self.correlation += 1
        head = struct.pack(">hhi", key, version, self.correlation) + string("coreline-tests")
        self.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        size, = struct.unpack(">i", self.receive(4))
        answer = Reader(self.receive(size))
        if answer.take("i") != self.correlation:
            raise Refused("an answer to another request")
        return answer

    def api_versions(self):
        answer = self.ask(18, 0, b"")
        if answer.take("h"):
            raise Refused("ApiVersions")
        return {key: (low, high) for key, low, high in answer.array(lambda: answer.take("hhh"))}

    def metadata(self, topics):
        """{topic: (error, {partition: (error, leader)})}"""
        answer = self.ask(3, 1, array([string(topic) for topic in topics]))
        answer.array(lambda: (answer.take("i"), answer.string(), answer.take("i"), answer.string()))
        answer.take("i")

        def partition():
            error, index, leader = answer.take("hii")
            answer.array(lambda: answer.take("i"))
            answer.array(lambda: answer.take("i"))
            return index, (error, leader)

        def topic():
            error, name, _ = answer.take("h"), answer.string(), answer.take("b")
            return name, (error, dict(answer.array(partition)))

        return dict(answer.array(topic))

    def create_topic(self, name, partitions, configs=None):
        settings = [string(key) + string(str(value)) for key, value in (configs or {}).items()]
        topic = string(name) + struct.pack(">ihi", partitions, 1, 0) + array(settings)
        answer = self.ask(19, 2, array([topic]) + struct.pack(">i?", 30_000, False))
        answer.take("i")
        for name, error, text in answer.array(
                lambda: (answer.string(), answer.take("h"), answer.string())):
            if error:
                raise Refused(f"CreateTopics {name}: {error} {text}")

    def init_producer(self):
        """A fresh (producer id, epoch). Apache Kafka has none to give for a while after its start."""
        for _ in range(100):
            answer = self.ask(22, 0, string(None) + struct.pack(">i", 60_000))
            _, error, producer_id, epoch = answer.take("ihqh")
            if not error:
                return producer_id, epoch
            if error != COORDINATOR_LOAD_IN_PROGRESS:
                break
            time.sleep(0.1)
        raise Refused(f"InitProducerId: {error}")

    def delete_topic(self, name):
        answer = self.ask(20, 1, array([string(name)]) + struct.pack(">i", 30_000))
        answer.take("i")
        for name, error in answer.array(lambda: (answer.string(), answer.take("h"))):
            if error:
                raise Refused(f"DeleteTopics {name}: {error}")

    def list_offset(self, topic, partition, timestamp):
        """-2 for the first, -1 for the end."""
        where = struct.pack(">iq", partition, timestamp)
        body = struct.pack(">i", -1) + array([string(topic) + array([where])])
        answer = self.ask(2, 1, body)
        answer.take("i")
        answer.string()
        answer.take("i")
        _, error, _, offset = answer.take("ihqq")
        if error:
            raise Refused(f"ListOffsets {topic}-{partition}: {error}")
        return offset

    def fetch(self, topic, partition, offset, size=16 << 20):
        """The stored bytes from the batch of `offset` on."""
        where = struct.pack(">iqi", partition, offset, size)
        body = struct.pack(">iiiib", -1, 100, 1, size, 0) + array([string(topic) + array([where])])
        answer = self.ask(1, 4, body)
        answer.take("i")
        answer.take("i")
        answer.string()
        answer.take("i")
        _, error, _, _ = answer.take("ihqq")
        answer.array(lambda: answer.take("qq"))
        if error:
            raise Refused(f"Fetch {topic}-{partition}@{offset}: {error}")
        return answer.bytes() or b""


class Batch:
    """The header of one stored batch (magic 2)."""

    def __init__(self, data, at):
        (self.base_offset, self.length, self.leader_epoch, self.magic, self.crc, self.attributes,
         self.last_delta, self.first_timestamp, self.max_timestamp, self.producer_id,
         self.producer_epoch, self.base_sequence, self.count) = struct.unpack_from(
            ">qiibIhiqqqhii", data, at)
        self.size = self.length + 12
        self.codec = CODECS[self.attributes & 7]


def batches(data):
    """Whole batches of fetched bytes; what is cut off at the end is left out."""
    at = 0
    while at + 61 <= len(data):
        batch = Batch(data, at)
        if at + batch.size > len(data):
            return
        yield batch
        at += batch.size


def stored_batches(bootstrap, topic, partitions):
    """Every batch of a topic, as its log holds it."""
    with Connection(bootstrap) as connection:
        for partition in range(partitions):
            offset = connection.list_offset(topic, partition, -2)
            end = connection.list_offset(topic, partition, -1)
            while offset < end:
                found = list(batches(connection.fetch(topic, partition, offset)))
                if not found:
                    raise Refused(f"{topic}-{partition}: nothing at {offset}, end {end}")
                for batch in found:
                    yield partition, batch
                offset = found[-1].base_offset + found[-1].last_delta + 1


def _crc_table():
    table = []
    for index in range(256):
        for _ in range(8):
            index = (index >> 1) ^ (0x82F63B78 if index & 1 else 0)
        table.append(index)
    return table


_CRC = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(value):
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value & ~0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def batch_of(values, **fields):
    """A batch of keyless records; `fields` distort its header: magic, crc, count, attributes…"""
    records = b""
    for index, value in enumerate(values):
        body = b"\0" + varint(0) + varint(index) + varint(-1)
        body += varint(-1 if value is None else len(value)) + (value or b"") + varint(0)
        records += varint(len(body)) + body
    head = {"base_offset": 0, "leader_epoch": -1, "magic": 2, "attributes": 0,
            "last_delta": len(values) - 1, "timestamp": 1_700_000_000_000, "producer_id": -1,
            "producer_epoch": -1, "sequence": -1, "count": len(values), **fields}
    tail = struct.pack(
        ">hiqqqhii", head["attributes"], head["last_delta"], head["timestamp"], head["timestamp"],
        head["producer_id"], head["producer_epoch"], head["sequence"], head["count"]) + records
    crc = head.get("crc", crc32c(tail))
    length = head.get("length", len(tail) + 9)
    return struct.pack(">qiibI", head["base_offset"], length, head["leader_epoch"], head["magic"],
                       crc) + tail


def produce_body(topic, partition, batch, acks=-1, timeout_ms=30_000):
    data = struct.pack(">i", -1 if batch is None else len(batch)) + (batch or b"")
    return (string(None) + struct.pack(">hi", acks, timeout_ms) +
            array([string(topic) + array([struct.pack(">i", partition) + data])]))


def produce(connection, topic, partition, batch, acks=-1, timeout_ms=30_000):
    """(error, base offset) of a Produce v3."""
    answer = connection.ask(0, 3, produce_body(topic, partition, batch, acks, timeout_ms))
    answer.take("i")
    answer.string()
    answer.take("i")
    _, error, offset, _ = answer.take("ihqq")
    return error, offset
