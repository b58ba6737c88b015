"""The integration tests of the crates rdkafka and rskafka, from crates.io."""

import json
import re
import shutil
from pathlib import Path

from base import FAILED, PASSED, SKIPPED, Case, cache, call, failed, once, run

PROGRAM_SECONDS_MAX = 420
OUTCOMES = {"ok": PASSED, "FAILED": FAILED, "ignored": SKIPPED}


class Crate:
    """One crate's test programs, each run for a bounded time."""
    features = []
    settings = {}
    # Dependencies whose locked version today's compiler refuses: the version that takes its place.
    newer = {}
    # Cases that end at once, and say so nowhere, where what they need besides a broker is not there.
    idle = None

    def __init__(self):
        self.programs = {}

    def prepare(self):
        home = cache(f"{self.name}-{self.version}")
        once(home, lambda home: fetch(home, self.name, self.version))
        for name, version in self.newer.items():
            call(["cargo", "update", "-q", "-p", name, "--precise", version], home / "source")
        told = call(["cargo", "test", "--no-run", "--locked", "--tests", *self.features, "--message-format=json"],
                    home / "source", CARGO_TARGET_DIR=str(home / "target"))
        for line in told.splitlines():
            if line.startswith("{"):
                message = json.loads(line)
                if message.get("executable") and message["profile"]["test"]:
                    self.programs[message["target"]["name"]] = Path(message["executable"])
        self.home = home

    def environment(self, broker):
        raise NotImplementedError

    def run(self, broker, folder, only):
        cases = {}
        for name, program in sorted(self.programs.items()):
            cases |= self.program(broker, folder, name, program, only)
        return cases

    def program(self, broker, folder, name, program, only):
        """The cases of one program; what it did not come to has failed."""
        environment = self.environment(broker)
        listed = call([program, "--list"], self.home / "source", **environment)
        cases = {f"{name}::{case}": failed("it did not end") for case in re.findall(r"^(\S+): test$", listed, re.M)}
        words = [program, "--test-threads=2"]
        if only:
            cases = {case: outcome for case, outcome in cases.items() if only.search(case)}
            words += ["--exact", *(case.split("::", 1)[1] for case in cases)]
            if not cases:
                return cases
        _, told = run(words, self.home / "source", folder / f"{name}.log", PROGRAM_SECONDS_MAX,
                      RUST_BACKTRACE="0", **environment)
        for case, verdict in re.findall(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", told, re.M):
            said = re.search(rf"^---- {re.escape(case)} std\w+ ----\n((?:(?!----).*\n)*)", told, re.M)
            cases[f"{name}::{case}"] = Case(OUTCOMES[verdict], said.group(1)[-600:] if said else "")
            if verdict == "ok" and self.idle and self.idle.search(case):
                cases[f"{name}::{case}"] = Case(SKIPPED, "what it needs besides a broker is not there")
        return cases


class Rdkafka(Crate):
    name, version = "rdkafka", "0.39.0"
    # As the crate starts its own broker.
    settings = {"num.partitions": "3"}

    def environment(self, broker):
        return {"KAFKA_HOST": broker.bootstrap, "KAFKA_VERSION": "4.0"}


class Rskafka(Crate):
    name, version = "rskafka", "0.6.0"
    features = ["--all-features"]
    newer = {"rsasl": "2.3.1"}
    # A Java machine in its own process (one case asks for it without its name saying so), SASL, a proxy.
    idle = re.compile("_java_|^test_produce_rdkafka_consume_rdkafka_nocompression$|^test_sasl$|^test_socks5$")

    def environment(self, broker):
        return {"TEST_INTEGRATION": "1", "TEST_BROKER_IMPL": "kafka", "KAFKA_CONNECT": broker.bootstrap}


def fetch(home, name, version):
    """The crate's source as crates.io has it, found by a project that depends on it."""
    project = home / "fetch"
    project.mkdir()
    (project / "lib.rs").touch()
    (project / "Cargo.toml").write_text(
        f'[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
        f'[dependencies]\n{name} = "={version}"\n[workspace]\n')
    told = json.loads(call(["cargo", "metadata", "--format-version", "1"], project))
    package = next(package for package in told["packages"] if package["name"] == name)
    shutil.copytree(Path(package["manifest_path"]).parent, home / "source")
    # The compiler that is here has to do.
    (home / "source/rust-toolchain.toml").unlink(missing_ok=True)
    # It is a workspace of its own, wherever the cache is.
    with open(home / "source/Cargo.toml", "a") as manifest:
        if "[workspace]" not in (home / "source/Cargo.toml").read_text():
            manifest.write("\n[workspace]\n")
