"""kafka-configs and kafka-client-metrics, as an operator uses them: what they print of the broker is
compared with what they print of an Apache Kafka beside it."""

import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import java
from brokers import Kafka, kafka_home
from report import check
from wire import Connection

EACH_CORES = False
SECONDS_MAX = 300
ANSWER = "ANSWER "
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
METRICS = "org.apache.kafka.tools.ClientMetricsCommand"

# What each broker was started with, and what Kafka's file for these tests has besides.
OF_ONE_BROKER = {
    "advertised.listeners", "broker.id", "controller.listener.names", "controller.quorum.voters",
    "group.initial.rebalance.delay.ms", "listener.security.protocol.map", "listeners", "log.dir",
    "log.dirs", "node.id", "offsets.topic.replication.factor", "process.roles",
    # Left to the system here.
    "socket.receive.buffer.bytes", "socket.send.buffer.bytes",
}


def commands():
    """Each with its name; all in this order on one broker."""
    def alter(kind, name, *words):
        where = ["--entity-default"] if name is None else ["--entity-name", name]
        return [CONFIGS, "--alter", "--entity-type", kind, *where, *words]

    def describe(kind, name=None, *words):
        where = [] if name is None else ["--entity-name", name]
        return [CONFIGS, "--describe", "--entity-type", kind, *where, *words]

    def topic(*words):
        return alter("topics", "t", *words)

    yield "a topic without settings", describe("topics", "t")
    yield "all of a topic", describe("topics", "t", "--all")
    yield "a topic's settings", topic(
        "--add-config", "retention.ms=3600000,cleanup.policy=[compact,delete],preallocate=true")
    yield "a topic with settings", describe("topics", "t")
    yield "every topic", describe("topics")
    yield "a value out of range", topic("--add-config", "segment.bytes=1")
    yield "no number", topic("--add-config", "retention.ms=soon")
    yield "an unknown setting", topic("--add-config", "retention.millis=1")
    yield "a setting taken away", topic("--delete-config", "retention.ms,preallocate")
    yield "one that is not there", topic("--delete-config", "segment.ms")
    yield "what is left", describe("topics", "t", "--all")
    yield "an unknown topic", describe("topics", "nope")
    yield "an unknown topic's settings", alter("topics", "nope", "--add-config", "segment.ms=1")

    yield "a broker", describe("brokers", "1")
    yield "all of a broker", describe("brokers", "1", "--all")
    yield "all brokers' defaults", describe("brokers", None, "--entity-default")
    yield "a broker's settings", alter(
        "brokers", "1", "--add-config", "log.retention.ms=7200000,message.max.bytes=2000000")
    yield "defaults of all brokers", alter(
        "brokers", None, "--add-config", "log.retention.ms=3600000,log.roll.ms=86400000")
    yield "a broker with settings", describe("brokers", "1")
    yield "the defaults that were set", describe("brokers", None, "--entity-default")
    yield "what a topic has of it", describe("topics", "t", "--all")
    yield "a fixed setting", alter("brokers", "1", "--add-config", "num.partitions=3")
    yield "a broker's bad value", alter("brokers", "1", "--add-config", "log.retention.ms=x")
    yield "another broker", alter("brokers", "7", "--add-config", "log.retention.ms=1")
    yield "another broker's", describe("brokers", "7")
    yield "a broker's settings taken away", alter(
        "brokers", "1", "--delete-config", "log.retention.ms,message.max.bytes")
    yield "the defaults taken away", alter(
        "brokers", None, "--delete-config", "log.retention.ms,log.roll.ms")
    yield "a broker as at first", describe("brokers", "1", "--all")

    yield "loggers", describe("broker-loggers", "1")
    yield "the root logger", alter("broker-loggers", "1", "--add-config", "root=WARN")
    yield "loggers after it", describe("broker-loggers", "1")
    yield "an unknown level", alter("broker-loggers", "1", "--add-config", "root=LOUD")
    yield "an unknown logger", alter("broker-loggers", "1", "--add-config", "nope=INFO")
    yield "the root logger without one", alter("broker-loggers", "1", "--delete-config", "root")
    yield "another broker's loggers", describe("broker-loggers", "7")
    yield "the root logger as before", alter("broker-loggers", "1", "--add-config", "root=INFO")

    yield "no subscriptions", describe("client-metrics")
    yield "an unknown subscription", describe("client-metrics", "m")
    yield "a subscription", alter(
        "client-metrics", "m", "--add-config", "interval.ms=5000,metrics=[org.apache.],match=[]")
    yield "a bad interval", alter("client-metrics", "m", "--add-config", "interval.ms=1")
    yield "a bad pattern", alter("client-metrics", "m", "--add-config", "match=[who=me]")
    yield "the subscription", describe("client-metrics", "m")
    yield "every subscription", describe("client-metrics")
    yield "the subscription without interval", alter(
        "client-metrics", "m", "--delete-config", "interval.ms")
    yield "what is left of it", describe("client-metrics", "m")
    yield "kafka-client-metrics lists", [METRICS, "--list"]
    yield "kafka-client-metrics describes", [METRICS, "--describe"]
    yield "kafka-client-metrics alters", [
        METRICS, "--alter", "--name", "n", "--metrics", "a.,b.", "--interval", "60000"]
    yield "kafka-client-metrics shows it", [METRICS, "--describe", "--name", "n"]
    yield "kafka-client-metrics deletes", [METRICS, "--delete", "--name", "n"]
    yield "kafka-client-metrics lists what is left", [METRICS, "--list"]

    yield from quotas(alter, describe)

    yield "a group's settings", alter(
        "groups", "g", "--add-config", "consumer.session.timeout.ms=50000")
    yield "a group's bad value", alter(
        "groups", "g", "--add-config", "consumer.session.timeout.ms=1")
    yield "a group's settings taken away", alter(
        "groups", "g", "--delete-config", "consumer.session.timeout.ms")


def quotas(alter, describe):
    """Limits of users, clients and addresses."""
    def of_both(user, client, *words):
        def where(kind, name):
            named = ["--entity-default"] if name is None else ["--entity-name", name]
            return ["--entity-type", kind, *named]
        return [CONFIGS, *words[:1], *where("users", user), *where("clients", client), *words[1:]]

    yield "no limits of users", describe("users")
    yield "no limits of clients", describe("clients")
    yield "no limits of addresses", describe("ips")
    yield "a user's limits", alter(
        "users", "ann", "--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048")
    yield "any user's limits", alter("users", None, "--add-config", "request_percentage=12.5")
    yield "a client's limit", alter("clients", "app", "--add-config", "consumer_byte_rate=4096")
    yield "any client's limit", alter(
        "clients", None, "--add-config", "controller_mutation_rate=1000")
    yield "an address's limit", alter(
        "ips", "10.0.0.1", "--add-config", "connection_creation_rate=50")
    yield "any address's limit", alter(
        "ips", None, "--add-config", "connection_creation_rate=1000")
    yield "a user's client's limit", of_both(
        "ann", "app", "--alter", "--add-config", "producer_byte_rate=512")
    yield "a user's any client's limit", of_both(
        "ann", None, "--alter", "--add-config", "producer_byte_rate=256")
    yield "a user with limits", describe("users", "ann")
    yield "users with limits", describe("users")
    yield "the default of users", describe("users", None, "--entity-default")
    yield "clients with limits", describe("clients")
    yield "a client with limits", describe("clients", "app")
    yield "addresses with limits", describe("ips")
    yield "a user's client with a limit", of_both("ann", "app", "--describe")
    yield "a limit of nought", alter("users", "ann", "--add-config", "producer_byte_rate=0")
    yield "a limit that is no number", alter("users", "ann", "--add-config", "producer_byte_rate=x")
    yield "an unknown limit", alter("users", "ann", "--add-config", "bytes=1")
    yield "a client's connections", alter(
        "clients", "app", "--add-config", "connection_creation_rate=1")
    yield "a limit that is not there", alter("clients", "no", "--delete-config", "producer_byte_rate")
    yield "a user's limits taken away", alter(
        "users", "ann", "--delete-config", "producer_byte_rate,consumer_byte_rate")
    yield "what is left of a user's", describe("users", "ann")
    yield "any user's limits taken away", alter(
        "users", None, "--delete-config", "request_percentage")
    yield "the addresses' limits taken away", alter(
        "ips", None, "--delete-config", "connection_creation_rate")
    yield "what is left of the addresses'", describe("ips")


def ask(bootstrap, folder, all_words):
    """What the tools printed that are asked at `bootstrap`."""
    at = ["--bootstrap-server", bootstrap]
    return tools(folder, [[words[0], *at, *words[1:]] for words in all_words])


def tools(folder, all_words, typed=None):
    """What the tools printed, one process for all of them; `typed` is what each is given to read."""
    file = folder / "tools.json"
    typed = typed or [""] * len(all_words)
    file.write_text(json.dumps([[*each] for each in zip(typed, all_words)]))
    libraries = f"{kafka_home()}/libs/*"
    classes = java.classes("AdminTools", libraries)
    done = subprocess.run(
        ["java", "-Xmx256m", "-cp", f"{classes}:{libraries}", "-Dlog4j2.level=ERROR", "AdminTools",
         str(file)], capture_output=True, text=True, timeout=SECONDS_MAX)
    lines = done.stdout.splitlines()
    answers = [json.loads(line.removeprefix(ANSWER)) for line in lines if line.startswith(ANSWER)]
    check(len(answers) == len(all_words),
          f"{len(answers)} of {len(all_words)} answered: {done.stderr[-1500:]}")
    return answers


# Kafka writes it into its metadata log where eligible leader replicas are switched on.
OF_FORMAT = "DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1"


def told(name, answer):
    """Lines of what was printed, in the order of their names, without what differs for a reason:
    where a program stood when it failed; the broker's address; settings of our own and of one
    broker; what Kafka's format sets; which loggers there are but the root."""
    lines = []
    for text in (answer["out"], answer["error"]):
        of_text = []
        text = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)
        for line in text.splitlines():
            if re.match(r"\s+(at |\.\.\. \d+ more)", line):
                continue
            setting = re.match(r"\s+([\w.$]+)=", line)
            setting = setting and setting.group(1)
            if setting and (setting in OF_ONE_BROKER or setting == "write.caching"
                            or setting.startswith("coreline.")):
                continue
            if f"{{{OF_FORMAT}}}" in line:
                continue
            line = line.replace(f"{OF_FORMAT}, ", "")
            if "loggers" in name and setting and setting != "root":
                check(re.search(r"=(FATAL|ERROR|WARN|INFO|DEBUG|TRACE) sensitive=", line), line)
                continue
            of_text.append(line)
        lines += sorted(of_text) if answer["code"] == 0 else of_text
    return answer["code"], lines


def compare(name, kafka, own):
    theirs, ours = told(name, kafka), told(name, own)
    if theirs == ours:
        return f"code {ours[0]}, {len(ours[1])} lines"
    only_theirs = [line for line in theirs[1] if line not in ours[1]]
    only_ours = [line for line in ours[1] if line not in theirs[1]]
    check(False, f"Kafka: {theirs[0]} {only_theirs}\n  Coreline: {ours[0]} {only_ours}")


def level_cell(broker):
    """A level that changes takes effect: the logger's lines come, and go again."""
    def set_level(level):
        words = [CONFIGS, "--alter", "--entity-type", "broker-loggers", "--entity-name", "1",
                 "--add-config", f"coreline.server.connection={level}"]
        answer = ask(broker.bootstrap, broker.folder, [words])[0]
        check(answer["code"] == 0, f"{answer}")

    def lines():
        with Connection(broker.bootstrap) as connection:
            connection.api_versions()
        time.sleep(0.2)
        return broker.log.read_text(errors="replace").count("a connection from")

    check(lines() == 0, "debug lines at level INFO")
    set_level("DEBUG")
    found = lines()
    check(found > 0, "no debug lines at level DEBUG")
    set_level("INFO")
    after = lines()
    check(lines() == after, "debug lines at level INFO again")
    return f"{found} lines at DEBUG"


def run(report, make_broker, dose, cores):
    """Every command on both brokers, and a log level's effect."""
    settings = {"num.partitions": 1, "node.id": 1}
    with make_broker("configs", settings) as broker:
        with Kafka(broker.folder / "kafka", broker.port + 2, settings) as kafka:
            java.classes("AdminTools", f"{kafka_home()}/libs/*")
            for each in (broker, kafka):
                with Connection(each.bootstrap) as connection:
                    connection.create_topic("t", 2)
            named = list(commands())
            words = [words for _, words in named]
            # Side by side: some commands wait for a broker that is not there.
            with ThreadPoolExecutor() as pool:
                asked = [pool.submit(ask, each.bootstrap, each.folder, words)
                         for each in (kafka, broker)]
                of_kafka, of_own = (answers.result() for answers in asked)
        for (name, _), theirs, ours in zip(named, of_kafka, of_own):
            report.cell(f"configs {name}", lambda: compare(name, theirs, ours))
        if broker.name == "coreline":
            report.cell("configs a log level takes effect", lambda: level_cell(broker))
