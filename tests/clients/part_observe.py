"""The admin port as operators' tools see it: promtool, HdrHistogram's own processor, a browser."""

import json
import re
import subprocess
import time
import urllib.request

from brokers import kafka_home
from browser import Browser
from part_tools import perf
from report import check

EACH_CORES = False
SHARDS = 2
RECORDS = 20_000
# What promtool says of names that dashboards of Kafka and of its exporters ask for as they are.
STYLE_OF_KAFKA = re.compile(
    r"(kafka_server_(delayedoperationpurgatory_purgatorysize|"
    r"group_coordinator_metrics_group_completed_rebalance_count|"
    r"replicaalterlogdirsmanager_(maxlag|failedpartitionscount|deadthreadcount)|"
    r"socket_server_metrics_connection_(count|creation_rate|close_rate))|"
    r"kafka_log_logcleanermanager_uncleanable_(partitions_count|bytes)|"
    r"kafka_consumergroup_(lag|current_offset)_sum|redpanda_kafka_consumer_group_lag_sum) "
    r"(label names should be written in 'snake_case' not 'camelCase'|"
    r'non-histogram and non-summary metrics should not have "_(count|sum)" suffix)$')


class Observed:
    """A broker whose admin port is asked."""

    def __init__(self, broker):
        self.broker = broker
        self.admin = f"http://127.0.0.1:{broker.port + 1}"
        self.log = broker.folder / "latency.hlog"
        broker.settings |= {"coreline.admin.listener": f"127.0.0.1:{broker.port + 1}",
                            "coreline.latency.log": str(self.log)}

    def get(self, path):
        with urllib.request.urlopen(self.admin + path, timeout=30) as answer:
            return answer.read().decode()

    def told(self, query=""):
        return json.loads(self.get("/latency.json" + query))

    def load(self):
        perf(self.broker, "observed", "all", "none", 100, RECORDS)
        subprocess.run(["kcat", "-C", "-q", "-e", "-o", "beginning", "-b", self.broker.bootstrap,
                        "-t", "observed"], check=True, stdout=subprocess.DEVNULL, timeout=120)


def promtool_cell(observed):
    text = observed.get("/metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          text=True)
    # 3: it parses, with remarks on style.
    check(done.returncode in (0, 3), f"promtool ended with {done.returncode}: {done.stderr[-800:]}")
    remarks = (done.stdout + done.stderr).strip().splitlines()
    ours = [remark for remark in remarks if not STYLE_OF_KAFKA.match(remark)]
    check(not ours, "\n".join(ours))
    families = text.count("# TYPE ")
    check(families > 50, f"only {families} families")
    return f"{families} families, {len(remarks)} remarks, all on names that are Kafka's"


def rows(text):
    """Percentile, value and count of a percentile distribution's lines."""
    found = []
    for line in text.splitlines():
        fields = line.split()
        if 3 <= len(fields) <= 4 and re.match(r"[\d.]+$", fields[0]):
            found.append((float(fields[1]), float(fields[0]), int(fields[2])))
    return found


def processor(observed, *words):
    jar = next((kafka_home() / "libs").glob("HdrHistogram-*.jar"))
    done = subprocess.run(
        ["java", "-Xmx256m", "-cp", str(jar), "org.HdrHistogram.HistogramLogProcessor", "-i",
         str(observed.log), *words], capture_output=True, text=True, timeout=120)
    check(done.returncode == 0 and not done.stderr, f"{words}: {done.stderr[-800:]}")
    return done.stdout


def histogram_cell(observed, told, curves):
    """Its tool reads the interval log, and draws the same curves from it as the admin port."""
    tags = processor(observed, "-listtags").splitlines()[1:]
    series = told["windows"]["start"]
    names = [("stage:" if one["kind"] == "stage" else "") + one["name"] for one in series]
    check(sorted(tags) == sorted(names), f"tags {sorted(tags)}, but {sorted(names)} were recorded")
    for tag, curve in curves.items():
        out = observed.broker.folder / "processed"
        processor(observed, "-tag", tag, "-o", str(out))
        theirs, ours = rows(out.with_suffix(".hgrm").read_text()), rows(curve)
        check(len(ours) > 10 and ours[-1][0] == 1.0, f"{tag}: {curve[:500]}")
        total = ours[-1][2]
        check(theirs[-1][2] == total, f"{tag}: {theirs[-1][2]} in the log, {total} told")
        their = {percentile: (value, count) for percentile, value, count in theirs}
        differing = []
        for percentile, value, count in ours:
            value_of_theirs, count_of_theirs = their.get(percentile, (None, None))
            # Where a percentile falls just between two values, the libraries round differently.
            is_tie = count_of_theirs is not None and count_of_theirs == percentile * total
            if value_of_theirs is None or abs(value - value_of_theirs) > 0.006 and not is_tie:
                differing.append((percentile, value, value_of_theirs))
        check(not differing, f"{tag}: {differing[:5]}")
    return f"{len(tags)} tags, {', '.join(curves)} equal"


def open_page(browser, observed, width, height, query=""):
    browser.size(width, height)
    browser.open(observed.admin + "/latency" + query)
    browser.until("document.body && document.body.dataset.ready === 'yes'")


def page_cell(browser, observed):
    """What the page shows is what is told; it asks nobody else and complains of nothing."""
    open_page(browser, observed, 1200, 900)
    told = observed.told()
    series = told["windows"]["start"]
    produce = next(one for one in series if one["name"] == "Produce")
    text = browser.run("document.querySelector('[data-request=Produce]').innerText")
    stage, share = produce["tail"][0]
    check(f"{stage} {share * 100:.0f} %" in text, f"not {stage} {share} in: {text}")
    counted = browser.run(
        "Object.fromEntries([...document.querySelectorAll('#request-table tr')].slice(1)"
        ".map(row => [row.cells[0].innerText, row.cells[1].innerText.replaceAll(',', '')]))")
    for one in series:
        if one["kind"] == "request":
            check(counted.get(one["name"]) == str(one["count"]), f"{one['name']}: {counted}")
    for kind in ("request", "stage"):
        curves = browser.run(f"[...document.querySelectorAll('#{kind}-plot polyline')]"
                             ".map(curve => curve.dataset.series)")
        wanted = [one["name"] for one in series if one["kind"] == kind]
        check(curves == wanted, f"curves of {curves}, not {wanted}")
    check(browser.run("document.getElementById('shard').options.length") == SHARDS + 1, "shards")
    browser.picture(observed.broker.folder / "latency-wide.png")
    return text


def choice_cell(browser, observed):
    """A shard and a span are chosen; what comes later is shown without a reload."""
    sums = 0
    for shard in range(SHARDS):
        browser.run("(() => { const choice = document.getElementById('shard');"
                    f"choice.value = '{shard}'; choice.dispatchEvent(new Event('change')); }})()")
        one = next((one["count"] for one in observed.told(f"?shard={shard}")["windows"]["start"]
                    if one["name"] == "Produce"), 0)
        sums += one
        row = ("[...document.querySelectorAll('#request-table tr')]"
               ".find(row => row.cells[0].innerText === 'Produce')")
        shown = f"({row} ? Number({row}.cells[1].innerText.replaceAll(',', '')) : 0) === {one}"
        browser.until(shown)
    open_page(browser, observed, 1200, 900, "?window=minute")
    before = sums
    perf(observed.broker, "observed", "all", "none", 100, 1_000)
    browser.until(f"Number({row}.cells[1].innerText.replaceAll(',', '')) > {before}")


def phone_cell(browser, observed):
    """On a phone nothing is cut off, and letters are large enough."""
    open_page(browser, observed, 390, 844)
    width = browser.run("document.documentElement.scrollWidth")
    check(width <= 390, f"{width} wide")
    # The longest name of a request may come at any time, with figures as wide as they get.
    widest = ["AlterPartitionReassignments", "10,000,000", *["12345"] * 6]
    hidden = browser.run(f"(() => {{ {json.dumps(widest)}.forEach((text, place) => "
                         "document.querySelector('#request-table tr:last-child').cells[place].innerText = text);"
                         "return [...document.querySelectorAll('.scroll')]"
                         ".filter(one => one.scrollWidth > one.clientWidth).length; })()")
    check(hidden == 0, f"{hidden} tables do not fit")
    small = browser.run(
        "[...document.querySelectorAll('body *')].filter(one => one.innerText && !one.children.length"
        " && one.getBoundingClientRect().width > 0)"
        ".map(one => [one.innerText, parseFloat(getComputedStyle(one).fontSize)])"
        ".filter(one => one[1] < 12)")
    check(not small, f"too small: {small[:5]}")
    # SVG text shrinks with its picture.
    drawn = browser.run("Math.min(...[...document.querySelectorAll('svg text')]"
                        ".map(one => one.getBoundingClientRect().height))")
    check(drawn >= 10, f"text in pictures is {drawn} high")
    low = browser.run("Math.min(...[...document.querySelectorAll('select')]"
                      ".map(one => one.getBoundingClientRect().height))")
    check(low >= 30, f"a choice is {low} high")
    browser.picture(observed.broker.folder / "latency-phone.png")


def quiet_cell(browser, observed):
    outside = [url for url in browser.requested
               if not url.startswith((observed.admin, "about:", "data:"))]
    check(not outside, f"asked for {outside}")
    check(not browser.complaints, "\n".join(browser.complaints))
    return f"{len(browser.requested)} requests"


def gone_cell(browser):
    """A page that is left open says that the broker is gone."""
    browser.until("document.getElementById('state').innerText.includes('does not answer')")


def settled(observed):
    """What is told, once two answers in a row tell the same."""
    before = None
    for _ in range(100):
        told = observed.told()
        counts = {one["name"]: one["count"] for one in told["windows"]["start"]}
        if counts == before:
            return told
        before = counts
        time.sleep(0.3)
    raise RuntimeError(f"never settled: {before}")


def run(report, make_broker, _dose, _cores):
    broker = make_broker("observe", {"coreline.cores": SHARDS})
    if broker.name == "kafka":
        return "Apache Kafka has no such port"
    observed = Observed(broker)
    with broker, Browser() as browser:
        report.cell("observe load", observed.load)
        settled(observed)
        report.cell("observe promtool", lambda: promtool_cell(observed))
        report.cell("observe page", lambda: page_cell(browser, observed))
        report.cell("observe choices", lambda: choice_cell(browser, observed))
        report.cell("observe phone", lambda: phone_cell(browser, observed))
        report.cell("observe nothing from outside", lambda: quiet_cell(browser, observed))
        told = settled(observed)
        curves = {"Produce": observed.get("/latency.hgrm?api=Produce"),
                  "stage:flush": observed.get("/latency.hgrm?stage=flush")}
        broker.stop()
        report.cell("observe a page left open", lambda: gone_cell(browser))
        report.cell("observe histograms", lambda: histogram_cell(observed, told, curves))
    return None
