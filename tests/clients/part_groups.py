"""Consumer groups: every client goes on where another has left off, also after kill -9 of the broker;
all of them share one group; what kafka-consumer-groups prints is compared with what it prints of an
Apache Kafka beside it."""

import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import java
from brokers import Kafka, kafka_home
from part_admin import produce_led
from part_configs import ask
from part_roundtrip import command, run_tasks
from report import check
from wire import Connection, batch_of, produce

EACH_CORES = False
CLIENTS = ["java", "librdkafka", "kafka-python-2", "kafka-python-3"]
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ALL_GROUPS = "org.apache.kafka.tools.GroupsCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SETTINGS = {"num.partitions": 1, "node.id": 1, "group.initial.rebalance.delay.ms": 0}
COMES_SECONDS_MAX = 60
TWICE_SECONDS = 0.5


def lines_of(file):
    """What a member has written so far: its last assignment, and its records."""
    assigned, found = None, []
    for line in file.read_text().splitlines() if file.exists() else []:
        if not line.endswith("}"):
            continue  # it is being written
        one = json.loads(line)
        if "assigned" in one:
            assigned = one["assigned"]
        else:
            found.append((one["p"], one["o"]))
    return assigned, found


def fill(broker, topic, partitions, each):
    with Connection(broker.bootstrap) as connection:
        for partition in range(partitions):
            error, _ = produce(connection, topic, partition, batch_of([b"v"] * each))
            check(error == 0, f"{topic}-{partition} is not written: {error}")


def make(broker, topic, partitions):
    with Connection(broker.bootstrap) as connection:
        # The records of these batches carry a time of long ago.
        connection.create_topic(topic, partitions, {"retention.ms": "-1"})
        for partition in range(partitions):
            produce_led(connection, topic, partition)


def relay_cell(broker, rounds):
    """One client after the other in the same group, the broker killed in between: each record comes to
    one of them, and to one only."""
    partitions, each = 4, 40
    make(broker, "relay", partitions)
    fill(broker, "relay", partitions, each - 2)
    runners = CLIENTS * rounds
    total, read = partitions * each, []
    for number, client in enumerate(runners):
        output = broker.folder / f"relay-{number}"
        is_last = number + 1 == len(runners)
        count = total - len(read) if is_last else total // len(runners)
        task = {"do": "subscribe", "topic": "relay", "group": "relay", "count": count,
                "output": str(output), "stop": str(broker.folder / "none")}
        [answer] = run_tasks(client, broker, [task], broker.folder)
        check("error" not in answer, f"{client}: {answer.get('error')}")
        read += lines_of(output)[1]
        twice = len(read) - len(set(read))
        check(not twice, f"{client}, number {number}: {twice} of {len(read)} records came twice")
        if broker.name == "coreline" and not is_last:
            broker.kill()
            broker.start()
    check(len(read) == total, f"{len(read)} of {total} records came")
    return f"{total} records by {len(runners)} clients"


def shared_cell(broker):
    """All clients are members of one group at a time: together they have all partitions, and each record
    comes to one of them."""
    partitions, each = 8, 40
    make(broker, "shared", partitions)
    stop = broker.folder / "stop"
    members = {}
    for client in CLIENTS:
        output, tasks = broker.folder / f"shared-{client}", broker.folder / f"shared-{client}.json"
        tasks.write_text(json.dumps([{"do": "subscribe", "topic": "shared", "group": "shared",
                                      "output": str(output), "stop": str(stop)}]))
        words = [*command(client), broker.bootstrap, str(tasks)]
        members[client] = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           text=True), output

    def until(is_so, what):
        began = time.monotonic()
        while not is_so(told := [lines_of(output) for _, output in members.values()]):
            check(time.monotonic() - began < COMES_SECONDS_MAX, f"{what}: {told}")
            time.sleep(0.1)

    def is_even(told):
        return all(assigned is not None and len(assigned) == partitions // len(CLIENTS)
                   for assigned, _ in told)

    def is_whole(told):
        return {record for _, found in told for record in found} >= wanted

    try:
        until(is_even, "not everyone has its share")
        fill(broker, "shared", partitions, each)
        wanted = {(partition, offset) for partition in range(partitions)
                  for offset in range(2, each + 2)}
        until(is_whole, "not every record came")
        time.sleep(TWICE_SECONDS)  # for what comes a second time
        # Who is told to stop last may be given what the others held and had not committed.
        found = [record for _, output in members.values() for record in lines_of(output)[1]
                 if record[1] >= 2]
        stop.touch()
        for client, (process, _) in members.items():
            printed, errors = process.communicate(timeout=COMES_SECONDS_MAX)
            check(process.returncode == 0 and "error" not in printed,
                  f"{client}: {printed} {errors[-800:]}")
    finally:
        for process, _ in members.values():
            process.kill()
    check(len(found) == len(wanted), f"{len(found)} records came of {len(wanted)}")
    return f"{len(wanted)} records, {partitions // len(CLIENTS)} partitions each"


def commands(folder):
    """Each with its name; all in this order on one broker. Topics t and u have three partitions and one,
    of three batches of two records each; a member of the group busy is subscribed to t."""
    plan = folder / "plan.csv"
    plan.write_text('"t",0,3\n"t",2,5\n')

    def groups(*words):
        return [GROUPS, *words]

    def reset(*words):
        return groups("--reset-offsets", "--group", "g", *words)

    yield "no group yet", groups("--describe", "--group", "g")
    yield "a console consumer of a group", [
        CONSOLE, "--topic", "t", "--group", "g", "--from-beginning", "--max-messages", "18",
        "--timeout-ms", "20000"]
    yield "the list", groups("--list")
    yield "the list with states", groups("--list", "--state")
    yield "the list of stable ones", groups("--list", "--state", "Stable")
    yield "the list with types", groups("--list", "--type")
    yield "the list of a type", groups("--list", "--type", "consumer")
    yield "a group", groups("--describe", "--group", "g")
    yield "its offsets in full", groups("--describe", "--group", "g", "--verbose")
    yield "its members", groups("--describe", "--group", "g", "--members")
    yield "its state", groups("--describe", "--group", "g", "--state")
    yield "a busy group", groups("--describe", "--group", "busy")
    yield "its members in full", groups("--describe", "--group", "busy", "--members", "--verbose")
    yield "the busy one's state", groups("--describe", "--group", "busy", "--state")
    yield "all groups", groups("--describe", "--all-groups", "--state")

    yield "a reset in thought", reset("--topic", "t", "--to-earliest", "--dry-run")
    yield "a reset to the start", reset("--topic", "t", "--to-earliest", "--execute")
    yield "a reset to the end", reset("--all-topics", "--to-latest", "--execute")
    yield "a shift back", reset("--topic", "t", "--shift-by", "-2", "--execute")
    yield "a shift too far", reset("--topic", "t:1", "--shift-by", "100", "--execute")
    yield "a reset to an offset", reset("--topic", "t:0,1", "--to-offset", "1", "--execute")
    yield "a reset to where it is", reset("--topic", "t", "--to-current", "--execute")
    yield "a reset to a time", reset(
        "--topic", "t", "--to-datetime", "2020-01-01T00:00:00.000", "--execute")
    yield "a reset for another topic", reset("--topic", "u", "--to-offset", "2", "--execute")
    yield "a reset by a plan", reset("--from-file", str(plan), "--execute")
    yield "a reset for export", reset("--topic", "t", "--to-current", "--export", "--dry-run")
    yield "a reset for no topic", reset("--topic", "nope", "--to-earliest", "--execute")
    yield "a reset of a busy group", groups(
        "--reset-offsets", "--group", "busy", "--topic", "t", "--to-latest", "--execute")
    yield "a reset of a new group", groups(
        "--reset-offsets", "--group", "made", "--topic", "t", "--to-latest", "--execute")
    yield "a group after all that", groups("--describe", "--group", "g")
    yield "one that never had members", groups("--describe", "--group", "made", "--state")

    def delete_offsets(group, *topics):
        words = [word for topic in topics for word in ("--topic", topic)]
        return groups("--delete-offsets", "--group", group, *words)

    yield "offsets deleted", delete_offsets("g", "u")
    yield "offsets of one partition", delete_offsets("g", "t:1")
    yield "offsets of no topic", delete_offsets("g", "nope")
    yield "offsets of a busy group", delete_offsets("busy", "t")
    yield "offsets of no group", delete_offsets("nope", "t")
    yield "what is left of it", groups("--describe", "--group", "g")
    yield "a busy group deleted", groups("--delete", "--group", "busy")
    yield "groups deleted", groups("--delete", "--group", "g", "--group", "nope")
    yield "all that are left", groups("--list", "--state")
    yield "all groups of every kind", [ALL_GROUPS, "--list"]
    yield "a group that is gone", groups("--describe", "--group", "g")


def told(name, answer):
    """What was printed without addresses, ids, widths of columns, and the places where a program stood.
    Partitions and groups come in any order, and records of several partitions."""
    lines = []
    for text in (answer["out"], answer["error"]):
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", text)
        text = re.sub(r"(127\.0\.0\.1|localhost):\d+", "ADDRESS", text)
        of_text = []
        for line in text.splitlines():
            if re.match(r"\s+(at |\.\.\. \d+ more)", line) or not line.strip():
                continue
            line = re.sub(r"^\[[\d: ,-]+\] ", "", line)
            of_text.append(" ".join(line.split()))
        lines += sorted(of_text)
    return answer["code"], lines


def compare(name, kafka, own):
    theirs, ours = told(name, kafka), told(name, own)
    check(theirs == ours, f"Kafka: {theirs}\n  Coreline: {ours}")
    return f"code {ours[0]}, {len(ours[1])} lines"


class Busy:
    """A member of the group busy, for as long as it is needed."""

    def __init__(self, broker):
        self.broker, self.stop = broker, broker.folder / "busy-stop"
        self.output, tasks = broker.folder / "busy", broker.folder / "busy.json"
        tasks.write_text(json.dumps([{"do": "subscribe", "topic": "t", "group": "busy",
                                      "output": str(self.output), "stop": str(self.stop)}]))
        self.process = subprocess.Popen(
            [*command("librdkafka"), broker.bootstrap, str(tasks)], stdout=subprocess.DEVNULL)

    def __enter__(self):
        began = time.monotonic()
        while lines_of(self.output)[0] is None or len(lines_of(self.output)[1]) < 18:
            check(time.monotonic() - began < COMES_SECONDS_MAX, "the busy group gets nothing")
            time.sleep(0.05)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def tools_cells(report, broker):
    """Every command on both brokers."""
    with Kafka(broker.folder / "kafka", broker.port + 2, SETTINGS) as kafka:
        for each in (broker, kafka):
            for topic, partitions in (("t", 3), ("u", 1)):
                make(each, topic, partitions)
                fill(each, topic, partitions, 4)
        java.classes("AdminTools", f"{kafka_home()}/libs/*")
        named = list(commands(broker.folder))
        words = [words for _, words in named]
        with Busy(broker), Busy(kafka), ThreadPoolExecutor() as pool:
            asked = [pool.submit(ask, each.bootstrap, each.folder, words)
                     for each in (kafka, broker)]
            of_kafka, of_own = (answers.result() for answers in asked)
    for (name, _), theirs, ours in zip(named, of_kafka, of_own):
        report.cell(f"groups {name}", lambda: compare(name, theirs, ours))


def run(report, make_broker, dose, cores):
    with make_broker("groups", {**SETTINGS, "coreline.cores": cores}) as broker:
        report.cell("groups one client after the other",
                    lambda: relay_cell(broker, 5 if dose == "accept" else 1))
        report.cell("groups all clients at a time", lambda: shared_cell(broker))
    with make_broker("groups-tools", {**SETTINGS, "coreline.cores": cores}) as broker:
        report.cell("groups tools set up", lambda: tools_cells(report, broker))
