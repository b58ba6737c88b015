"""kill -9 at random moments: nothing acknowledged is lost or moved, and with idempotence nothing
stands twice or out of order; the broker serves again at once."""

import json
import os
import random
import subprocess
import time

from part_roundtrip import librdkafka
from report import check
from wire import Connection, batch_of, produce

EACH_CORES = False
PRODUCERS = 4
# The promise; the gate, on a machine that does other things too, waits three times as long.
SERVING_SECONDS_MAX = 2.0
GATE_SLACK = 3
SEED = int(os.environ.get("CORELINE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)


def leaders_ready(broker, topic, partitions):
    """Every partition has a leader and answers where it ends."""
    with Connection(broker.bootstrap) as connection:
        error, found = connection.metadata([topic])[topic]
        if error or len(found) != partitions or any(one != (0, 1) for one in found.values()):
            return False
        try:
            for partition in range(partitions):
                connection.list_offset(topic, partition, -1)
        except Exception:  # a retriable code while a partition recovers
            return False
    return True


def wait_until_serving(broker, topic, partitions, began):
    def ready():
        try:
            return leaders_ready(broker, topic, partitions)
        except OSError:  # a connection that the dead broker's socket still took
            return False

    while not ready():
        check(time.monotonic() - began < 60, f"not serving after 60 s: {broker.tail()}")
        time.sleep(0.01)
    return time.monotonic() - began


def settle(hammer):
    """Ends the sending; answers what was sent and acknowledged."""
    printed, errors = hammer.communicate(timeout=300)
    check(hammer.returncode == 0, f"the producers failed: {errors[-1500:]}")
    return json.loads(printed.strip().splitlines()[-1]), errors


def torture(broker, partitions, acks, idempotence, kills, serving_seconds_max):
    rng = random.Random(SEED)
    topic = f"kill-{partitions}-{acks}-{'idem' if idempotence else 'plain'}"
    log = broker.folder / f"{topic}.acked"
    with Connection(broker.bootstrap) as connection:
        connection.create_topic(topic, partitions)
    common = [f"topic={topic}", f"partitions={partitions}", f"log={log}",
              f"idempotence={str(idempotence).lower()}"]
    hammer = subprocess.Popen(
        [librdkafka(), "hammer", broker.bootstrap, *common, f"producers={PRODUCERS}",
         f"acks={acks}", "rate=4000"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    slowest = 0.0
    try:
        for _ in range(kills):
            time.sleep(rng.uniform(0.3, 2.0))
            check(hammer.poll() is None, "the producers ended early")
            broker.kill()
            slowest = max(slowest, wait_until_serving_after(broker, topic, partitions))
        time.sleep(0.5)
        totals, errors = settle(hammer)
    finally:
        hammer.kill()
    found = json.loads(subprocess.check_output(
        [librdkafka(), "check", broker.bootstrap, *common], text=True, timeout=300))
    faults = {name: found[name] for name in ("lost", "moved", "duplicate", "disordered")}
    check(not any(faults.values()), f"{faults} of {found['acked']}: {found['first']}; seed {SEED}")
    check(totals["failed"] == 0, f"{totals} seed {SEED}, the log holds what was acknowledged; "
          f"{errors[-500:]}")
    check(totals["acked"] > 1000 * kills, f"hardly anything was sent: {totals}")
    check(found["acked"] == totals["acked"], "the list of acknowledgements is not whole")
    check(slowest <= serving_seconds_max, f"serving again after {slowest:.2f} s only")
    return f"{kills} kills, {found['acked']} acknowledged, serving again in ≤{slowest:.2f} s"


def duplicates_cell(broker):
    """Each of a producer's last five batches is known again after kill -9, though none had been
    answered as far as the producer knows: a repetition gets the offset of the first time."""
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("twice", 1)
        producer_id, epoch = connection.init_producer()
        sent = [batch_of([b"a", b"b"], producer_id=producer_id, producer_epoch=epoch,
                         sequence=2 * number, timestamp=int(time.time() * 1000))
                for number in range(7)]
        first = [produce(connection, "twice", 0, batch) for batch in sent]
        check(first == [(0, 2 * number) for number in range(7)], f"sent: {first}")
    for life in ("first", "second"):
        broker.kill()
        wait_until_serving_after(broker, "twice", 1)
        with Connection(broker.bootstrap) as connection:
            again = [produce(connection, "twice", 0, batch) for batch in sent[2:]]
            check(again == first[2:], f"after the {life} kill: {again} instead of {first[2:]}")
            end = connection.list_offset("twice", 0, -1)
            check(end == 14, f"the log ends at {end}")


def wait_until_serving_after(broker, topic, partitions):
    began = time.monotonic()
    broker.start()
    return wait_until_serving(broker, topic, partitions, began)


def run(report, make_broker, dose, _cores):
    def duplicates():
        broker = make_broker("duplicates", {"coreline.cores": 2})
        if broker.name == "kafka":
            return "Apache Kafka knows the last batch only"
        with broker:
            return duplicates_cell(broker)
    report.cell("kill -9 duplicates are known again", duplicates)
    whole = dose == "accept"
    cases = [(partitions, acks, idempotence) for partitions in (6, 300)
             for acks, idempotence in (("1", False), ("all", False), ("all", True))]
    # 6 kills in all, or 60: each case gets its share.
    each = 10 if whole else 1
    slowest = SERVING_SECONDS_MAX * (1 if whole else GATE_SLACK)
    for partitions, acks, idempotence in cases:
        def cell():
            with make_broker("kill", {"coreline.cores": 2}) as broker:
                return torture(broker, partitions, acks, idempotence, each, slowest)
        report.cell(f"kill -9 {partitions} partitions acks={acks} idempotence={idempotence}", cell)
