"""Several log directories: what Apache's tools print of three is compared with what they print of an
Apache Kafka with three, and file systems that fail for good take their own partitions alone."""

import fcntl
import json
import os
import re
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import java
from brokers import Kafka, kafka_home
from part_admin import DIRECTORIES, TOPICS, compare, produce_led
from part_configs import ask
from report import check
from wire import Connection, Refused, batch_of, produce

EACH_CORES = False
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
NAMES = ["data", "second", "third"]
STORAGE_ERROR = 56
IMAGE_BYTES = 128 << 20
# EXT4_IOC_SHUTDOWN, and that nothing of the journal is written before (EXT4_GOING_FLAGS_NOLOGFLUSH).
SHUTDOWN, WITHOUT_FLUSH = 0x8004587D, 2
SOON = 20


def even(answer):
    """A directory is told by how many partitions of each topic it has: which ones Kafka leaves to the
    order of a hash table. Paths are each broker's own."""
    def directory(told):
        counts = {}
        for one in told["partitions"]:
            topic = one["partition"].rsplit("-", 1)[0]
            if not topic.startswith("__"):
                counts[topic] = counts.get(topic, 0) + 1
        return [re.sub(r".*/", "", told["logDir"]), told["error"], counts]

    lines = []
    for line in answer["out"].splitlines():
        if line.startswith('{"'):
            brokers = json.loads(line)["brokers"]
            line = json.dumps([[one["broker"], sorted(map(directory, one["logDirs"]), key=str)]
                               for one in brokers])
        lines.append(line)
    return {**answer, "out": "\n".join(lines)}


def leaderless(answer):
    """How many partitions have a leader, and how many have none: which ones differs, see `even`. Kafka's
    format switches eligible leader replicas on: what is not in sync any more is told as such there."""
    states = re.findall(r"Leader: (\S+)\tReplicas: (\S+)\tIsr: ?(\S*)\tElr: ?(\S*)\tLastKnownElr: ?(\S*)",
                        answer["out"])
    states = [(leader, replicas, in_sync or eligible or last)
              for leader, replicas, in_sync, eligible, last in states]
    return {**answer, "out": str(sorted(states))}


def whole(answer):
    """But for a setting that Kafka's format makes."""
    return {**answer, "out": answer["out"].replace("min.insync.replicas=1", "")}


def cells(report, brokers, when, seen):
    """Both tools on Kafka and on ours; `seen` is what counts of the topic's description."""
    words = [[DIRECTORIES, "--describe"], [TOPICS, "--describe", "--topic", "t"]]
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(ask, each.bootstrap, each.folder, words) for each in brokers]
        kafka, own = (answers.result() for answers in asked)
    report.cell(f"directories of {when}", lambda: compare(even(kafka[0]), even(own[0])))
    report.cell(f"directories: the topic with {when}",
                lambda: compare(seen(kafka[1]), seen(own[1])))


def same_paths(answer):
    """Paths are each broker's own; a set of partitions comes in any order. Where they were before, which
    the tool prints for a way back, Kafka leaves to a hash table."""
    out = re.sub(r'/[^\s"]*/(?=[\w-]+["\s.,]|[\w-]+$)', "", answer["out"], flags=re.M)
    lines = [line for line in out.splitlines() if not line.startswith('{"')]
    return {**answer, "out": "\n".join(sorted(lines))}


def moves(report, brokers):
    """All partitions to the third directory, and what the tools say before, while and after."""
    for each in brokers:
        wishes = [{"topic": "t", "partition": partition, "replicas": [1],
                   "log_dirs": [str(each.folder / NAMES[2])]} for partition in range(7)]
        file = each.folder / "moves.json"
        file.write_text(json.dumps({"version": 1, "partitions": wishes}))

    def both(verb):
        words = [[REASSIGN, verb, "--reassignment-json-file"]]
        with ThreadPoolExecutor() as pool:
            asked = [pool.submit(ask, each.bootstrap, each.folder,
                                 [[*words[0], str(each.folder / "moves.json")]]) for each in brokers]
            return [answers.result()[0] for answers in asked]

    kafka, own = both("--execute")
    report.cell("directories: moves begin", lambda: compare(same_paths(kafka), same_paths(own)))
    began = time.monotonic()
    while True:
        kafka, own = both("--verify")
        if all(answer["out"].count("completed successfully") >= 7 for answer in (kafka, own)):
            break
        check(time.monotonic() - began < 60, f"not moved: {kafka['out']} {own['out']}")
    report.cell("directories: moves are done", lambda: compare(same_paths(kafka), same_paths(own)))
    cells(report, brokers, "all in the third", whole)


def compared(report, make_broker, cores):
    broker = make_broker("directories", {"num.partitions": 1, "node.id": 1, "coreline.cores": cores})
    kafka = Kafka(broker.folder / "kafka", broker.port + 2, {"node.id": 1})
    for each in (broker, kafka):
        each.settings["log.dirs"] = ",".join(str(each.folder / name) for name in NAMES)
    java.classes("AdminTools", f"{kafka_home()}/libs/*")
    with broker, kafka:
        for each in (broker, kafka):
            with Connection(each.bootstrap) as connection:
                connection.create_topic("t", 7)
                for partition in range(7):
                    produce_led(connection, "t", partition)
        cells(report, (kafka, broker), "three", whole)
        for each in (broker, kafka):
            each.stop()
            # Gone, and something in its place that is no folder.
            (each.folder / "third").rename(each.folder / "away")
            (each.folder / "third").write_text("no folder")
            each.start()
        time.sleep(5)
        cells(report, (kafka, broker), "two and a broken one", leaderless)
        for each in (broker, kafka):
            each.stop()
            (each.folder / "third").unlink()
            (each.folder / "away").rename(each.folder / "third")
            each.start()
        time.sleep(5)
        cells(report, (kafka, broker), "three again", leaderless)
        moves(report, (kafka, broker))


class Disk:
    """A small ext4 of its own, which can be made to fail for good."""

    def __init__(self, folder):
        self.image, self.path = folder.with_suffix(".img"), folder

    def __enter__(self):
        with open(self.image, "wb") as image:
            image.truncate(IMAGE_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self.image)], check=True)
        self.path.mkdir(parents=True, exist_ok=True)
        self.mount()
        return self

    def mount(self):
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.path)], check=True,
                       capture_output=True)

    def unmount(self):
        subprocess.run(["umount", str(self.path)], check=True, capture_output=True)

    def fail(self):
        """From here on everything that needs the device is answered with EIO."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
        finally:
            os.close(descriptor)

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", str(self.path)], check=False, capture_output=True)
        self.image.unlink(missing_ok=True)


def append(connection, partition):
    error, offset = produce(connection, "t", partition, batch_of([b"v" * 100]))
    return error, offset


def end_of(connection, partition):
    """The end of its log, or why it is not told."""
    try:
        return connection.list_offset("t", partition, -1)
    except Refused as refusal:
        return str(refusal)


def wait_for(what, wanted):
    began = time.monotonic()
    while not wanted():
        check(time.monotonic() - began < SOON, f"not within {SOON} s: {what}")
        time.sleep(0.05)


def one_fails(broker, disks):
    """Of three directories one fails: its partitions are refused at once, the others go on, and after a
    repair all that was acknowledged is there."""
    acknowledged = {}
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("t", 9)
        for partition in list(range(9)) * 3:
            error, offset = append(connection, partition)
            check(error == 0, f"partition {partition}: {error}")
            acknowledged[partition] = offset
        disks[1].fail()
        slowest = 0
        errors = {}
        for partition in list(range(9)) * 3:
            began = time.monotonic()
            error, offset = append(connection, partition)
            slowest = max(slowest, time.monotonic() - began)
            errors.setdefault(partition, set()).add(error)
            if error == 0:
                acknowledged[partition] = offset
        failed = {partition for partition, codes in errors.items() if codes == {STORAGE_ERROR}}
        check(failed == {1, 4, 7}, f"refused: {errors}")
        check(all(errors[other] == {0} for other in set(range(9)) - failed), f"codes: {errors}")
        check(slowest < 2, f"an answer took {slowest:.1f} s")
        for partition in failed:
            check(str(end_of(connection, partition)).endswith(f": {STORAGE_ERROR}"), "an end is told")
    check(broker.process.poll() is None, "the broker has ended")
    code, _ = broker.stop()
    check(code == 0, f"it ended with {code}")
    disks[1].unmount()
    disks[1].mount()
    broker.start()
    with Connection(broker.bootstrap) as connection:
        for partition, last in acknowledged.items():
            end = end_of(connection, partition)
            check(isinstance(end, int) and end > last, f"partition {partition}: {end} after {last}")
            check(append(connection, partition)[0] == 0, f"partition {partition} takes nothing")
    return f"slowest answer {slowest * 1000:.0f} ms"


def all_fail(broker, disks):
    """The last one fails: the broker ends by itself, with a word and a code."""
    with Connection(broker.bootstrap) as connection:
        for disk in disks:
            disk.fail()
        for partition in range(9):
            try:
                append(connection, partition)
            except (OSError, ConnectionError):
                break
    wait_for("the end of the process", lambda: broker.process.poll() is not None)
    check(broker.process.returncode == 1, f"it ended with {broker.process.returncode}")
    told = [line for line in broker.tail(200).splitlines() if "the broker stops:" in line]
    check(len(told) == 1 and "every log directory has failed" in told[0], f"told: {told}")
    return told[0].split("the broker stops: ")[1][:60]


def failing(report, make_broker, cores):
    broker = make_broker("disks", {"coreline.cores": cores})
    disks = [Disk(broker.folder / f"disk{number}") for number in range(3)]
    broker.settings["log.dirs"] = ",".join(str(disk.path) for disk in disks)
    broker.settings["metadata.log.dir"] = str(broker.folder / "metadata")
    try:
        with disks[0], disks[1], disks[2], broker:
            report.cell("directories: one file system fails", lambda: one_fails(broker, disks))
            report.cell("directories: all file systems fail", lambda: all_fail(broker, disks))
    except (subprocess.CalledProcessError, PermissionError) as error:
        print(f"left out, for no file system can be mounted here: {error}")


def run(report, make_broker, dose, cores):
    compared(report, make_broker, cores)
    failing(report, make_broker, cores)
