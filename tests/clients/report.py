"""Cells of the test matrix: each runs, passes or fails by its own, and is counted."""

import sys
import threading
import time
import traceback


class Failed(Exception):
    """A cell's finding; the text says what differs."""


class Report:
    def __init__(self):
        self.passed, self.failures, self.began = 0, [], time.monotonic()
        self.lock = threading.Lock()

    def cell(self, name, run):
        """Runs one cell. What it returns is shown beside its name."""
        began = time.monotonic()
        try:
            note = run()
        except Exception as error:
            text = str(error) if isinstance(error, Failed) else traceback.format_exc(limit=-3)
            self.failures.append((name, text))
            print(f"FAILED {name}: {text}", flush=True)
            return False
        with self.lock:
            self.passed += 1
        note = f": {note}" if note else ""
        print(f"ok     {name}{note} ({time.monotonic() - began:.1f} s)", flush=True)
        return True

    def finish(self):
        for name, text in self.failures:
            print(f"failed: {name}: {text.strip().splitlines()[-1] if text else ''}")
        print(f"client tests: {self.passed} passed, {len(self.failures)} failed "
              f"in {time.monotonic() - self.began:.0f} s")
        print(f"{self.passed} passed, {len(self.failures)} failed", flush=True)
        return 1 if self.failures or not self.passed else 0


def check(condition, text):
    if not condition:
        raise Failed(text)


def note(text):
    print(text, file=sys.stderr, flush=True)
