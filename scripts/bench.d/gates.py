"""Gates: each prints its figure and its target, measured on a broker under load."""

import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import BROKER_CPU, BUILD_SECONDS_MAX, CLIENT_CPU, STEADY_CACHE, build, coreline, figures, gate, load, run


def process_io(pid, name):
    text = Path(f"/proc/{pid}/io").read_text()
    return int(re.search(rf"^{name}: (\d+)", text, re.M).group(1))


def device_bytes_written(pid):
    return process_io(pid, "write_bytes")


def with_broker(*gates):
    """A part that runs these gates on one broker."""
    def part(arguments):
        programs = build("load", "floor")
        with coreline(STEADY_CACHE) as broker:
            for measure in gates:
                measure(programs, broker, arguments)
    return part


def bench_journal(arguments):
    programs = build("load")
    for partitions in (1, 1000):
        gate_group_commit(programs, partitions, arguments)


def bench_allocations(_arguments):
    told = run(["cargo", "test", "--quiet", "--test", "broker_allocations", "--", "--nocapture"], BUILD_SECONDS_MAX,
               stderr=subprocess.STDOUT)
    found = re.findall(r"allocations a produce: ([\d.]+) .* with (\d+) record", told)
    for count, records in found:
        gate(f"G6 allocations a produce of {records} records", float(count), 10)


def bench_gates(arguments):
    with_broker(gate_produce_cpu, gate_fetch_cpu, gate_amplification, gate_syscalls)(arguments)
    bench_journal(arguments)
    bench_allocations(arguments)
    bench_touches(arguments)


def counted(programs, names, **options):
    """What the broker has counted under `names` after a produce load, and the load's figures."""
    with coreline() as broker:
        load(programs["load"], broker, "produce", warmup_seconds=0, **options)
        table = broker.stop()
    return [int(re.search(rf"^{name}\s+(\d+)", table, re.M).group(1)) for name in names]


def gate_group_commit(programs, partitions, arguments):
    connections, depth = 4, 5
    writes, batches = counted(programs, ("journal writes", "batches appended"), topic="g3", partitions=partitions,
                              connections=connections, depth=depth, seconds=arguments.seconds)
    gate(f"G3 journal writes a batch, {connections * depth} in flight, {partitions} partitions",
         writes / batches, 2 / (connections * depth))


def bench_touches(arguments):
    """Counted where it happens: each checksum pass over a batch and each copy of its bytes."""
    programs = build("load")
    names = ("batch bytes checksummed", "batch bytes copied", "bytes appended", "journal bytes")
    for name, batch, connections, copies_max in (("direct", 1_000_000, 1, 1), ("journalled", 16_384, 4, 2)):
        checked, copied, appended, journal = counted(
            programs, names, topic="g7", partitions=4, connections=connections, batch_bytes=batch, record_bytes=1024,
            seconds=arguments.seconds)
        what = f"{name}, {batch >> 10} KiB"
        print(f"{what}: {journal / appended:.0%} of the bytes went through the journal")
        gate(f"G7 CRC passes a byte, {what}", checked / appended, 1)
        gate(f"G7 copies a byte, {what}", copied / appended, copies_max)


def floor_parts(program, chunk):
    """With the peer where the load generator is: waking it across CPUs is a part of the price."""
    return figures(run(["taskset", "-c", BROKER_CPU, str(program), "--chunk", str(chunk), "--peer-cpu", CLIENT_CPU]))


def path(name, seen, floors):
    """One line of a path's own cost beside that of its parts in the same run."""
    medians = {word: statistics.median(one[word] for one in seen)
               for word in ("broker_cpu_us_per_request", "broker_cpu_ns_per_byte", "mb_per_broker_cpu_s")}
    print(f"{name}: CPU µs a request {medians['broker_cpu_us_per_request']:.1f}, "
          f"ns a byte {medians['broker_cpu_ns_per_byte']:.3f} (floor {statistics.median(floors):.3f}), "
          f"MB a CPU-second {medians['mb_per_broker_cpu_s']:.0f}", flush=True)
    return statistics.median(one["broker_cpu_ns_per_byte"] / floor for one, floor in zip(seen, floors))


def gate_produce_cpu(programs, broker, arguments):
    for chunk, target in ((65_536, 2.0), (16_384, 3.0)):
        seen, floors = [], []
        for _ in range(arguments.pairs):
            floors.append(floor_parts(programs["floor"], chunk)["parts"])
            seen.append(load(programs["load"], broker, "produce", topic=f"g1-{chunk}", batch_bytes=chunk,
                             record_bytes=1024, seconds=arguments.seconds, partitions=4))
        ratio = path(f"produce path, {chunk >> 10} KiB", seen, floors)
        gate(f"G1 produce CPU ÷ parts at {chunk >> 10} KiB", ratio, target)


def gate_fetch_cpu(programs, broker, arguments):
    load(programs["load"], broker, "produce", topic="g2", batch_bytes=65_536, record_bytes=1024, seconds=0.2,
         warmup_seconds=0, connections=1)
    seen, floors, disk_reads = [], [], 0
    for _ in range(arguments.pairs):
        floors.append(floor_parts(programs["floor"], 65_536)["send_ns_per_byte"])
        before = process_io(broker.pid, "read_bytes")
        seen.append(load(programs["load"], broker, "fetch", topic="g2", connections=1, seconds=arguments.seconds))
        disk_reads += process_io(broker.pid, "read_bytes") - before
    gate("G2 tail fetch CPU ÷ loopback send", path("fetch path, 1 MiB answers", seen, floors), 1.5)
    gate("G2 bytes read from the disk meanwhile", disk_reads, 0)


def gate_amplification(programs, broker, arguments):
    for batch, partitions, target in ((262_144, 1, 1.15), (16_384, 1, 2.3), (16_384, 100, 2.3)):
        before = device_bytes_written(broker.pid)
        seen = load(programs["load"], broker, "produce", topic=f"g4-{batch}-{partitions}", batch_bytes=batch,
                    record_bytes=1024, partitions=partitions, seconds=arguments.seconds, warmup_seconds=0)
        time.sleep(3)
        ratio = (device_bytes_written(broker.pid) - before) / seen["bytes"]
        gate(f"G4 device bytes ÷ acked bytes, {batch >> 10} KiB, {partitions} partitions", ratio, target)


def gate_syscalls(programs, broker, arguments):
    for name, options, target in (
        ("alone", {"connections": 1, "depth": 1}, 4.0),
        ("loaded", {"connections": 8, "depth": 5}, 1.5),
    ):
        def produce():
            return load(programs["load"], broker, "produce", topic="g5", seconds=arguments.seconds,
                        warmup_seconds=0, **options)["requests"]
        # The topic is made, and found, before what is counted.
        produce()
        requests, calls = count_syscalls(broker.pid, produce)
        gate(f"G5 syscalls a produce, {name}", calls / max(requests, 1), target)


def count_syscalls(pid, work):
    """Answers what `work` answers and the process's system calls meanwhile. `perf` counts them in
    the kernel; `strace` stops the process at each, which stretches its turns."""
    with tempfile.NamedTemporaryFile() as out:
        perf = subprocess.Popen(["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "-o", out.name, "-p", str(pid)],
                                stderr=subprocess.DEVNULL) if shutil.which("perf") else None
        time.sleep(0.5)
        if perf is not None and perf.poll() is None:
            answer = work()
            perf.send_signal(signal.SIGINT)
            perf.wait()
            return answer, int(re.search(r"^(\d+),", Path(out.name).read_text(), re.M).group(1))
        if shutil.which("strace") is None:
            sys.exit("G5 needs perf or strace: apt-get install linux-perf strace")
        trace = subprocess.Popen(["strace", "-f", "-c", "-o", out.name, "-p", str(pid)], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        answer = work()
        trace.send_signal(signal.SIGINT)
        trace.wait()
        total = re.search(r"^100\.00\s+\S+\s+(?:\S+\s+)?(\d+)\s", Path(out.name).read_text(), re.M)
        return answer, int(total.group(1))
