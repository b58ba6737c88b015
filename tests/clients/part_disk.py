"""Disks that are full, slow or stalled, for real: an ext4 of its own on a loop device, filled, held
to 2 MB/s by the kernel's throttle, or frozen. Needs root and loop devices; without them nothing of this
is run, and the report says so."""

import contextlib
import os
import re
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from report import check
from wire import Connection, batch_of, batches, produce

EACH_CORES = False
STORAGE, TIMED_OUT = 56, 7
# The producer is told at once.
AT_ONCE_SECONDS_MAX = 2
ROOM_SECONDS_MAX = 5
STALL_SECONDS = 5
BATCHES_MAX = 1000
MEMORY = 128 << 20
THROTTLE = Path("/sys/fs/cgroup/blkio")


@contextlib.contextmanager
def disk(folder, size):
    """A file system of `size` bytes; its mount point and its device's numbers."""
    image, mount = folder / "image", folder / "mount"
    mount.mkdir(parents=True)
    with open(image, "wb") as file:
        file.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    try:
        device = os.stat(mount).st_dev
        yield mount, f"{os.major(device)}:{os.minor(device)}"
    finally:
        for _ in range(50):
            if subprocess.run(["umount", mount], stderr=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(0.1)
        image.unlink()


def resident(broker):
    text = Path(f"/proc/{broker.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) << 10


def admin(broker, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{broker.port + 1}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metric(broker, name):
    lines = admin(broker, "/metrics")[1].splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines
               if line.startswith((name + " ", name + "{")))


def read_all(connection, topic, partition):
    """Every batch's base offset, in order, each with its checksum looked at."""
    end, offset, found = connection.list_offset(topic, partition, -1), 0, []
    while offset < end:
        data = connection.fetch(topic, partition, offset, 4 << 20)
        some = [batch for batch in batches(data) if batch.base_offset >= offset]
        check(some, f"nothing of {topic}-{partition} at {offset} of {end}")
        found += [batch.base_offset for batch in some]
        offset = found[-1] + 1
    return found


def settings(mount, port, **more):
    return {"coreline.cores": 1, "coreline.memory": MEMORY, "log.dirs": f"{mount}/data",
            "coreline.admin.listener": f"127.0.0.1:{port + 1}",
            **{name.replace("_", "."): value for name, value in more.items()}}


def fill(connection, topic, batch, acked):
    """Produces until refused; answers how long the slowest refusal took."""
    slowest, refusals = 0, 0
    for _ in range(5000):
        began = time.monotonic()
        error, offset = produce(connection, topic, 0, batch)
        if not error:
            acked.append(offset)
            continue
        check(error == STORAGE, f"error {error} of a full disk")
        slowest, refusals = max(slowest, time.monotonic() - began), refusals + 1
        if refusals == 5:
            check(slowest <= AT_ONCE_SECONDS_MAX, f"refused after {slowest:.1f} s")
            return slowest
    check(False, "the disk never fills")


def full(make_broker, reserve):
    """Fills the disk, reads, deletes a topic, writes again; killed and started while it is full."""
    broker = make_broker("full", {})
    with disk(broker.folder, 64 << 20) as (mount, _):
        broker.settings.update(settings(mount, broker.port))
        if reserve is not None:
            broker.settings["coreline.disk.reserve.bytes"] = reserve
        with broker:
            return fill_and_go_on(broker, mount)


def fill_and_go_on(broker, mount):
    batch, acked = batch_of([os.urandom(60_000)]), []
    with Connection(broker.bootstrap) as connection:
        for topic in ("t", "filler"):
            connection.create_topic(topic, 1)
        for _ in range(200):
            check(produce(connection, "filler", 0, batch)[0] == 0, "filling")
        slowest = fill(connection, "t", batch, acked)
        free = os.statvfs(mount)
        free = free.f_bavail * free.f_frsize
        check(set(acked) <= set(read_all(connection, "t", 0)), "lost while full")
        check(metric(broker, "coreline_appends_refused_for_disk_total") >= 5, "no metric")
        check("appends are refused" in broker.tail(40) or "producers are refused" in broker.tail(40),
              f"no line in the log: {broker.tail()}")
    broker.kill()
    broker.start()
    with Connection(broker.bootstrap) as connection:
        check(set(acked) <= set(read_all(connection, "t", 0)), "lost by a kill while full")
        began = time.monotonic()
        connection.delete_topic("filler")
        deleted = time.monotonic() - began
        began = time.monotonic()
        while True:
            error, offset = produce(connection, "t", 0, batch)
            if not error:
                acked.append(offset)
                break
            took = time.monotonic() - began
            check(took < ROOM_SECONDS_MAX, f"still {error} {took:.1f} s after there was room")
        again = time.monotonic() - began
        check(set(acked) <= set(read_all(connection, "t", 0)), "lost after there was room")
    code, _ = broker.stop()
    check(code == 0, f"it ended with {code}: {broker.tail()}")
    verified = subprocess.run([str(broker.binary), "log", "verify", f"{mount}/data"],
                              capture_output=True, text=True)
    check(verified.returncode == 0, verified.stdout)
    return (f"{len(acked)} acknowledged, {free >> 20} MiB left, refused in ≤{slowest:.2f} s, deleted in "
            f"{deleted:.2f} s, written again after {again:.2f} s")


class Load:
    """Producers of large batches with a timeout of their own; what they are answered."""

    def __init__(self, broker, producers, timeout_ms):
        self.acked, self.codes, self.slowest, self.ended = set(), {}, 0, threading.Event()
        self.batch, self.faults = batch_of([os.urandom(500_000)]), []
        arguments = (broker.bootstrap, timeout_ms)
        self.threads = [threading.Thread(target=self.run, args=arguments) for _ in range(producers)]
        for thread in self.threads:
            thread.start()

    def run(self, bootstrap, timeout_ms):
        try:
            with Connection(bootstrap, 60) as connection:
                while not self.ended.is_set():
                    if len(self.acked) > BATCHES_MAX:
                        # A fast disk between two stalls would be full before the end.
                        self.ended.wait(0.2)
                    began = time.monotonic()
                    error, offset = produce(connection, "t", 0, self.batch, -1, timeout_ms)
                    self.slowest = max(self.slowest, time.monotonic() - began)
                    self.codes[error] = self.codes.get(error, 0) + 1
                    if not error:
                        self.acked.add(offset)
        except Exception as error:  # told by whoever looks
            self.faults.append(repr(error))

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(90)
            check(not thread.is_alive(), "a producer hangs")
        check(not self.faults, f"producers failed: {self.faults}")


def watch(broker, load, seconds):
    """Looks at memory and at what others are answered meanwhile; answers the largest RSS."""
    most, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        most = max(most, resident(broker))
        began = time.monotonic()
        with Connection(broker.bootstrap, 10) as connection:
            connection.metadata(["t"])
        check(time.monotonic() - began < 3, "metadata waits for the disk")
        check(admin(broker, "/healthz")[0] == 200, "not alive")
        time.sleep(0.2)
    check(most <= MEMORY, f"{most >> 20} MiB resident of {MEMORY >> 20}")
    return most


def recovered(broker, load):
    """Everything is taken again at once, and all that was acknowledged is there."""
    began = time.monotonic()
    with Connection(broker.bootstrap, 60) as connection:
        while produce(connection, "t", 0, load.batch)[0]:
            check(time.monotonic() - began < 30, "it does not recover")
        took = time.monotonic() - began
        lost = load.acked - set(read_all(connection, "t", 0))
        check(not lost, f"lost: {sorted(lost)[:5]}")
    while admin(broker, "/readyz")[1] != "ok\n":
        check(time.monotonic() - began < 30, f"not ready: {admin(broker, '/readyz')}")
        time.sleep(0.1)
    return took


def slow(make_broker, seconds):
    """2 MB/s, by the kernel's own throttle."""
    broker = make_broker("slow", {})
    group = THROTTLE / f"coreline-{os.getpid()}"
    with disk(broker.folder, 1 << 30) as (mount, device):
        broker.settings.update(settings(mount, broker.port))
        with broker:
            with Connection(broker.bootstrap) as connection:
                connection.create_topic("t", 1)
            group.mkdir()
            limit = group / "blkio.throttle.write_bps_device"
            try:
                limit.write_text(f"{device} 2000000")
                (group / "cgroup.procs").write_text(str(broker.process.pid))
                load = Load(broker, 8, 1000)
                most = watch(broker, load, seconds)
                load.end()
                limit.write_text(f"{device} 0")
                took = recovered(broker, load)
            finally:
                (THROTTLE / "cgroup.procs").write_text(str(broker.process.pid))
                group.rmdir()
            check(set(load.codes) <= {0, TIMED_OUT}, f"answers: {load.codes}")
            # What is in order waits for the disk; only what finds no room in its time is refused.
            check(load.slowest > 1, f"the disk is not slow: {load.codes}, {load.slowest:.1f} s")
            return (f"answers {load.codes}, slowest {load.slowest:.1f} s, {most >> 20} MiB resident, "
                    f"recovered in {took:.1f} s")


def stalled(make_broker, stalls):
    """Writes that the disk leaves unanswered for 5 s, again and again."""
    broker = make_broker("stalled", {})
    with disk(broker.folder, 1 << 30) as (mount, _):
        broker.settings.update(settings(mount, broker.port))
        with broker:
            with Connection(broker.bootstrap) as connection:
                connection.create_topic("t", 1)
            load, most = Load(broker, 4, 1000), 0
            for _ in range(stalls):
                subprocess.run(["fsfreeze", "-f", mount], check=True)
                try:
                    most = max(most, watch(broker, load, STALL_SECONDS))
                finally:
                    subprocess.run(["fsfreeze", "-u", mount], check=True)
                most = max(most, watch(broker, load, 2))
            load.end()
            took = recovered(broker, load)
            check(set(load.codes) <= {0, TIMED_OUT}, f"answers: {load.codes}")
            check(load.codes.get(0), f"answers: {load.codes}")
            check(STALL_SECONDS - 1 < load.slowest < STALL_SECONDS + 3,
                  f"an answer after {load.slowest:.1f} s")
            return (f"{stalls} stalls, answers {load.codes}, slowest {load.slowest:.1f} s, "
                    f"{most >> 20} MiB resident, recovered in {took:.1f} s")


def run(report, make_broker, dose, _cores):
    try:
        with tempfile.TemporaryDirectory() as folder, disk(Path(folder), 16 << 20):
            pass
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"disk: left out, for no file system can be mounted here: {error}", flush=True)
        return
    whole = dose == "accept"
    for number in range(10 if whole else 1):
        # Every other time to the last block.
        reserve = 0 if number % 2 else None
        what = "to its last block" if reserve == 0 else "to its reserve"
        report.cell(f"a full disk, {what}", lambda: full(make_broker, reserve))
    if not whole:
        report.cell("a full disk, to its last block", lambda: full(make_broker, 0))
    for _ in range(3 if whole else 1):
        if (THROTTLE / "blkio.throttle.write_bps_device").exists():
            report.cell("2 MB/s", lambda: slow(make_broker, 60 if whole else 8))
        else:
            print("disk: 2 MB/s not run, there is no blkio.throttle", flush=True)
        report.cell("stalls of 5 s", lambda: stalled(make_broker, 8 if whole else 1))
