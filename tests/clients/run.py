#!/usr/bin/env python3
"""Real clients against the broker: `tests/clients/run.py [PART...]`, all but the last two without one.

Parts: life, input, observe, dashboards, configs, admin, groups, directories, tools, roundtrip, dump,
dissect, kill, disk (as root: it mounts small file systems), compat, compaction.
Parts that measure no time run beside each other, the others alone. `--broker kafka` runs them against Apache
Kafka, which proves the tests themselves. Needs the clients that scripts/test installs.
"""

import argparse
import importlib
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from brokers import BROKERS, discard  # noqa: E402
from report import Report  # noqa: E402

PARTS = ["life", "input", "observe", "dashboards", "configs", "admin", "groups", "directories",
         "tools", "roundtrip", "dump", "dissect", "kill", "disk"]
# What scripts/compat and scripts/accept run, for longer than CI has.
LONG = ["compat", "compaction"]
# They measure no time: two at once take less.
BESIDE = {"configs", "admin", "groups", "directories", "tools", "roundtrip", "dump", "dissect"}
JOBS = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS + LONG))
    parser.add_argument("--broker", choices=sorted(BROKERS), default="coreline")
    parser.add_argument("--dose", choices=["ci", "accept"], default="ci")
    parser.add_argument("--cores", default="1,2", help="values of coreline.cores, with commas")
    parser.add_argument("--port", type=int, default=22500,
                        help="first of 4000 ports; tests of the crate have those from 12000 to 21000")
    parser.add_argument("--keep", action="store_true", help="keep the brokers' folders")
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part not in PARTS + LONG:
            parser.error(f"no part {part}")
    report, root = Report(), Path(tempfile.mkdtemp(prefix="coreline-clients-"))
    ports = iter(range(arguments.port, arguments.port + 4000, 4))
    ports_lock = threading.Lock()

    def make_broker(name, settings=None):
        with ports_lock:
            port = next(ports)
        return BROKERS[arguments.broker](root / f"{name}-{port}", port, settings)

    def run(part, cores):
        module = importlib.import_module(f"part_{part}")
        report.cell(f"{part} set up cores={cores}",
                    lambda: module.run(report, make_broker, arguments.dose, cores))

    try:
        units = [(part, cores) for part in arguments.parts or PARTS
                 for cores in cores_of(part, arguments)]
        with ThreadPoolExecutor(JOBS) as pool:
            # The long ones first, so that none runs on alone at the end.
            beside = sorted((unit for unit in units if unit[0] in BESIDE),
                            key=lambda unit: unit[0] not in ("roundtrip", "tools"))
            for done in [pool.submit(run, *unit) for unit in beside]:
                done.result()
        for part, cores in units:
            if part not in BESIDE:
                run(part, cores)
    finally:
        if not arguments.keep:
            discard(root)
    return report.finish()


def cores_of(part, arguments):
    """Values of coreline.cores that a part runs with."""
    module = importlib.import_module(f"part_{part}")
    each = arguments.cores.split(",") if getattr(module, "EACH_CORES", True) else ["2"]
    # Apache Kafka has no such setting, and the small dose of some parts takes one value.
    is_one = arguments.broker == "kafka" or (
        arguments.dose == "ci" and getattr(module, "ONE_CORES_IN_CI", False))
    return each[-1:] if is_one else each


if __name__ == "__main__":
    sys.exit(main())
