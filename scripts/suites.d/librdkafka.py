"""librdkafka's tests, which the crate rdkafka-sys ships, each in a process of its own."""

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from base import FAILED, PASSED, SKIPPED, Case, cache, call, failed, once, run
from brokers import kafka_home
from rust import fetch

VERSION = "4.10.0+2.12.1"
TEST_SECONDS_MAX = 240
# They wait more than they compute.
JOBS = 3
FLAGS = ["-p1", "-Q", "-L", "-E"]
OUTCOMES = {"PASSED": PASSED, "SKIPPED": SKIPPED}
SUMMARY = re.compile(r"^\|\s*(\d{4}_\w+)\s*\|\s*([A-Z _]+?)\s*\|\s*[\d.]+s\s*\|(.*)$", re.M)


class Librdkafka:
    version = VERSION

    def __init__(self, name, flags):
        self.name, self.flags, self.home = name, flags, None

    def prepare(self):
        self.home = cache(f"rdkafka-sys-{VERSION}")
        once(self.home, build)

    def run(self, broker, folder, only):
        configuration = folder / "test.conf"
        configuration.write_text(f"bootstrap.servers={broker.bootstrap}\ntest.timeout.multiplier=3\n"
                                 "test.topic.random=true\n")
        environment = {"RDKAFKA_TEST_CONF": str(configuration), "TEST_KAFKA_VERSION": "4.0.0",
                       "KAFKA_PATH": str(kafka_home()), "BROKERS": broker.bootstrap,
                       "LD_LIBRARY_PATH": ":".join(str(self.home / "librdkafka" / part) for part in ["src", "src-cpp"])}
        tests = [test for test in listed(self.home) if not only or only.search(test)]
        with ThreadPoolExecutor(JOBS) as pool:
            done = pool.map(lambda test: self.one(test, folder, environment), tests)
            return dict(zip(tests, done))

    def one(self, test, folder, environment):
        words = ["./test-runner", *FLAGS, *self.flags]
        code, told = run(words, self.home / "librdkafka/tests", folder / f"{test}.log", TEST_SECONDS_MAX,
                         TESTS=test.split("_")[0], **environment)
        told = re.sub(r"\x1b\[[\d;]*m", "", told)
        for name, state, why in SUMMARY.findall(told):
            if name == test:
                return Case(OUTCOMES.get(state, FAILED), why.strip()[-500:])
        if code == 0:
            return Case(SKIPPED, "needs no broker, or sockets that are tampered with")
        said = re.findall(r"^.*(?:Test failed|TEST_FAIL|failed|Failed|Assert).*$", told, re.M)
        return failed(f"it did not end ({'time' if code is None else code}): {' / '.join(said[-2:])[-400:]}")


def listed(home):
    """The names of its tests, as the runner's own table has them: local ones aside."""
    source = (home / "librdkafka/tests/test.c").read_text()
    found = re.findall(r"^\s+_TEST\(\s*(\d{4}_\w+),\s*([^,)]*)", source, re.M)
    return [name for name, flags in found if "TEST_F_LOCAL" not in flags]


def build(home):
    # Four of the tests read statistics with it, and are skipped where it is missing.
    if shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-qq", "rapidjson-dev"], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    fetch(home, "rdkafka-sys", VERSION)
    shutil.move(home / "source/librdkafka", home / "librdkafka")
    folder = Path(home / "librdkafka")
    call(["./configure", "--disable-gssapi"], folder)
    call(["make", "-j2", "libs"], folder)
    call(["make", "-C", "tests", "-j2", "build"], folder)
