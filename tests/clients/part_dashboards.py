"""A Prometheus scrapes the broker, and what dashboards ask it for is there: our own dashboard's
queries as they stand, and the metrics that a public one asks for (`tests/data`)."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from brokers import ROOT
from part_observe import Observed, SHARDS
from report import check

EACH_CORES = False
OWN = ROOT / "tuning/grafana/coreline.json"
PUBLIC = ROOT / "tests/data/strimzi-kafka-dashboard.txt"
READY_SECONDS_MAX = 60


class Prometheus:
    """Scrapes one broker each second."""

    def __init__(self, observed, port):
        self.folder, self.at = observed.broker.folder, f"http://127.0.0.1:{port}"
        settings = self.folder / "prometheus.yml"
        target = observed.admin.removeprefix("http://")
        settings.write_text(
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n- job_name: coreline\n"
            f"  static_configs: [{{targets: ['{target}']}}]\n")
        with open(self.folder / "prometheus.log", "ab") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={settings}",
                 f"--storage.tsdb.path={self.folder / 'prometheus'}",
                 f"--web.listen-address=127.0.0.1:{port}"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def query(self, text):
        """The series that it answers with."""
        asked = f"{self.at}/api/v1/query?{urllib.parse.urlencode({'query': text})}"
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{text}: {error.read().decode()}") from None

    def until(self, text):
        end = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < end:
            try:
                found = self.query(text)
            except (OSError, KeyError):
                found = None
            if found:
                return found
            time.sleep(0.5)
        raise RuntimeError(f"nothing for {text} in {READY_SECONDS_MAX} s")


def expressions():
    """Our dashboard's queries with their panels' titles, variables filled in as for 'All'."""
    board = json.loads(OWN.read_text())
    for panel in board["panels"]:
        for one in panel.get("targets", []):
            expression = one["expr"].replace("$__rate_interval", "1m")
            for variable in ("job", "instance", "topic"):
                expression = expression.replace(f"${variable}", ".*")
            check("$" not in expression, f"an unknown variable in {expression}")
            yield panel["title"], expression


def own_cell(prometheus):
    asked = list(expressions())
    empty = []
    for title, expression in asked:
        found = prometheus.query(expression)
        # NaN comes of a division by nothing.
        if not [one for one in found if one["value"][1] != "NaN"]:
            empty.append(f"{title}: {expression}")
    check(len(asked) > 30, f"only {len(asked)} queries")
    check(not empty, "\n".join(empty))
    return f"{len(asked)} queries, none empty"


def public_rows():
    for line in PUBLIC.read_text().splitlines():
        if line and not line.startswith("#"):
            metric, labels, verdict = (part.strip() for part in line.split("|"))
            yield metric, [label.strip() for label in labels.split(",") if label.strip()], verdict


def public_cell(prometheus):
    served = missing = 0
    for metric, labels, verdict in public_rows():
        selected = ",".join(f'{label}!=""' for label in labels)
        # The Prometheus's own process is not scraped: what is there is the broker's.
        found = prometheus.query(f"{metric}{{{selected}}}")
        if verdict == "served":
            served += 1
            check(found, f"{metric}{{{selected}}} is said to be served and is not there")
        else:
            missing += 1
            check(not found, f"{metric} is there, but said to be missing: {verdict}")
    check(served > 20, f"only {served} rows")
    return f"{served} of {served + missing} metrics served, the others with a reason"


def run(report, make_broker, _dose, _cores):
    broker = make_broker("dashboards", {"coreline.cores": SHARDS})
    if broker.name == "kafka":
        return "Apache Kafka has no such port"
    observed = Observed(broker)
    with broker, Prometheus(observed, broker.port + 2) as prometheus:
        prometheus.until("up == 1")
        # Rates need values from before and after: the topic is there first.
        observed.load()
        prometheus.until("kafka_log_log_size")
        observed.load()
        # Partitions are told every five seconds at most.
        prometheus.until("rate(kafka_server_brokertopicmetrics_messagesin_total{topic!=''}[1m]) > 0")
        report.cell("dashboards our own", lambda: own_cell(prometheus))
        report.cell("dashboards Strimzi's", lambda: public_cell(prometheus))
    return None
