"""Brokers under test: Coreline, and Apache Kafka as the oracle of the tests themselves."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from wire import Connection

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60


def kafka_home():
    home = os.environ.get("KAFKA_HOME")
    return Path(home or subprocess.check_output([ROOT / "scripts/kafka", "home"], text=True).strip())


def free_cpus():
    return len(os.sched_getaffinity(0))


class Broker:
    """One broker process with its data in a folder of its own."""

    def __init__(self, folder, port, settings=None):
        self.folder, self.port, self.settings = Path(folder), port, dict(settings or {})
        self.bootstrap = f"127.0.0.1:{port}"
        self.process = None
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def data(self):
        return self.folder / "data"

    @property
    def log(self):
        return self.folder / "log"

    def words(self):
        raise NotImplementedError

    def prepare(self):
        pass

    def start(self):
        """Starts it and waits until it serves; answers how long that took."""
        self.prepare()
        began = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.words(), stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
                env=self.environment())
        while time.monotonic() - began < READY_SECONDS_MAX:
            if self.process.poll() is not None:
                raise RuntimeError(f"the broker ended with {self.process.returncode}: {self.tail()}")
            try:
                with Connection(self.bootstrap, 2) as connection:
                    connection.api_versions()
                # Had it found another broker on its port, it would have ended by itself.
                if self.process.poll() is None:
                    return time.monotonic() - began
            except (OSError, ConnectionError, socket.timeout):
                time.sleep(0.02)
        raise RuntimeError(f"the broker does not serve after {READY_SECONDS_MAX} s: {self.tail()}")

    def environment(self):
        return dict(os.environ)

    def tail(self, lines=15):
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM; answers exit code and duration."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"the broker does not stop after {STOP_SECONDS_MAX} s") from None
        return code, time.monotonic() - began

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Coreline(Broker):
    name = "coreline"
    binary = Path(os.environ.get("CORELINE_BINARY", ROOT / "target/release/coreline"))

    def words(self):
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data),
            # Several brokers run at a time.
            "coreline.admin.listener": "",
            **self.settings,
        }
        words = [str(self.binary)]
        for name, value in settings.items():
            words += ["--override", f"{name}={value}"]
        return words


class Kafka(Broker):
    name = "kafka"

    def prepare(self):
        home, control = kafka_home(), self.port + 1
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{control}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{control}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        settings.update({k: v for k, v in self.settings.items() if not k.startswith("coreline.")})
        file = self.folder / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        if not (self.data / "meta.properties").exists():
            storage = home / "bin/kafka-storage.sh"
            cluster = subprocess.check_output([storage, "random-uuid"], text=True).strip()
            subprocess.run([storage, "format", "-t", cluster, "-c", file], check=True,
                           stdout=subprocess.DEVNULL)

    def environment(self):
        home = kafka_home()
        return {**os.environ, "KAFKA_HEAP_OPTS": "-Xms512m -Xmx512m",
                "KAFKA_LOG4J_OPTS": f"-Dlog4j2.configurationFile={home}/config/log4j2.properties"}

    def words(self):
        return [str(kafka_home() / "bin/kafka-run-class.sh"), "kafka.Kafka",
                str(self.folder / "server.properties")]


BROKERS = {broker.name: broker for broker in (Coreline, Kafka)}


def discard(folder):
    shutil.rmtree(folder, ignore_errors=True)
