"""Parts of the broker apart: what each costs beside its floor or its rival."""

import re

from common import BROKER_CPU, CLIENT_CPU, build, coreline, figures, gate, load, run, spread

# A CRC-32C pass may cost so many times reading the bytes once, out of the cache near the core.
CRC_RATIO_MAX = 3.0
# Reading or writing a message may cost so many times what kafka-protocol takes.
CODEC_RATIO_MAX = 1.25
# A request on the bare runtime may cost so many times one on a blocking thread of its own.
RUNTIME_RATIO_MAX = {"paced": 1.5, "saturated": 1.0}
# A request over a hop may cost so many times one on the connection's own shard.
HOP_RATIO_MAX = 1.5


def bench_floor(_arguments):
    program = build("floor")["floor"]
    for chunk in (65_536, 16_384):
        print(f"chunk={chunk}")
        print(run(["taskset", "-c", BROKER_CPU, str(program), "--chunk", str(chunk), "--peer-cpu", CLIENT_CPU]),
              end="")


def bench_runtime(_arguments):
    program = build("runtime")["runtime"]
    told = run([str(program)])
    print(told, end="")
    seen = {}
    row = r"^(paced [\d,]+/s|saturated \S+ x \S+)\s+(coreline|floor)\D*\d+\s+([\d.]+)"
    for load_name, server, cpu in re.findall(row, told, re.M):
        seen.setdefault(load_name, {})[server] = float(cpu)
    for load_name, cpu in seen.items():
        gate(f"runtime's CPU a request ÷ a thread each, {load_name}", cpu["coreline"] / cpu["floor"],
             RUNTIME_RATIO_MAX[load_name.split()[0]])


def bench_crc(_arguments):
    told = run(["taskset", "-c", BROKER_CPU, str(build("crc")["crc"])])
    print(told, end="")
    for line in told.splitlines():
        seen = figures(line)
        if seen["batch_bytes"] in (16_384, 65_536) and seen["memory"] == "cold":
            gate(f"CRC-32C ÷ reading once, {seen['batch_bytes'] / 1024:.0f} KiB", seen["ratio"], CRC_RATIO_MAX)


def bench_codec(_arguments):
    told = run(["taskset", "-c", BROKER_CPU, str(build("codec")["codec"])])
    print(told, end="")
    for line in told.splitlines():
        seen = figures(line)
        gate(f"codec ÷ kafka-protocol, {seen['case']}", seen["ours_ns"] / seen["rival_ns"], CODEC_RATIO_MAX)


def bench_append(_arguments):
    program = build("append")["append"]
    for partitions in (1, 1000):
        for batch in (16_384, 65_536):
            told = run(["taskset", "-c", BROKER_CPU, str(program), "--partitions", str(partitions),
                        "--batch-bytes", str(batch)])
            print(told, end="")
            seen = figures(told)
            gate(f"journal writes an append, {seen['in_flight']:.0f} in flight, {partitions} partitions",
                 seen["journal_writes_per_batch"], seen["allowed"])


def bench_wake(arguments):
    program = build("wake")["wake"]
    for pause in (1_000, 20_000):
        words = [str(program), "--pause-us", str(pause), "--messages", str(2_000_000 // pause)]
        seen = [figures(run(words))["wake_cpu_us"] for _ in range(arguments.pairs)]
        print(f"wake of a shard idle for {pause // 1000} ms: CPU µs a message {spread(seen)}")


def bench_hop(_arguments):
    """One connection, one request at a time, to a partition of its shard and to one of the other."""
    program = build("load")["load"]
    for kind, record in (("hop-fetch", 1024), ("hop-produce", 1024)):
        with coreline(cores=2, cpus="0-1") as broker:
            told = load(program, broker, kind, raw=True, topic="hop", record_bytes=record, batch_bytes=16_384)
            table = broker.stop()
        sides = [figures(line) for line in told.splitlines()]
        hops = int(re.search(r"^hops to other shards\s+(\d+)", table, re.M).group(1))
        # The requests of one of them went over: the broker's own count says whose.
        other, own = sorted(sides, key=lambda side: abs(side["requests"] - hops))
        if abs(other["requests"] - hops) > own["requests"] / 4:
            print(f"{kind}: {hops} hops are those of neither partition")
            continue
        for place, side in (("own shard", own), ("other shard", other)):
            print(f"{kind[4:]} on {place:12} CPU µs {side['cpu_us']:8.2f}  p50 µs {side['p50_us']:6.0f}  "
                  f"p99 µs {side['p99_us']:6.0f}")
        gate(f"{kind[4:]}: CPU over a hop ÷ own shard", other["cpu_us"] / own["cpu_us"], HOP_RATIO_MAX)
        gate(f"{kind[4:]}: p50 over a hop ÷ own shard", other["p50_us"] / own["p50_us"], HOP_RATIO_MAX)
