"""franz-go's tests of its client (pkg/kgo), from the Go module proxy."""

import json
import re
import shutil

from base import FAILED, PASSED, SKIPPED, Case, cache, call, failed, once, run

VERSION = "v1.22.3"
PART_SECONDS_MAX = 600
CHAOS_RUNS = 20
RECORDS = 10_000
# As the suite itself has it.
LARGE_RECORDS = 500_000
LARGE_SECONDS_MAX = 900
OUTCOMES = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}
# A test that hangs ends its process: those of whole capabilities run apart from the rest.
PARTS = {"groups": "^TestGroupETL$", "transactions": "^TestTxnEtl$", "share": "^TestShare"}


class FranzGo:
    name, version = "franz-go", VERSION

    def __init__(self):
        self.home = None

    def prepare(self):
        self.home = cache(f"franz-go-{VERSION}")
        once(self.home, build)

    def run(self, broker, folder, only):
        cases = {}
        rest = ["-test.skip", "|".join(PARTS.values())]
        for part, choice in [("rest", rest)] + [(part, ["-test.run", run]) for part, run in PARTS.items()]:
            if not only or only.search(part):
                cases |= self.part(broker, folder / f"{part}.log", choice, PART_SECONDS_MAX)
        return cases

    def part(self, broker, log, choice, seconds, **environment):
        words = [self.home / "kgo.test", "-test.v", "-test.timeout", f"{seconds}s", *choice]
        environment = {"KGO_SEEDS": broker.bootstrap, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": str(RECORDS),
                       "KGO_LOG_LEVEL": "none", **environment}
        _, told = run(words, self.home / "source/pkg/kgo", log, seconds + 30, **environment)
        return cases_of(told)


class Chaos(FranzGo):
    """TestGroupETL with connections that are cut and slowed, again and again."""
    name = "franz-go-chaos"

    def run(self, broker, folder, only):
        cases = {}
        for at in range(CHAOS_RUNS):
            found = self.part(broker, folder / f"{at}.log", ["-test.run", PARTS["groups"]], PART_SECONDS_MAX,
                              KGO_TEST_CHAOS="1")
            cases |= {f"{at + 1}: {name}": case for name, case in found.items()}
        return cases


class Large(FranzGo):
    """TestGroupETL with as many records as the suite takes by itself. Of the others those of transactions and share
    groups alone heed the number."""
    name = "franz-go-500000"

    def run(self, broker, folder, only):
        return self.part(broker, folder / "groups.log", ["-test.run", PARTS["groups"]], LARGE_SECONDS_MAX,
                         KGO_TEST_RECORDS=str(LARGE_RECORDS))


def cases_of(told):
    """The tests without tests of their own; one that neither passed nor failed is one that did not end."""
    cases = {name: failed("it did not end") for name in re.findall(r"^=== RUN +(\S+)", told, re.M)}
    depths = {}
    for indent, verdict, name in re.findall(r"^( *)--- (PASS|FAIL|SKIP): (\S+)", told, re.M):
        depths[name] = len(indent)
        text = ""
        if verdict != "PASS":
            # What a test says stands after the line that says it goes on, until another's does.
            begins = rf"^(?:=== (?:RUN|CONT|NAME) +| *--- \w+: ){re.escape(name)}(?: .*)?\n"
            said = re.findall(begins + r"((?:(?!===| *---|PASS$|FAIL$).*\n)*)", told, re.M)
            text = "".join(said)
        cases[name] = Case(OUTCOMES[verdict], text[-500:])
    return {name: case for name, case in cases.items() if not is_parent(name, cases, depths)}


def is_parent(name, cases, depths):
    """Names have slashes of their own: range/848 stands beside range, as its verdict's indentation tells. What did
    not end has none."""
    below = [other for other in cases if other.startswith(f"{name}/")]
    if name not in depths:
        return bool(below) and "/" not in name
    return any(depths.get(other, depths[name] + 1) > depths[name] for other in below)


def build(home):
    module = json.loads(call(["go", "mod", "download", "-json", f"github.com/twmb/franz-go@{VERSION}"], home))
    shutil.copytree(module["Dir"], home / "source")
    call(["chmod", "-R", "u+w", "source"], home)
    call(["go", "test", "-mod=mod", "-c", "-o", home / "kgo.test", "."], home / "source/pkg/kgo")
