#!/usr/bin/env python3
"""Runs a command beside an Apache Kafka: `tests/clients/with_kafka.py COMMAND...`, with its address in
KAFKA_BOOTSTRAP and its folder in KAFKA_HOME."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from brokers import Kafka, discard, kafka_home  # noqa: E402

PORT = 21980


def main():
    folder = tempfile.mkdtemp(prefix="coreline-kafka-")
    try:
        with Kafka(folder, PORT) as broker:
            return subprocess.run(sys.argv[1:], env={
                **os.environ, "KAFKA_BOOTSTRAP": broker.bootstrap,
                "KAFKA_HOME": str(kafka_home())}).returncode
    finally:
        discard(folder)


if __name__ == "__main__":
    sys.exit(main())
