#!/usr/bin/env python3
"""Real clients against the broker: `tests/clients/run.py [PART...]`, all parts without one.

Parts: life, input, observe, dashboards, configs, admin, directories, tools, roundtrip, dump, dissect,
kill, disk (as root: it mounts small file systems).
`--broker kafka` runs them against Apache Kafka, which proves the tests themselves. Needs the clients that scripts/test
installs.
"""

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from brokers import BROKERS, discard  # noqa: E402
from report import Report  # noqa: E402

PARTS = ["life", "input", "observe", "dashboards", "configs", "admin", "directories", "tools",
         "roundtrip", "dump", "dissect", "kill", "disk"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--broker", choices=sorted(BROKERS), default="coreline")
    parser.add_argument("--dose", choices=["ci", "accept"], default="ci")
    parser.add_argument("--cores", default="1,2", help="values of coreline.cores, with commas")
    parser.add_argument("--port", type=int, default=21500, help="first of 20 ports")
    parser.add_argument("--keep", action="store_true", help="keep the brokers' folders")
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part not in PARTS:
            parser.error(f"no part {part}")
    report, root = Report(), Path(tempfile.mkdtemp(prefix="coreline-clients-"))
    ports = iter(range(arguments.port, arguments.port + 4000, 4))

    def make_broker(name, settings=None):
        port = next(ports)
        return BROKERS[arguments.broker](root / f"{name}-{port}", port, settings)

    try:
        for part in arguments.parts or PARTS:
            module = importlib.import_module(f"part_{part}")
            each = arguments.cores.split(",") if getattr(module, "EACH_CORES", True) else ["2"]
            for cores in each:
                if arguments.broker == "kafka" and cores != each[0]:
                    continue
                report.cell(f"{part} set up cores={cores}",
                            lambda: module.run(report, make_broker, arguments.dose, cores))
    finally:
        if not arguments.keep:
            discard(root)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
