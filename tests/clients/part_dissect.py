"""tshark's Kafka dissector reads sessions of old clients without a malformed frame.

It knows no newer versions: with today's clients it calls Apache Kafka's own frames malformed.
"""

import signal
import socket
import subprocess
import time

import records
from part_roundtrip import kcat_read, kcat_send, run_tasks, Sending
from report import check
from wire import Connection

EACH_CORES = False
CAPTURE_START_SECONDS = 3
CAPTURE_START_SECONDS_MAX = 20
# What the file has before its first packet.
CAPTURE_HEAD_BYTES_MAX = 1024


def wait_for_capture(broker, file):
    """Opens connections, which hold no frames, until the capture has seen some."""
    began = time.monotonic()
    while time.monotonic() - began < CAPTURE_START_SECONDS_MAX:
        socket.create_connection(("127.0.0.1", broker.port), timeout=5).close()
        time.sleep(0.2)
        seen = file.exists() and file.stat().st_size > CAPTURE_HEAD_BYTES_MAX
        if seen and time.monotonic() - began > CAPTURE_START_SECONDS:
            return


def captured(broker, session):
    """What tshark says of the session's frames, dissected as Kafka's."""
    file = broker.folder / "session.pcap"
    words = ["tshark", "-q", "-i", "lo", "-f", f"tcp port {broker.port}", "-w", str(file)]
    capture = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for_capture(broker, file)
        session()
        time.sleep(1)
    finally:
        capture.send_signal(signal.SIGINT)
        _, errors = capture.communicate(timeout=30)
    check(file.exists(), f"tshark captured nothing: {errors.decode()[-500:]}")
    words = ["tshark", "-r", str(file), "-d", f"tcp.port=={broker.port},kafka", "-Y", "kafka",
             "-T", "fields", "-e", "frame.number", "-e", "_ws.malformed", "-e", "kafka.api_key",
             "-e", "_ws.expert.message"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def session_cell(broker, session, keys_wanted):
    frames = captured(broker, session)
    check(len(frames) > 10, f"only {len(frames)} frames were dissected")
    seen = set()
    for frame in frames:
        number, malformed, keys, expert = (frame.split("\t") + [""] * 4)[:4]
        check(not malformed and "Malformed" not in expert, f"frame {number}: {malformed} {expert}")
        seen |= {int(key) for key in keys.split(",") if key}
    check(keys_wanted <= seen, f"the session lacks keys {keys_wanted - seen}")
    return f"{len(frames)} frames, keys {sorted(seen)}"


def run(report, make_broker, _dose, _cores):
    with make_broker("dissect", {"coreline.cores": 2, "log.retention.ms": -1}) as broker:
        text_records = records.text_only()

        def kcat():
            sending = kcat_send(broker, "lz4", False, text_records)
            kcat_read(broker, sending.topic, text_records)
        report.cell("dissect kcat 1.7.1", lambda: session_cell(broker, kcat, {0, 1, 2, 3, 18}))

        def kafka_python():
            sending = Sending("kafka-python-2", "gzip", False, "filled")
            file = broker.folder / "filled.jsonl"
            records.save(records.with_header_values(records.mixed()), file)
            with Connection(broker.bootstrap) as connection:
                connection.create_topic(sending.topic, records.PARTITIONS)
            output = str(broker.folder / "dissected")
            answers = run_tasks("kafka-python-2", broker, [
                sending.task({"filled": file}),
                {"do": "consume", "topic": sending.topic, "partitions": records.PARTITIONS,
                 "output": output}], broker.folder)
            check(not any("error" in answer for answer in answers), f"{answers}")
        report.cell("dissect kafka-python 2.0.2",
                    lambda: session_cell(broker, kafka_python, {0, 1, 2, 3, 18}))
