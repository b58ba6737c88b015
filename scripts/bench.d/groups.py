"""What idle connections and the members of groups cost in memory."""

import resource
import struct
import sys
import time
from pathlib import Path

from common import ROOT, build, coreline

sys.path.insert(0, str(ROOT / "tests/clients"))
import wire  # noqa: E402

CONNECTIONS, GROUPS = 10_000, 100
# The broker's own files and the generator's, beside one descriptor a connection.
SPARE_FILES = 1_000
MEMORY_BYTES = 3 << 30
# Members here send no heartbeats: they are idle for as long as this takes.
SESSION_MS, REBALANCE_MS = 1_200_000, 600_000
ANSWERED_WITHIN_SECONDS = 300
IDLE_SECONDS = 10
API_VERSIONS, FIND_COORDINATOR, JOIN, HEARTBEAT, SYNC = 18, 10, 11, 12, 14
PROTOCOL = "range"
# A consumer's subscription to one topic, and the two partitions that it is given.
SUBSCRIPTION = struct.pack(">hi", 0, 1) + wire.string("orders") + struct.pack(">i", -1)
ASSIGNMENT = (struct.pack(">hi", 0, 1) + wire.string("orders") + struct.pack(">iiii", 2, 0, 1, -1))


def sized(data):
    return struct.pack(">i", len(data)) + data


def send(connection, key, version, body):
    connection.correlation += 1
    head = struct.pack(">hhi", key, version, connection.correlation) + wire.string("consumer-1")
    connection.socket.sendall(sized(head + body))


def receive(connection):
    size, = struct.unpack(">i", connection.receive(4))
    answer = wire.Reader(connection.receive(size))
    answer.take("i")
    return answer


def settled(broker):
    """Resident bytes once they stand still."""
    def resident():
        for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
        raise RuntimeError("the broker is gone")

    before = resident()
    for _ in range(60):
        time.sleep(1)
        now = resident()
        if abs(now - before) < 1 << 16:
            break
        before = now
    return now


def cpu_seconds(broker):
    fields = Path(f"/proc/{broker.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def warm(connection, groups):
    """Every coordinator is loaded."""
    for group in groups:
        connection.ask(FIND_COORDINATOR, 0, wire.string(group))
        while True:
            body = wire.string(group) + struct.pack(">i", 0) + wire.string("nobody")
            if connection.ask(HEARTBEAT, 0, body).take("h") != wire.COORDINATOR_LOAD_IN_PROGRESS:
                break
            time.sleep(0.01)


def join(members):
    """All of (connection, group) join; answers (generation, member id, the members that a leader has) of each."""
    for connection, group in members:
        body = wire.string(group) + struct.pack(">ii", SESSION_MS, REBALANCE_MS) + wire.string("")
        body += wire.string("consumer") + wire.array([wire.string(PROTOCOL) + sized(SUBSCRIPTION)])
        send(connection, JOIN, 2, body)
    joined = []
    for connection, _ in members:
        answer = receive(connection)
        _, error, generation = answer.take("ihi")
        if error:
            raise wire.Refused(f"JoinGroup: {error}")
        answer.string()
        answer.string()
        joined.append((generation, answer.string(), answer.array(lambda: (answer.string(), answer.bytes()))))
    return joined


def sync(members, joined):
    for (connection, group), (generation, member_id, others) in zip(members, joined):
        body = wire.string(group) + struct.pack(">i", generation) + wire.string(member_id)
        send(connection, SYNC, 1, body + wire.array([wire.string(other) + sized(ASSIGNMENT) for other, _ in others]))
    for connection, _ in members:
        answer = receive(connection)
        _, error = answer.take("ih")
        if error or answer.bytes() != ASSIGNMENT:
            raise wire.Refused(f"SyncGroup: {error}")


def bench_groups(_arguments):
    """10,000 connections, first with nothing to do, then as the members of 100 groups."""
    wanted = CONNECTIONS + SPARE_FILES
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < wanted:
        sys.exit(f"needs {wanted} open files, the limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    build()
    groups = [f"group-{number}" for number in range(GROUPS)]
    # Members that come while a group waits for its first ones make one generation together.
    settings = [f"coreline.memory={MEMORY_BYTES}", "group.initial.rebalance.delay.ms=5000"]
    with coreline(*settings) as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        with wire.Connection(bootstrap) as connection:
            warm(connection, groups)
        empty = settled(broker)
        crowd = [wire.Connection(bootstrap, ANSWERED_WITHIN_SECONDS) for _ in range(CONNECTIONS)]
        for connection in crowd:
            connection.api_versions()
        connected = settled(broker)
        members = [(connection, groups[at % GROUPS]) for at, connection in enumerate(crowd)]
        began = time.monotonic()
        joined = join(members)
        sync(members, joined)
        took = time.monotonic() - began
        if len({one[1] for one in joined}) != CONNECTIONS or sum(len(one[2]) for one in joined) != CONNECTIONS:
            raise RuntimeError("not all members are in one generation of their groups")
        grouped = settled(broker)
        before = cpu_seconds(broker)
        time.sleep(IDLE_SECONDS)
        idle = (cpu_seconds(broker) - before) / IDLE_SECONDS
        for connection in crowd:
            connection.close()
    print(f"resident memory, one core: {empty / 2**20:.0f} MiB empty, {connected / 2**20:.0f} MiB with {CONNECTIONS:,} "
          f"idle connections, {grouped / 2**20:.0f} MiB as members of {GROUPS} groups")
    print(f"    a connection {(connected - empty) / CONNECTIONS / 1024:8.2f} KiB")
    print(f"    a member     {(grouped - connected) / CONNECTIONS / 1024:8.2f} KiB, what its join and sync left to its "
          "connection included")
    print(f"    joined and synced in {took:.1f} s, of which the groups wait 5 s and more for members; "
          f"{100 * idle:.1f} % of a core when idle")
