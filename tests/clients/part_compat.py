"""Apache's command-line tools, as an operator types them: each step on the broker and on an Apache Kafka
beside it, and what they print compared. `scripts/compat` prints the table of them."""

import functools
import json
import re
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import java
from brokers import ROOT, Kafka, kafka_home
from part_configs import tools
from report import check

EACH_CORES = False
# Whose output says how fast it was: the figures are another's business.
MEASURING = {"kafka-producer-perf-test", "kafka-consumer-perf-test", "kafka-e2e-latency"}


class Step:
    """One command: the tool, its words, what is typed into it."""

    def __init__(self, tool, words, typed="", at="--bootstrap-server"):
        self.tool, self.typed = tool, typed
        self.words, self.at = words.split() if isinstance(words, str) else words, at


def topics():
    def tool(words):
        return Step("kafka-topics", words)

    yield "create", tool("--create --topic t --partitions 3")
    yield "create it again", tool("--create --topic t")
    yield "create it if it is missing", tool("--create --topic t --if-not-exists")
    yield "create with settings", tool(
        "--create --topic s --config retention.ms=1000000 --config cleanup.policy=compact")
    yield "create with a wrong setting", tool("--create --topic w --config retention.ms=x")
    yield "create with an unknown setting", tool("--create --topic w --config retention=1")
    yield "create with three replicas", tool("--create --topic w --replication-factor 3")
    yield "create with no partition", tool("--create --topic w --partitions 0")
    yield "create by assignment", tool("--create --topic a --replica-assignment 1,1")
    yield "create by a wrong assignment", tool("--create --topic w --replica-assignment 1,9")
    yield "create a wrong name", tool(["--create", "--topic", "w w"])
    yield "create one that collides", tool("--create --topic x.y")
    yield "create the one it collides with", tool("--create --topic x_y")
    yield "list", tool("--list")
    yield "list one", tool("--list --topic t")
    yield "describe", tool("--describe --topic t")
    yield "describe all", tool("--describe")
    yield "describe none", tool("--describe --topic nope")
    yield "describe none, and none is needed", tool("--describe --topic nope --if-exists")
    yield "describe what has settings", tool("--describe --topics-with-overrides")
    yield "describe what is short of replicas", tool("--describe --under-replicated-partitions")
    yield "describe what has no leader", tool("--describe --unavailable-partitions")
    yield "more partitions", tool("--alter --topic t --partitions 4")
    yield "fewer partitions", tool("--alter --topic t --partitions 1")
    yield "delete", tool("--delete --topic a")
    yield "delete it again", tool("--delete --topic a")
    yield "delete it if it is there", tool("--delete --topic a --if-exists")


def console():
    lines = "".join(f"k{number}:v{number}\n" for number in range(20))
    keyed = ["--property", "parse.key=true", "--property", "key.separator=:"]
    shown = ["--property", "print.key=true", "--property", "print.partition=true",
             "--property", "print.offset=true"]

    def produce(*words, typed=lines):
        return Step("kafka-console-producer", ["--topic", "t", *words], typed)

    def consume(*words):
        return Step("kafka-console-consumer", ["--timeout-ms", "15000", *words])

    yield "write lines", produce(*keyed)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        yield f"write lines by {codec}", produce(*keyed, "--compression-codec", codec)
    yield "write with one ack", Step("kafka-console-producer", "--topic u --producer-property acks=1",
                                     "one\ntwo\n")
    yield "write a line without its key", produce(*keyed, typed="none\n")
    yield "read all", consume("--topic", "t", "--from-beginning", "--max-messages", "100", *shown)
    yield "read a partition", consume("--topic", "t", "--partition", "0", "--offset", "earliest",
                                      "--max-messages", "5", *shown)
    yield "read from an offset", consume("--topic", "t", "--partition", "1", "--offset", "2",
                                         "--max-messages", "3", *shown)
    yield "read committed", consume("--topic", "t", "--from-beginning", "--max-messages", "100",
                                    "--isolation-level", "read_committed")
    yield "read as a group", consume("--topic", "t", "--from-beginning", "--max-messages", "100",
                                     "--group", "g")
    yield "write more lines", produce(*keyed)
    yield "read on as the group", consume("--topic", "t", "--max-messages", "20", "--group", "g")
    yield "read topics by a pattern", consume("--include", "t|u", "--from-beginning",
                                              "--max-messages", "122", "--group", "pattern")
    yield "a partition that is not there", consume("--topic", "t", "--partition", "9", "--offset",
                                                   "earliest", "--max-messages", "1")


def groups():
    def tool(words):
        return Step("kafka-consumer-groups", words)

    yield "list", tool("--list")
    yield "list with states", tool("--list --state")
    yield "list the empty ones", tool("--list --state Empty")
    yield "list a wrong state", tool("--list --state Sleepy")
    yield "list types", tool("--list --type")
    yield "describe", tool("--describe --group g")
    yield "describe all", tool("--describe --all-groups")
    yield "describe members", tool("--describe --group g --members --verbose")
    yield "describe the state", tool("--describe --group g --state")
    yield "describe none", tool("--describe --group nope")
    yield "a reset that is only shown", tool(
        "--reset-offsets --group g --topic t --to-earliest --dry-run")
    for name, to in (("the beginning", "--to-earliest"), ("the end", "--to-latest"),
                     ("an offset", "--to-offset 3"), ("two back", "--shift-by -2"),
                     ("beyond the end", "--to-offset 999999"), ("what it is", "--to-current"),
                     ("a time", "--to-datetime 2020-01-01T00:00:00.000"),
                     ("a while ago", "--by-duration P1D")):
        yield f"a reset to {name}", tool(f"--reset-offsets --group g --topic t {to} --execute")
    yield "a reset of one partition", tool(
        "--reset-offsets --group g --topic t:1 --to-earliest --execute")
    yield "a reset of a new group", tool(
        "--reset-offsets --group fresh --topic t --to-earliest --execute")
    yield "a reset of no topic", tool("--reset-offsets --group g --topic nope --to-earliest --execute")
    yield "a reset as a file", tool("--reset-offsets --group g --topic t --to-latest --export --dry-run")
    yield "describe after them", tool("--describe --group g")
    yield "offsets of a partition go", tool("--delete-offsets --group g --topic t:0")
    yield "offsets of a topic go", tool("--delete-offsets --group g --topic t")
    yield "offsets of no group go", tool("--delete-offsets --group nope --topic t")
    yield "a group goes", tool("--delete --group g")
    yield "it goes again", tool("--delete --group g")
    yield "what is left", tool("--list")
    yield "groups of all kinds", Step("kafka-groups", "--list")
    yield "consumers' groups", Step("kafka-groups", "--list --consumer")


def offsets():
    for time in ("-1", "-2", "earliest", "latest", "0"):
        yield f"offsets at {time}", Step("kafka-get-offsets", f"--topic t --time {time}")
    # Which record of those of a moment is the latest differs from run to run.
    for time in ("-3", "max-timestamp"):
        yield f"offsets at {time}", Step("kafka-get-offsets", f"--topic s --time {time}")
    yield "offsets of a range", Step("kafka-get-offsets", "--topic-partitions t:0-2")
    yield "offsets of none", Step("kafka-get-offsets", "--topic nope")
    yield "all offsets", Step("kafka-get-offsets", "--exclude-internal-topics")
    yield "directories", Step("kafka-log-dirs", "--describe --topic-list t,s")


def loads():
    yield "produce", Step("kafka-producer-perf-test", "--topic t --num-records 2000 --record-size 100 "
                          "--throughput -1", at="--bootstrap-server")
    yield "produce by time", Step("kafka-producer-perf-test", "--topic t --num-records 200 --record-size "
                                  "1000 --throughput 1000 --command-property acks=1")
    yield "consume", Step("kafka-consumer-perf-test", "--topic t --num-records 1000")
    yield "consume as a group", Step("kafka-consumer-perf-test", "--topic t --num-records 1000 --group p")
    yield "there and back", Step("kafka-e2e-latency", "--topic e --num-records 20 --producer-acks all "
                                 "--record-size 100")
    yield "a verifiable producer", Step("kafka-verifiable-producer", "--topic v --max-messages 10")
    yield "a verifiable consumer", Step("kafka-verifiable-consumer", "--topic v --group-id v --max-messages"
                                        " 10 --reset-policy earliest")


def cluster():
    yield "the cluster's id", Step("kafka-cluster", "cluster-id")
    yield "its brokers", Step("kafka-cluster", "list-endpoints")
    yield "its controllers", Step("kafka-cluster", "list-endpoints --include-fenced-brokers")
    yield "unregister no broker", Step("kafka-cluster", "unregister --id 9")
    yield "versions", Step("kafka-broker-api-versions", "")
    yield "features", Step("kafka-features", "describe")
    yield "a feature to a level that it has not", Step(
        "kafka-features", "upgrade --feature metadata.version=99")
    yield "an unknown feature", Step("kafka-features", "upgrade --feature nope=1")
    yield "the quorum", Step("kafka-metadata-quorum", "describe --status")
    yield "the quorum's replication", Step("kafka-metadata-quorum", "describe --replication")
    yield "elect all leaders", Step(
        "kafka-leader-election", "--election-type preferred --all-topic-partitions")
    yield "elect one", Step(
        "kafka-leader-election", "--election-type preferred --topic t --partition 0")
    yield "elect one of no topic", Step(
        "kafka-leader-election", "--election-type unclean --topic nope --partition 0")
    yield "reassignments", Step("kafka-reassign-partitions", "--list")


# Where the replicas of a partition are to go: by the name of a file, which stands in each broker's folder.
MOVES = {
    "anywhere": ("t", 0, "any"),
    "home": ("t", 1, "{data}"),
    "nowhere": ("t", 1, "/nowhere"),
    "unknown": ("nope", 0, "{data}"),
}


def write_moves(broker):
    for name, (topic, partition, directory) in MOVES.items():
        wish = {"topic": topic, "partition": partition, "replicas": [1],
                "log_dirs": [directory.format(data=broker.data)]}
        file = broker.folder / f"moves-{name}.json"
        file.write_text(json.dumps({"version": 1, "partitions": [wish]}))


def moves():
    def tool(verb, name, words=""):
        return Step("kafka-reassign-partitions",
                    f"--{verb} --reassignment-json-file {{folder}}/moves-{name}.json {words}")

    for name in MOVES:
        yield f"a move {name}", tool("execute", name)
        yield f"what became of it, {name}", tool("verify", name)
    yield "a slow move home", tool("execute", "home", "--replica-alter-log-dirs-throttle 1000000")
    yield "what became of the slow one", tool("verify", "home")
    yield "a move called off", tool("cancel", "home")
    yield "directories after them", Step("kafka-log-dirs", "--describe --topic-list t")
    yield "directories of no broker", Step("kafka-log-dirs", "--describe --broker-list 9")


def security():
    yield "access lists", Step("kafka-acls", "--list")
    yield "tokens", Step("kafka-delegation-tokens", "--describe")
    yield "users", Step("kafka-configs", "--describe --entity-type users")
    yield "clients", Step("kafka-configs", "--describe --entity-type clients")
    yield "addresses", Step("kafka-configs", "--describe --entity-type ips")
    yield "a client's quota", Step(
        "kafka-configs", "--alter --entity-type clients --entity-name c --add-config "
        "producer_byte_rate=1000000")
    yield "a user's quota", Step(
        "kafka-configs", "--alter --entity-type users --entity-default --add-config "
        "consumer_byte_rate=1000000")
    yield "a wrong quota", Step(
        "kafka-configs", "--alter --entity-type clients --entity-name c --add-config nope=1")
    yield "an address's quota", Step(
        "kafka-configs", "--alter --entity-type ips --entity-name 127.0.0.9 --add-config "
        "connection_creation_rate=10")
    yield "clients with quotas", Step("kafka-configs", "--describe --entity-type clients")
    yield "users with quotas", Step("kafka-configs", "--describe --entity-type users")
    yield "the quota goes", Step(
        "kafka-configs", "--alter --entity-type clients --entity-name c --delete-config "
        "producer_byte_rate")
    yield "clients without it", Step("kafka-configs", "--describe --entity-type clients --entity-name c")


def producers():
    yield "producers of a partition", Step("kafka-transactions", "describe-producers --topic u --partition 0")
    yield "transactions", Step("kafka-transactions", "list")
    yield "hanging ones", Step("kafka-transactions", "find-hanging --broker-id 1")


CHAPTERS = (topics, console, groups, offsets, loads, cluster, moves, security, producers)


def words_of(step, broker):
    """The class behind the tool, then its words; the address stands behind the verb of one."""
    at = [step.at, broker.bootstrap]
    told = [word.replace("{folder}", str(broker.folder)) for word in step.words]
    words = [*told[:1], *at, *told[1:]] if step.tool == "kafka-cluster" else [*at, *told]
    return [tool_class(step.tool), *words]


@functools.cache
def tool_class(tool):
    """As the script of that name starts it."""
    script = (ROOT / "scripts/kafka.d/bin/kafka-tool.sh").read_text()
    name = re.search(rf"^{tool} +(\S+)$", script, re.M).group(1)
    return name.replace("$t.", "org.apache.kafka.tools.")


# What is each broker's own: (pattern, what stands in its place).
OWN = [
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"localhost:\d+", "ADDRESS"),
    (r"TopicId: \S+", "TopicId: ID"),
    (r"Cluster ID: \S+", "Cluster ID: ID"),
    (r"ClusterId: +\S+", "ClusterId: ID"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\]", "[TIME]"),
    (r'"timestamp":\d+', '"timestamp":TIME'),
    (r"/\S*/data\S*", "PATH"),
    (r'"(size|offsetLag)":\d+', r'"\1":N'),
    # Kafka writes it where eligible leader replicas are switched on, and then every topic has a setting.
    (r"(Configs: )min\.insync\.replicas=1,?", r"\1"),
    # A set, in another order in each process.
    (r"(Valid (?:states|types) are: ).*", r"\1A SET"),
    (r"client-id=[\w-]+", "client-id=ID"),
    (r"console-consumer-\d+", "console-consumer-N"),
    (r"(127\.0\.0\.1) +\d+", r"\1 PORT"),
    (r"\b1[6-9]\d{11}\b", "TIME"),
    (r"(Epoch|HighWatermark): +\d+", r"\1: N"),
    # Kafka's voters of a fixed list have no directory.
    (r"^(\d+\s+)[\w-]{22}(\s+)\d+", r"\1DIRECTORY\2N"),
    (r'"directoryId": "[\w-]+", ', ""),
]


def told(step, answer):
    """Lines without what is each broker's own, sorted: whoever reads them in another order reads the
    same."""
    code, text = answer["code"], answer["out"] + answer["error"]
    for pattern, to in OWN:
        text = re.sub(pattern, to, text, flags=re.M)
    if step.tool in MEASURING:
        text = re.sub(r"\d+(\.\d+)?", "N", text)
    lines = [line.rstrip() for line in text.splitlines()
             if line.strip() and not re.match(r"\s+(at |\.\.\. \d+ more)", line)]
    # Widths follow the longest cell.
    lines = [re.sub(r" {2,}|\t", "  ", line) for line in lines]
    if step.tool == "kafka-verifiable-consumer":
        # The producer before it prints on while it ends.
        lines = [line for line in lines if '"producer_' not in line and '"tool_data"' not in line]
    if step.tool == "kafka-transactions":
        # A sequence number follows from how many records went to a partition.
        lines = [re.sub(r"^(\d+  \d+  -1  )\d+", r"\1N", line) for line in lines]
    if "--topics-with-overrides" in step.words:
        lines = [line for line in lines if not line.endswith("Configs:")]
    if step.tool in MEASURING:
        # How many lines of progress there are is a matter of time.
        lines = list(OrderedDict.fromkeys(lines))
    return code, sorted(lines)


def differences(step, kafka, own):
    """Lines that only one of both printed; none where they are alike."""
    theirs, ours = told(step, kafka), told(step, own)
    if theirs == ours:
        return []
    found = [] if theirs[0] == ours[0] else [f"code {theirs[0]} of Kafka, {ours[0]}"]
    found += [f"Kafka: {line}" for line in theirs[1] if line not in ours[1]]
    found += [f"Coreline: {line}" for line in ours[1] if line not in theirs[1]]
    return found or ["the same lines in another order or number"]


# Steps that differ, and why.
EXPLAINED = {
    ("kafka-broker-api-versions", "versions"): "transactions, groups of other kinds, access lists, tokens and"
    " what brokers say to each other are not served",
    ("kafka-features", "features"): "of Kafka's features `metadata.version` exists here",
    ("kafka-acls", "access lists"): "there are no access lists yet",
    ("kafka-transactions", "transactions"): "there are no transactions yet",
    ("kafka-cluster", "unregister no broker"): "UnregisterBroker belongs to a cluster of several",
}


def judge(found, why):
    """Nothing may differ that has no reason, and no reason may stand without a difference."""
    if why:
        check(found, f"alike now, though explained as different: {why}")
        return f"differs: {why}"
    check(not found, "\n  ".join(found[:12]))
    return None


def run(report, make_broker, dose, cores, results=None):
    """Every chapter on both brokers; `results` takes (tool, step, differences)."""
    settings = {"num.partitions": 1, "node.id": 1, "coreline.cores": cores,
                "group.initial.rebalance.delay.ms": 0}
    with make_broker("compat", settings) as broker:
        with Kafka(broker.folder / "kafka", broker.port + 2, {"node.id": 1}) as kafka:
            java.classes("AdminTools", f"{kafka_home()}/libs/*")
            for each in (kafka, broker):
                write_moves(each)
            for chapter in CHAPTERS:
                steps = list(chapter())
                with ThreadPoolExecutor() as pool:
                    asked = [pool.submit(tools, each.folder,
                                         [words_of(step, each) for _, step in steps],
                                         [step.typed for _, step in steps]) for each in (kafka, broker)]
                    theirs, ours = (answers.result() for answers in asked)
                for (name, step), their, our in zip(steps, theirs, ours):
                    found, why = differences(step, their, our), EXPLAINED.get((step.tool, name))
                    if results is not None:
                        results.append((step.tool, name, found, why))
                    report.cell(f"compat {step.tool} {name}",
                                lambda found=found, why=why: judge(found, why))
