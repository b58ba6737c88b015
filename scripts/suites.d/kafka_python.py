"""kafka-python's integration tests, from its source distribution on PyPI."""

import shutil
import sys
import xml.etree.ElementTree as xml

from base import PASSED, SKIPPED, Case, cache, call, failed, once, run
from brokers import kafka_home

VERSION = "3.0.12"
RUN_SECONDS_MAX = 900
CASE_SECONDS_MAX = 120
# The distribution leaves out this module, which starts brokers for the tests. They have one already.
SERVICE = '''"""A broker that somebody else started."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass

    def start(self):
        pass

    def stop(self):
        pass

    def dump_logs(self):
        pass

    def wait_for(self, *_, **__):
        return True


class SpawnedService(ExternalService):
    def __init__(self, *_, **__):
        raise RuntimeError("this run starts no brokers of its own")
'''


class KafkaPython:
    name, version = "kafka-python", VERSION

    def __init__(self):
        self.home = None

    def prepare(self):
        self.home = cache(f"kafka-python-{VERSION}")
        once(self.home, build)

    def run(self, broker, folder, only):
        report = folder / "report.xml"
        words = [self.home / "venv/bin/pytest", "test/integration", f"--junitxml={report}", "-q",
                 "-p", "no:cacheprovider", f"--timeout={CASE_SECONDS_MAX}"]
        if only:
            words += ["-k", only.pattern]
        _, told = run(words, self.home / "source", folder / "pytest.log", RUN_SECONDS_MAX,
                      KAFKA_URI=f"kafka://{broker.bootstrap}", KAFKA_VERSION="4.1.0", KAFKA_ROOT=str(kafka_home()))
        if not report.exists():
            return {"the whole": failed(told)}
        return dict(outcome(case) for case in xml.parse(report).getroot().iter("testcase"))


def outcome(case):
    name = f"{case.get('classname').rsplit('.', 1)[-1]}::{case.get('name')}"
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            return name, failed(f"{found.text or ''}\n{found.get('message') or ''}")
    skip = case.find("skipped")
    return name, Case(PASSED) if skip is None else Case(SKIPPED, skip.get("message") or "")


def build(home):
    call([sys.executable, "-m", "venv", home / "venv"], home)
    pip = [home / "venv/bin/pip", "-q", "--disable-pip-version-check"]
    call([*pip, "install", "pytest", "pytest-mock", "pytest-timeout", "py", "setuptools", "lz4", "python-snappy",
          "zstandard", "crc32c"], home)
    call([*pip, "download", "--no-deps", "--no-binary", ":all:", f"kafka-python=={VERSION}"], home)
    call(["tar", "xzf", next(home.glob("kafka_python-*.tar.gz"))], home)
    shutil.move(next(home.glob("kafka_python-*/")), home / "source")
    (home / "source/test/service.py").write_text(SERVICE)
    (home / "source/test/__init__.py").touch()
