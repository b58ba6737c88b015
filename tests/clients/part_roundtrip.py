"""Every client sends every shape of record in every codec; every client reads it back alike."""

import base64
import json
import os
import re
import subprocess
from pathlib import Path

import java
import records
from brokers import ROOT, kafka_home
from report import check
from wire import Connection, stored_batches

HERE = Path(__file__).resolve().parent
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
SECONDS_MAX = 300
# Clients leave a batch uncompressed where compression would make it larger.
COMPRESSIBLE_BYTES = 4_096


def venv(name):
    cache = Path(os.environ.get("CORELINE_CACHE", Path.home() / ".cache/coreline"))
    return cache / f"venv-{name}/bin/python"


def librdkafka():
    return os.environ.get("CORELINE_CLIENTS") or str(ROOT / "target/debug/coreline-clients")


def command(client):
    if client == "java":
        libraries = f"{kafka_home()}/libs/*"
        classes = java.classes("JavaClient", libraries)
        return ["java", "-Xmx1g", "-cp", f"{classes}:{libraries}",
                "-Dlog4j2.level=ERROR", "JavaClient"]
    if client == "librdkafka":
        return [librdkafka(), "tasks"]
    return [str(venv(client)), str(HERE / "drivers/python_client.py")]


def run_tasks(client, broker, tasks, folder):
    """One process does all tasks; answers their answers."""
    file = folder / f"tasks-{client}.json"
    file.write_text(json.dumps(tasks))
    done = subprocess.run([*command(client), broker.bootstrap, str(file)], capture_output=True,
                          text=True, timeout=SECONDS_MAX)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    check(len(answers) == len(tasks),
          f"{client} answered {len(answers)} of {len(tasks)} tasks: {done.stderr[-1500:]}")
    return answers


class Sending:
    """One topic, filled by one client in one codec."""

    def __init__(self, client, codec, idempotence, kind):
        self.client, self.codec, self.idempotence, self.kind = client, codec, idempotence, kind
        self.topic = f"{client}-{codec}-{'idem' if idempotence else 'plain'}-{kind}"
        self.acked = self.error = None

    def task(self, files):
        return {"do": "produce", "topic": self.topic, "codec": self.codec,
                "idempotence": self.idempotence, "records": str(files[self.kind])}


def sendings(dose):
    for client, can_be_idempotent in (
            ("java", True), ("librdkafka", True), ("kafka-python-2", False),
            ("kafka-python-3", True)):
        for codec in CODECS:
            for idempotence in ((False, True) if can_be_idempotent else (False,)):
                kind = "filled" if client.startswith("kafka-python") else "mixed"
                yield Sending(client, codec, idempotence, kind)
            if dose == "accept" or codec in ("none", "lz4"):
                yield Sending(client, codec, can_be_idempotent, "large")


def stored_cell(broker, sending):
    """The log's batches carry the codec that was asked for, and a producer id where they should."""
    codecs = set()
    for _, batch in stored_batches(broker.bootstrap, sending.topic, records.PARTITIONS):
        if batch.size > COMPRESSIBLE_BYTES or batch.codec != "none":
            codecs.add(batch.codec)
        has_id = batch.producer_id >= 0
        check(has_id == sending.idempotence, f"producer id {batch.producer_id} in the log")
    expected = {sending.codec}
    if sending.kind == "large" and sending.client != "java":
        expected.add("none")  # a MiB of noise does not compress
    check(sending.codec in codecs and codecs <= expected,
          f"asked for {sending.codec}, the log holds {codecs}")


def is_beyond(reader, sending):
    """What a reader cannot decode from any broker: kafka-python 2.0.2 unpacks at most 1 MiB of zstd
    whose frames do not tell their size, and the Java client's and librdkafka's do not."""
    return (reader == "kafka-python-2" and sending.kind == "large" and sending.codec == "zstd"
            and sending.client in ("java", "librdkafka"))


def read_back(report, broker, plan, readers, context):
    """Each reader reads every topic; a cell for each topic and reader."""
    folder, sent, cores = context
    for reader in readers:
        tasks = [{"do": "consume", "topic": one.topic, "partitions": records.PARTITIONS,
                  "output": str(folder / f"{reader}-{one.topic}")} for one in plan]
        answers = {}

        def consume():
            answers.update(zip((one.topic for one in plan),
                               run_tasks(reader, broker, tasks, folder)))
        if not report.cell(f"roundtrip {reader} reads all cores={cores}", consume):
            continue
        for one, task in zip(plan, tasks):
            if is_beyond(reader, one):
                continue

            def cell():
                check("error" not in answers[one.topic], f"{answers[one.topic].get('error')}")
                with open(task["output"]) as lines:
                    consumed = [json.loads(line) for line in lines]
                os.unlink(task["output"])
                difference = records.compare(sent[one.kind], consumed, one.client != "kcat")
                check(difference is None, f"{difference}")
            report.cell(f"roundtrip {one.topic} read by {reader} cores={cores}", cell)


def kcat_send(broker, codec, idempotence, text_records):
    """kcat takes its records from lines: one run a partition."""
    topic = f"kcat-{codec}-{'idem' if idempotence else 'plain'}-text"
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(topic, records.PARTITIONS)
    for partition in range(records.PARTITIONS):
        lines = []
        for one in text_records:
            if one["p"] != partition:
                continue
            key, value = (base64.b64decode(one[name] or "").decode() for name in "kv")
            lines.append(f"{key}\t{value}\n")
        words = ["kcat", "-P", "-b", broker.bootstrap, "-t", topic, "-p", str(partition), "-K", "\t",
                 "-Z", "-H", "h=1", "-z", codec, "-X", f"enable.idempotence={str(idempotence).lower()}",
                 "-X", "acks=all", "-X", "linger.ms=50"]
        done = subprocess.run(words, input="".join(lines), capture_output=True, text=True,
                              timeout=SECONDS_MAX)
        check(done.returncode == 0 and "ERROR" not in done.stderr, f"kcat: {done.stderr}")
    sending = Sending("kcat", codec, idempotence, "text")
    sending.topic = topic
    return sending


def kcat_read(broker, topic, text_records):
    words = ["kcat", "-C", "-b", broker.bootstrap, "-t", topic, "-e", "-q", "-X", "check.crcs=true",
             "-f", "%p\t%o\t%K\t%k\t%S\t%s\t%h\n"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS_MAX)
    check(done.returncode == 0, f"kcat: {done.stderr}")
    consumed = []
    for line in done.stdout.splitlines():
        partition, offset, key_size, key, size, value, headers = line.split("\t")
        consumed.append({
            "p": int(partition), "o": int(offset), "n": max(0, int(size)),
            "k": None if int(key_size) < 0 else records.encode(key.encode()),
            "v": None if int(size) < 0 else records.digest(value.encode()),
            "h": [[name, records.encode(content.encode())] for name, content in
                  re.findall(r"([^=,]+)=([^,]*)", headers)],
        })
    difference = records.compare(text_records, consumed, timestamps=False)
    check(difference is None, f"{difference}")


def run_kcat(report, broker, cores):
    text_records = records.text_only()
    sent = []
    for codec in CODECS:
        for idempotence in (False, True):
            def cell():
                sending = kcat_send(broker, codec, idempotence, text_records)
                stored_cell(broker, sending)
                kcat_read(broker, sending.topic, text_records)
                sent.append(sending)
            report.cell(f"roundtrip kcat {codec} idempotence={idempotence} cores={cores}", cell)
    return sent, text_records


def run(report, make_broker, dose, cores):
    # The records' timestamps lie years back.
    settings = {"coreline.cores": cores, "message.max.bytes": records.TOPIC_BYTES_MAX,
                "log.retention.ms": -1}
    with make_broker("roundtrip", settings) as broker:
        folder = broker.folder
        sent = {"mixed": records.mixed(), "large": records.large()}
        sent["filled"] = records.with_header_values(sent["mixed"])
        files = {kind: folder / f"{kind}.jsonl" for kind in sent}
        for kind, path in files.items():
            records.save(sent[kind], path)
        plan = []
        every = list(sendings(dose))
        for client in dict.fromkeys(one.client for one in every):
            mine = [one for one in every if one.client == client]

            def produce():
                with Connection(broker.bootstrap) as connection:
                    for one in mine:
                        connection.create_topic(one.topic, records.PARTITIONS)
                answers = run_tasks(client, broker, [one.task(files) for one in mine], folder)
                for one, answer in zip(mine, answers):
                    one.error, one.acked = answer.get("error"), answer.get("acked")
            if not report.cell(f"roundtrip {client} sends all cores={cores}", produce):
                continue
            for one in mine:
                def cell():
                    check(one.error is None, one.error)
                    check(len(one.acked) == len(sent[one.kind]), "not every record was answered")
                    stored_cell(broker, one)
                    plan.append(one)
                report.cell(f"roundtrip {one.topic} sent cores={cores}", cell)
        kcat_sent, sent["text"] = run_kcat(report, broker, cores)
        read_back(report, broker, plan + kcat_sent,
                  ["java", "librdkafka", "kafka-python-2", "kafka-python-3"], (folder, sent, cores))
