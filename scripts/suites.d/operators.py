"""What an operator opens: kcat, Burrow and rsyslog (Debian), kaskade (PyPI), kafka-console (npm), kadm (Go).

A case is one question to a tool: it shows no error, and its numbers are the true ones. kafka_exporter and kminion are
no Go modules that every proxy serves; kadm is the library that kminion asks through, and Burrow speaks through
sarama, as kafka_exporter does, with a 2019 client's versions.
"""

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from base import PASSED, SKIPPED, Case, cache, call, failed, once
from report import Failed, check

HERE = Path(__file__).resolve().parent
KASKADE, CONSOLE, KADM, FRANZ = "5.1.0", "3.1.55", "v1.20.0", "v1.22.3"
DEBIAN = {"kcat": "kcat", "Burrow": "burrow", "rsyslogd": "rsyslog-kafka", "tmux": "tmux", "zookeeper": "zookeeper"}
ZOOKEEPER = Path("/usr/share/java/zookeeper.jar")
SECONDS_MAX = 60
TOPIC, PARTITIONS, GROUP = "orders", 4, "billing"
# Of each partition the group has read so many records, and so many came since.
READ, BEHIND = 25, 10
HELD = READ + BEHIND


class Operators:
    name, version = "operators", "2026-11"

    def __init__(self):
        self.home = None

    def prepare(self):
        for command, package in DEBIAN.items():
            if not is_here(command) and shutil.which("apt-get"):
                subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.home = cache(f"operators-{KASKADE}-{CONSOLE}-{KADM}")
        once(self.home, build)

    def run(self, broker, folder, only):
        fill(broker)
        cases = {}
        for name, needs, ask in CASES:
            if only and not only.search(name):
                continue
            missing = [command for command in needs if not is_here(command)]
            if missing:
                cases[name] = Case(SKIPPED, f"there is no {missing[0]} here")
                continue
            place = folder / re.sub(r"\W+", "-", name)
            place.mkdir()
            try:
                ask(self.home, broker, place)
                cases[name] = Case(PASSED)
            except (Failed, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                cases[name] = failed(f"{type(error).__name__}: {error}")
        return cases


def is_here(command):
    return ZOOKEEPER.exists() if command == "zookeeper" else shutil.which(command) is not None


def build(home):
    call([sys.executable, "-m", "venv", home / "venv"], home)
    call([home / "venv/bin/pip", "install", "-q", "--disable-pip-version-check", f"kaskade=={KASKADE}"], home)
    if shutil.which("npm"):
        (home / "npm").mkdir()
        call(["npm", "install", "--no-audit", "--no-fund", "--prefix", home / "npm", f"kafka-console@{CONSOLE}"], home)
    if shutil.which("go"):
        shutil.copytree(HERE / "kadm", home / "kadm")
        (home / "kadm/go.mod").write_text(
            f"module lag\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/twmb/franz-go {FRANZ}\n"
            f"\tgithub.com/twmb/franz-go/pkg/kadm {KADM}\n)\n")
        call(["go", "build", "-mod=mod", "-o", home / "lag", "."], home / "kadm")


def told(words, lines=None, seconds=SECONDS_MAX):
    """What a tool says; it must end well and show no error."""
    done = subprocess.run([str(word) for word in words], input=lines, text=True, timeout=seconds,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = done.stdout + done.stderr
    check(done.returncode == 0, f"it ended with {done.returncode}: {said[-500:]}")
    check(not re.search(r"\b(?:error|exception|traceback|failed)\b", done.stderr, re.I), done.stderr[-500:])
    return done.stdout


def kcat(broker, *words, lines=None):
    return told(["kcat", "-b", broker.bootstrap, *words], lines)


def fill(broker):
    """A topic, and a group that is behind by the same in each partition."""
    def produce(count):
        for index in range(PARTITIONS):
            lines = "".join(f"record {number}\n" for number in range(count))
            kcat(broker, "-P", "-t", TOPIC, "-p", str(index), lines=lines)

    kcat(broker, "-P", "-t", TOPIC, lines="")
    deadline = time.monotonic() + SECONDS_MAX
    while f'topic "{TOPIC}" with {PARTITIONS} partitions' not in kcat(broker, "-L", "-t", TOPIC):
        check(time.monotonic() < deadline, "the topic is not made")
        time.sleep(0.1)
    produce(READ)
    read = subprocess.run(["kcat", "-b", broker.bootstrap, "-q", "-X", "auto.offset.reset=earliest", "-c",
                           str(READ * PARTITIONS), "-G", GROUP, TOPIC], timeout=SECONDS_MAX, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(read.stdout.count("record") == READ * PARTITIONS, f"the group read {read.stdout[-200:]} {read.stderr[-500:]}")
    produce(BEHIND)


def until(ask, wanted, what):
    """Asks until the answer is the wanted one."""
    deadline, answer = time.monotonic() + SECONDS_MAX, None
    while time.monotonic() < deadline:
        try:
            answer = ask()
        except (Failed, OSError, KeyError, ValueError) as error:
            answer = error
        if answer == wanted:
            return
        time.sleep(0.5)
    raise Failed(f"{what}: {answer} instead of {wanted}")


def kcat_metadata(_home, broker, _folder):
    said = kcat(broker, "-L")
    check(f'topic "{TOPIC}" with {PARTITIONS} partitions' in said, said)
    check(f"broker 1 at {broker.bootstrap}" in said and "Broker:" not in said, said)


def kcat_offsets(_home, broker, _folder):
    for index in range(PARTITIONS):
        said = kcat(broker, "-Q", "-t", f"{TOPIC}:{index}:-1")
        check(said.split()[-1] == str(HELD), said)


def kcat_consume(_home, broker, _folder):
    said = kcat(broker, "-C", "-t", TOPIC, "-e", "-q", "-f", "%p %o\n").splitlines()
    check(sorted(said) == sorted(f"{index} {offset}" for index in range(PARTITIONS) for offset in range(HELD)),
          f"{len(said)} records")


def kadm_lag(home, broker, _folder):
    found = json.loads(told([home / "lag", broker.bootstrap, GROUP]))
    wanted = {"state": "Empty", "members": 0, "lag": {str(index): BEHIND for index in range(PARTITIONS)}}
    check(found == wanted, f"{found} instead of {wanted}")


def console(home, broker, *words, lines=None):
    return told([home / "npm/node_modules/.bin/kcli", "-b", broker.bootstrap, *words], lines)


def console_metadata(home, broker, _folder):
    topics = json.loads(console(home, broker, "metadata"))["topicMetadata"]
    mine = [topic for topic in topics if (topic.get("topic") or topic.get("name")) == TOPIC]
    check(len(mine) == 1 and len(mine[0]["partitionMetadata"]) == PARTITIONS, f"{topics}")


def console_offsets(home, broker, _folder):
    ends = [json.loads(line) for line in console(home, broker, "topic:offsets", TOPIC).splitlines()]
    check(sorted(one["high"] for one in ends) == [str(HELD)] * PARTITIONS, f"{ends}")
    group = json.loads(console(home, broker, "topic:offsets", TOPIC, "-g", GROUP))
    check([one["offset"] for one in group["partitions"]] == [str(READ)] * PARTITIONS, f"{group}")


def console_config(home, broker, _folder):
    configs = json.loads(console(home, broker, "config", "-r", "topic", "-n", TOPIC))["configs"]
    values = {config["name"]: config["value"] for config in configs}
    check(values["cleanup.policy"] == "delete" and "retention.ms" in values, f"{values}")


def console_records(home, broker, folder):
    console(home, broker, "topic:create", "notes")
    notes = "".join(json.dumps({"key": str(number), "value": f"note {number}"}) + "\n" for number in range(20))
    console(home, broker, "produce", "notes", lines=notes)
    console(home, broker, "topic:dump", "notes", "-o", str(folder / "dump"))
    # It writes each value as JSON within its JSON.
    values = sorted(json.loads(json.loads(line)["value"]) for line in (folder / "dump").read_text().splitlines())
    check(values == sorted(f"note {number}" for number in range(20)), f"{values}")


def rsyslog(_home, broker, folder):
    (folder / "in").touch()
    (folder / "conf").write_text(
        f'global(workDirectory="{folder}")\nmodule(load="imfile")\nmodule(load="omkafka")\n'
        f'input(type="imfile" File="{folder}/in" Tag="shop")\n'
        'template(name="line" type="string" string="%msg%")\n'
        f'action(type="omkafka" broker=["{broker.bootstrap}"] topic="syslog" template="line" '
        f'errorFile="{folder}/errors" confParam=["compression.codec=snappy"])\n')
    with subprocess.Popen(["rsyslogd", "-n", "-f", folder / "conf", "-i", folder / "pid"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(2)
            with open(folder / "in", "a") as out:
                out.writelines(f"line {number}\n" for number in range(50))
            until(lambda: kcat(broker, "-C", "-t", "syslog", "-e", "-q").count("line"), 50, "lines")
            check(not (folder / "errors").exists(), "rsyslog wrote of errors")
        finally:
            process.terminate()


def kaskade(home, broker, _folder):
    """Its screen of topics, as a terminal shows it."""
    tmux = ["tmux", "-L", f"coreline-{broker.port}"]
    subprocess.run([*tmux, "new-session", "-d", "-x", "180", "-y", "50",
                    f"{home}/venv/bin/kaskade admin -b {broker.bootstrap}"], check=True)
    screen = ""

    def shown():
        nonlocal screen
        screen = subprocess.run([*tmux, "capture-pane", "-p"], text=True, stdout=subprocess.PIPE).stdout
        row = next((line for line in screen.splitlines() if re.search(rf"\b{TOPIC}\b", line)), "")
        return re.findall(r"\d+", row)[:1]

    try:
        until(shown, [str(PARTITIONS)], "the partitions in its row")
        check(not re.search("error|traceback", screen, re.I), screen)
    except Failed as error:
        raise Failed(f"{error}\n{screen}") from None
    finally:
        subprocess.run([*tmux, "kill-server"])


BURROW = """[general]
pidfile="{folder}/pid"
[logging]
level="info"
[zookeeper]
servers=["127.0.0.1:{zookeeper}"]
timeout=6
root-path="/burrow"
[client-profile.one]
client-id="burrow"
kafka-version="2.0.0"
[cluster.local]
class-name="kafka"
servers=["{bootstrap}"]
client-profile="one"
topic-refresh=5
offset-refresh=1
[consumer.local]
class-name="kafka"
cluster="local"
servers=["{bootstrap}"]
client-profile="one"
[httpserver.one]
address="127.0.0.1:{port}"
"""


def burrow(_home, broker, folder):
    """Lag as Burrow sees it, which reads the topic of offsets itself."""
    port, zookeeper = broker.port + 3, broker.port + 4
    (folder / "burrow.toml").write_text(BURROW.format(
        folder=folder, bootstrap=broker.bootstrap, port=port, zookeeper=zookeeper))
    java = ["java", "-Xmx128m", "-cp", "/usr/share/java/*", "org.apache.zookeeper.server.ZooKeeperServerMain"]

    def ask(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v3/kafka/local/{path}", timeout=5) as answer:
            return json.loads(answer.read())

    def lag():
        status = ask(f"consumer/{GROUP}/lag")["status"]
        return status["totallag"], [one["current_lag"] for one in status["partitions"]]

    with open(folder / "log", "w") as log:
        keeper = subprocess.Popen([*java, str(zookeeper), folder / "zookeeper"], stdout=log, stderr=log)
        watcher = None
        try:
            time.sleep(3)
            watcher = subprocess.Popen(["Burrow", "-config-dir", folder], stdout=log, stderr=log)
            until(lambda: ask(f"topic/{TOPIC}")["offsets"], [HELD] * PARTITIONS, "ends")
            until(lag, (BEHIND * PARTITIONS, [BEHIND] * PARTITIONS), "lag")
        finally:
            for process in filter(None, [watcher, keeper]):
                process.kill()
                process.wait()
    errors = re.findall(r'.*"level":"error".*', (folder / "log").read_text())
    check(not errors, f"{errors[:2]}")


CASES = [
    ("kcat: metadata", ["kcat"], kcat_metadata),
    ("kcat: offsets", ["kcat"], kcat_offsets),
    ("kcat: records", ["kcat"], kcat_consume),
    ("kadm: state and lag of a group", ["go"], kadm_lag),
    ("kafka-console: metadata", ["npm"], console_metadata),
    ("kafka-console: offsets of a topic and a group", ["npm"], console_offsets),
    ("kafka-console: settings", ["npm"], console_config),
    ("kafka-console: a topic, records in and out", ["npm"], console_records),
    ("rsyslog: lines to a topic", ["rsyslogd"], rsyslog),
    ("kaskade: topics", ["tmux"], kaskade),
    ("Burrow: ends and lag", ["Burrow", "zookeeper", "java"], burrow),
]
