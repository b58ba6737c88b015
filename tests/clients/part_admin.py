"""kafka-delete-records, kafka-topics and kafka-log-dirs: what they print of the broker is compared with
what they print of an Apache Kafka beside it."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import java
from brokers import Kafka, kafka_home
from part_configs import ask
from report import check
from wire import Connection, batch_of, produce

EACH_CORES = False
TOPICS = "org.apache.kafka.tools.TopicCommand"
RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
DIRECTORIES = "org.apache.kafka.tools.LogDirsCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"


def commands(folder):
    """Each with its name; all in this order on one broker. Topic t has two partitions of three batches
    of two records."""
    def delete(name, *partitions):
        file = folder / f"{name}.json"
        file.write_text(json.dumps({"version": 1, "partitions": [
            {"topic": topic, "partition": partition, "offset": offset}
            for topic, partition, offset in partitions]}))
        return [RECORDS, "--offset-json-file", str(file)]

    def alter(topic, count, *words):
        return [TOPICS, "--alter", "--topic", topic, "--partitions", str(count), *words]

    def offsets(time):
        return [OFFSETS, "--topic", "t", "--time", str(time)]

    yield "directories", [DIRECTORIES, "--describe"]
    yield "directories with a topic", [DIRECTORIES, "--describe", "--topic-list", "t"]
    yield "directories of a broker", [DIRECTORIES, "--describe", "--broker-list", "1"]
    yield "directories of no broker", [DIRECTORIES, "--describe", "--broker-list", "7"]

    yield "records", delete("records", ("t", 0, 3), ("t", 1, -1))
    yield "the starts", offsets(-2)
    yield "the ends", offsets(-1)
    yield "records again", delete("again", ("t", 0, 1))
    yield "records beyond the end", delete("beyond", ("t", 0, 7))
    yield "records of a compacted topic", delete("compacted", ("compacted", 0, 0))
    yield "records twice", delete("twice", ("t", 0, 4), ("t", 0, 5))
    yield "the starts after all", offsets(-2)

    yield "more partitions", alter("t", 4)
    yield "a topic with more", [TOPICS, "--describe", "--topic", "t"]
    yield "as many partitions", alter("t", 4)
    yield "fewer partitions", alter("t", 1)
    yield "partitions of no topic", alter("nope", 4)
    yield "no topic, and none is needed", alter("nope", 4, "--if-exists")
    yield "assigned partitions", alter("t", 6, "--replica-assignment", "1,1,1,1,1,1")
    yield "partitions assigned to strangers", alter("t", 7, "--replica-assignment", "1,1,1,1,1,1,9")
    yield "a topic with assigned ones", [TOPICS, "--describe", "--topic", "t"]
    yield "offsets of all partitions", offsets(-1)
    yield "directories after it", [DIRECTORIES, "--describe", "--topic-list", "t,nope"]


def even_directories(text):
    """Paths are each broker's own; partitions come in any order; Kafka makes topics of its own."""
    described = json.loads(text)
    for broker in described["brokers"]:
        for directory in broker["logDirs"]:
            check(directory["logDir"].startswith("/"), f"no absolute path: {directory['logDir']}")
            directory["logDir"] = "PATH"
            partitions = directory["partitions"]
            partitions[:] = [one for one in partitions if not one["partition"].startswith("__")]
            partitions.sort(key=lambda one: one["partition"])
    return json.dumps(described, sort_keys=True)


def told(answer):
    """Lines of what was printed without addresses, ids, the places where a program stood, and what
    Kafka's format sets; partitions whose records went come in any order."""
    lines = []
    for text in (answer["out"], answer["error"]):
        text = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)
        text = re.sub(r"TopicId: \S+", "TopicId: ID", text).replace("min.insync.replicas=1,", "")
        of_text = []
        for line in text.splitlines():
            if re.match(r"\s+(at |\.\.\. \d+ more)", line):
                continue
            # Log lines tell their times.
            line = re.sub(r"^\[[\d: ,-]+\] ", "", line)
            of_text.append(even_directories(line) if line.startswith('{"') else line)
        lines += sorted(of_text) if "low_watermark" in text else of_text
    return answer["code"], lines


def compare(kafka, own):
    theirs, ours = told(kafka), told(own)
    check(theirs == ours, f"Kafka: {theirs}\n  Coreline: {ours}")
    return f"code {ours[0]}, {len(ours[1])} lines"


def produce_led(connection, topic, partition):
    """Kafka answers the creation before its partitions have a leader."""
    began = time.monotonic()
    while True:
        error, _ = produce(connection, topic, partition, batch_of([b"one", b"two"]))
        if error == 0:
            return
        check(time.monotonic() - began < 20, f"{topic}-{partition} is not written: {error}")
        time.sleep(0.1)


def prepare(broker):
    with Connection(broker.bootstrap) as connection:
        # The records of these batches carry a time of long ago.
        connection.create_topic("t", 2, {"retention.ms": "-1"})
        connection.create_topic("compacted", 1, {"cleanup.policy": "compact"})
        for partition in range(2):
            for _ in range(3):
                produce_led(connection, "t", partition)


def run(report, make_broker, dose, cores):
    """Every command on both brokers."""
    settings = {"num.partitions": 1, "node.id": 1, "coreline.cores": cores}
    with make_broker("admin", settings) as broker:
        with Kafka(broker.folder / "kafka", broker.port + 2, {"node.id": 1}) as kafka:
            java.classes("AdminTools", f"{kafka_home()}/libs/*")
            for each in (broker, kafka):
                prepare(each)
            named = list(commands(broker.folder))
            words = [words for _, words in named]
            with ThreadPoolExecutor() as pool:
                asked = [pool.submit(ask, each.bootstrap, each.folder, words)
                         for each in (kafka, broker)]
                of_kafka, of_own = (answers.result() for answers in asked)
        for (name, _), theirs, ours in zip(named, of_kafka, of_own):
            report.cell(f"admin {name}", lambda: compare(theirs, ours))
