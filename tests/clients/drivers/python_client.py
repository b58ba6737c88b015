"""kafka-python as a client under test: does a list of tasks, answers one JSON line each."""

import base64
import hashlib
import json
import os
import sys
import time

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import RebalanceInProgressError

LIMIT = 16 << 20
# A consumer learns where its partitions begin and end only between its parked fetches.
FETCH_WAIT_MS = 50
# A poll of kafka-python 3 that ends while the answer to its SyncGroup arrives loses that answer: the member
# has no partitions from then on, does not join again and sends no heartbeat. So polls are long while it joins.
JOINING_POLL_MS, POLL_MS = 5_000, 500
COMES_SECONDS_MAX = 60


def decode(text):
    return None if text is None else base64.b64decode(text)


def produce(bootstrap, task):
    codec = None if task["codec"] == "none" else task["codec"]
    if kafka.__version__ >= "3":
        options = {"enable_idempotence": task["idempotence"]}
    else:
        # With several in flight 2.0.2 can forget to send a request that it queued while the rest of
        # a large one was leaving, and tries again 30 s later: against Apache Kafka just the same.
        options = {"buffer_memory": 8 * LIMIT, "max_in_flight_requests_per_connection": 1}
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=codec, acks="all", linger_ms=20, retries=5,
        max_request_size=LIMIT, batch_size=65_536, **options)
    futures = []
    with open(task["records"]) as lines:
        for line in lines:
            one = json.loads(line)
            headers = [(name, decode(content)) for name, content in one["h"]]
            futures.append(producer.send(
                task["topic"], key=decode(one["k"]), value=decode(one["v"]), headers=headers,
                partition=one["p"], timestamp_ms=one["t"]))
    producer.flush(60)
    acked = []
    for future in futures:
        meta = future.get(timeout=60)
        acked.append([meta.partition, meta.offset])
    producer.close()
    return {"acked": acked}


def consume(bootstrap, task):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, enable_auto_commit=False, fetch_max_bytes=LIMIT * 4,
        max_partition_fetch_bytes=LIMIT, check_crcs=True, fetch_max_wait_ms=FETCH_WAIT_MS)
    partitions = [TopicPartition(task["topic"], index) for index in range(task["partitions"])]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    ends = consumer.end_offsets(partitions)
    count = 0
    with open(task["output"], "w") as out:
        idle = 0
        while any(consumer.position(one) < ends[one] for one in partitions) and idle < 60:
            polled = consumer.poll(timeout_ms=500)
            idle = 0 if polled else idle + 1
            for record in (record for records in polled.values() for record in records):
                value = record.value
                headers = [[name, None if content is None else base64.b64encode(content).decode()]
                           for name, content in record.headers]
                key = None if record.key is None else base64.b64encode(record.key).decode()
                digest = None if value is None else hashlib.sha256(value).hexdigest()
                out.write(json.dumps({
                    "p": record.partition, "o": record.offset, "t": record.timestamp, "k": key,
                    "v": digest, "n": len(value or b""), "h": headers}) + "\n")
                count += 1
    consumer.close()
    return {"count": count}


def subscribe(bootstrap, task):
    """A member of a group: reads until it has enough or is told to stop, commits and leaves."""
    wanted, count, assigned, came = task.get("count"), 0, set(), time.monotonic()
    consumer = KafkaConsumer(
        task["topic"], bootstrap_servers=bootstrap, group_id=task["group"], client_id="python",
        auto_offset_reset="earliest", enable_auto_commit=False, heartbeat_interval_ms=200,
        # Not one record more than it wants: the next one has to find the rest.
        fetch_max_wait_ms=FETCH_WAIT_MS, max_poll_records=10 if wanted is None else 1)
    with open(task["output"], "w") as out:
        while True:
            is_enough = wanted is not None and count >= wanted or os.path.exists(task["stop"])
            if is_enough and is_committed(consumer):
                break
            polled = consumer.poll(timeout_ms=POLL_MS if assigned else JOINING_POLL_MS)
            came = time.monotonic() if polled else came
            if wanted is not None and time.monotonic() - came > COMES_SECONDS_MAX:
                raise RuntimeError(f"{count} of {wanted} records came")
            for record in (record for records in polled.values() for record in records):
                out.write(json.dumps({"p": record.partition, "o": record.offset}) + "\n")
                count += 1
            now = consumer.assignment()
            if now != assigned:
                assigned = set(now)
                out.write(json.dumps({"assigned": [one.partition for one in now]}) + "\n")
            out.flush()
    consumer.close()
    return {"count": count}


def is_committed(consumer):
    """Commits; where the group is being balanced, the coordinator wants it polled first."""
    try:
        consumer.commit()
    except RebalanceInProgressError:
        return False
    return True


def main():
    bootstrap, tasks = sys.argv[1], json.load(open(sys.argv[2]))
    for task in tasks:
        try:
            does = {"produce": produce, "consume": consume, "subscribe": subscribe}
            answer = does[task["do"]](bootstrap, task)
        except Exception as error:  # the harness shows it in the cell
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
