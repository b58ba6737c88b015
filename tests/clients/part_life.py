"""Starting, refusing to start, reporting, stopping: what an operator meets."""

import ctypes
import re
import shutil
import signal
import subprocess
import time

from brokers import ROOT
from part_tools import perf, tool
from report import check
from wire import Connection, batch_of, produce

EACH_CORES = False
REFUSAL_SECONDS_MAX = 30
# The promise; the gate, on a machine that does other things too, waits three times as long.
STOP_SECONDS_MAX = 2.0
GATE_SLACK = 3

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
IO_URING_SETUP, EPERM = 425, 1


def forbid_io_uring():
    """In a child: the system call io_uring_setup answers EPERM, as under Docker's default profile."""
    class Filter(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte),
                    ("k", ctypes.c_uint)]

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]

    steps = (Filter * 4)(
        Filter(0x20, 0, 0, 0),                       # load the number of the system call
        Filter(0x15, 0, 1, IO_URING_SETUP),          # is it this one?
        Filter(0x06, 0, 0, 0x00050000 | EPERM),      # then answer EPERM
        Filter(0x06, 0, 0, 0x7FFF0000))              # else allow it
    program = Program(4, steps)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def refusal(words, pattern, **options):
    """It must end with code 1 and a line that says why."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=REFUSAL_SECONDS_MAX,
                          **options)
    text = done.stdout + done.stderr
    check(done.returncode == 1, f"exit code {done.returncode}: {text[-1000:]}")
    found = re.search(pattern, text)
    check(found, f"no /{pattern}/ in: {text[-1000:]}")
    return next(line for line in text.splitlines() if found.group(0) in line).split("ERROR ")[-1]


def refusal_cells(report, broker):
    other = broker.folder / "other"

    def words(port, data, *more):
        found = [str(broker.binary), "--override", f"listeners=PLAINTEXT://127.0.0.1:{port}",
                 "--override", f"log.dirs={data}",
                 "--override", "coreline.admin.listener="]
        for setting in more:
            found += ["--override", setting]
        return found

    free = broker.port + 1
    report.cell("life a data folder in use", lambda: refusal(
        words(free, broker.data), f"in use by another process.*pid {broker.process.pid}"))
    report.cell("life a port in use", lambda: refusal(
        words(broker.port, other), "another process has this port"))
    report.cell("life a misspelt setting", lambda: refusal(
        words(free, other, "num.partitoins=3"), "did you mean num.partitions"))
    report.cell("life a value out of range", lambda: refusal(
        words(free, other, "num.partitions=0"), "must be at least 1"))
    report.cell("life a data folder twice", lambda: refusal(
        words(free, f"{other},{other}/"), "names the folder .* twice"))
    report.cell("life io_uring forbidden", lambda: refusal(
        words(free, other), "io_uring", preexec_fn=forbid_io_uring))
    with Connection(broker.bootstrap) as connection:
        check(connection.api_versions(), "the first broker no longer answers")


def report_cell(broker):
    """SIGUSR1 prints the latencies, and the broker goes on."""
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("reported", 1)
        for _ in range(10):
            error, _ = produce(connection, "reported", 0, batch_of([b"x"]))
            check(error == 0, f"code {error}")
    broker.process.send_signal(signal.SIGUSR1)
    for _ in range(100):
        row = re.search(r"^Produce +(\d+) .*$", broker.log.read_text(errors="replace"), re.M)
        if row:
            check(int(row.group(1)) >= 10, row.group(0))
            return row.group(0)
        time.sleep(0.05)
    check(False, f"no table: {broker.tail()}")


def stop_cell(broker, stop_seconds_max):
    """SIGTERM under load: in order, soon, with the clean-shutdown file and the table."""
    load = subprocess.Popen(
        [str(ROOT / "scripts/kafka"), "kafka-producer-perf-test", "--topic", "load",
         "--num-records", "100000000", "--record-size", "100", "--throughput", "50000",
         "--producer-props", f"bootstrap.servers={broker.bootstrap}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(4)
        code, seconds = broker.stop()
    finally:
        load.kill()
        load.wait()
    check(code == 0, f"exit code {code}: {broker.tail()}")
    check(seconds <= stop_seconds_max, f"it took {seconds:.1f} s")
    check((broker.data / ".kafka_cleanshutdown").exists(), "no clean-shutdown file")
    check("stopped cleanly" in broker.tail(5), broker.tail(5))
    return f"{seconds:.2f} s"


def identity(broker):
    """Cluster id, topics with ids, settings and ends: all that must survive a restart."""
    at = ("--bootstrap-server", broker.bootstrap)
    described = tool("kafka-topics", *at, "--describe").splitlines()
    topics = sorted(line for line in described if line.startswith("Topic: ") and "TopicId" in line)
    offsets = sorted(tool("kafka-get-offsets", *at).split())
    cluster = re.search(r"cluster.id=.*", (broker.data / "meta.properties").read_text()).group(0)
    return cluster, topics, offsets


def restart_cell(broker):
    broker.start()
    first = identity(broker)
    check(first[1] and first[2], f"nothing to compare: {first}")
    broker.stop()
    seconds = broker.start()
    second = identity(broker)
    check(first == second, f"before {first}, after {second}")
    return f"started in {seconds:.2f} s"


def sample_cell(make_broker):
    """Kafka's own sample file starts it, with only the addresses and the folder replaced."""
    broker = make_broker("sample")
    shutil.copy(ROOT / "tests/data/server.properties", broker.folder)
    file = broker.folder / "server.properties"
    text = file.read_text().replace("9092", str(broker.port)).replace("9093", str(broker.port + 1))
    file.write_text(text.replace("/tmp/kraft-combined-logs", str(broker.data)))
    broker.words = lambda: [str(broker.binary), str(file),
                            "--override", "coreline.admin.listener="]
    with broker:
        text = broker.log.read_text(errors="replace")
        for part in ("num.io.threads", "nothing is bound for the controller", str(broker.data)):
            check(part in text, f"no {part} in: {text}")
        # Kafka's sample names localhost as the address.
        perf(broker, "sample", "all", "none", 100, 1000)


def screen_cell(broker):
    """The screen names folder, shards and durability, and its next command works."""
    text = ""
    for _ in range(100):  # the port opens a moment before the screen stands
        text = broker.log.read_text(errors="replace")
        if "Try it:" in text:
            break
        time.sleep(0.05)
    for part in ("is ready", str(broker.data), "shards       2", "durability"):
        check(part in text, f"no {part} in: {text}")
    command = re.search(r"^Try it:\n +(.+)$", text, re.M).group(1)
    # The broker runs elsewhere than in the repository, so that the tool of Kafka is named.
    check(command.startswith("kafka-producer-perf-test.sh "), command)
    words = command.replace("1000000", "20000").split()
    tool("kafka-producer-perf-test", *words[1:])
    done = subprocess.run([str(ROOT / "scripts/load-test"), broker.bootstrap, "--records", "5000"],
                          capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, f"scripts/load-test: {done.stdout}{done.stderr}")
    return command


def run(report, make_broker, dose, _cores):
    slowest = STOP_SECONDS_MAX * (1 if dose == "accept" else GATE_SLACK)
    with make_broker("life", {"coreline.cores": 2}) as broker:
        report.cell("life start-up screen", lambda: screen_cell(broker))
        refusal_cells(report, broker)
        report.cell("life SIGUSR1", lambda: report_cell(broker))
        if report.cell("life SIGTERM under load", lambda: stop_cell(broker, slowest)):
            report.cell("life restart", lambda: restart_cell(broker))
    report.cell("life Kafka's sample file", lambda: sample_cell(make_broker))
