"""Results of suites: kept, compared, shown as the README's table."""

import json
import re
import time
from collections import Counter, OrderedDict
from pathlib import Path

from base import FAILED, PASSED, SKIPPED, Case
from causes import CAUSES

FOLDER = Path(__file__).resolve().parents[2] / "target/suites"
LINE_CHARACTERS_MAX = 200


def file_of(suite, broker, only):
    return FOLDER / f"{suite.name}.{broker}{'.only' if only else ''}.json"


def keep(suite, broker, cases, folder, only):
    FOLDER.mkdir(parents=True, exist_ok=True)
    file_of(suite, broker, only).write_text(json.dumps({
        "version": suite.version, "date": time.strftime("%Y-%m-%d"), "cases": cases}, indent=1, sort_keys=True))
    for log in folder.glob("*.log"):
        (FOLDER / f"{suite.name}.{broker}.{log.name}").write_bytes(log.read_bytes())
    counted = Counter(case.outcome for case in cases.values())
    print(f"{suite.name} {suite.version} on {broker}: {counted[PASSED]} passed, {counted[FAILED]} failed, "
          f"{counted[SKIPPED]} skipped", flush=True)


def load(suite, broker, only):
    file = file_of(suite, broker, only)
    if not file.exists():
        return {}
    return {name: Case(*case) for name, case in json.loads(file.read_text())["cases"].items()}


def cause_of(suite, case):
    return next((cause for name, pattern, cause in CAUSES
                 if re.fullmatch(name, suite.name) and re.search(pattern, case)), None)


def show(suites, only=None):
    """Prints each difference, then the table; answers whether every difference has its cause."""
    rows, is_good = [], True
    for suite in suites:
        kafka, coreline = load(suite, "kafka", only), load(suite, "coreline", only)
        if not kafka and not coreline:
            continue
        causes = OrderedDict()
        for name in sorted(kafka):
            case = coreline.get(name)
            if kafka[name].outcome == PASSED and coreline and (case is None or case.outcome != PASSED):
                cause = cause_of(suite, name)
                is_good &= cause is not None
                causes[cause or "not explained"] = causes.get(cause or "not explained", 0) + 1
                told = (case.text if case else "it did not run").strip().splitlines()
                print(f"{suite.name}: {name}: {cause or 'NOT EXPLAINED'}: {(told or [''])[-1][:LINE_CHARACTERS_MAX]}")
        for name in sorted(coreline):
            if coreline[name].outcome == PASSED and kafka and kafka.get(name, Case(FAILED)).outcome == FAILED:
                print(f"{suite.name}: {name}: passes here, not on Apache Kafka")
        rows.append(row(suite, kafka, coreline, causes))
    print("| Suite | Cases | Passed by Kafka | Passed by Coreline | Skipped (both) | Passed by Kafka alone |")
    print("|---|---|---|---|---|---|")
    print("\n".join(rows))
    return is_good


def row(suite, kafka, coreline, causes):
    def passed(cases):
        return sum(case.outcome == PASSED for case in cases.values()) if cases else "not run"

    names = set(kafka) | set(coreline)
    skipped = sum(all(cases.get(name, Case(SKIPPED)).outcome == SKIPPED for cases in (kafka, coreline))
                  for name in names)
    told = "; ".join(f"{count}: {cause}" for cause, count in causes.items()) or "none"
    figures = [len(names), passed(kafka), passed(coreline), skipped, told]
    return f"| {suite.name} {suite.version} | {' | '.join(str(one) for one in figures)} |"
