"""Headless Chromium over its debugging pipe (`--remote-debugging-pipe`): no driver, no port."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

ANSWER_SECONDS_MAX = 60


class Browser:
    """One tab. What the page threw, logged and asked for is kept."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="coreline-browser-")
        self.number, self.rest = 0, b""
        self.requested, self.complaints = [], []
        their_in, self.out = os.pipe()
        self.input, their_out = os.pipe()
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                 "--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={self.home}",
                 "about:blank"]

        def plumb():
            # The browser reads descriptor 3 and writes 4; neither may be one of ours by chance.
            reading, writing = os.dup2(their_in, 103), os.dup2(their_out, 104)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=plumb)
        os.close(their_in)
        os.close(their_out)
        self.session = None
        targets = self.ask("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.input)
        shutil.rmtree(self.home, ignore_errors=True)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + ANSWER_SECONDS_MAX
        while True:
            answer = self.next(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def next(self, until):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.input], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise RuntimeError("the browser does not answer")
            got = os.read(self.input, 1 << 16)
            if not got:
                raise RuntimeError("the browser has ended")
            self.rest += got
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def note(self, event):
        method, told = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requested.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.complaints.append(told["entry"].get("text", "") + " " + told["entry"].get("url", ""))

    def size(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=2, mobile=width < 600)

    def open(self, address):
        self.ask("Page.navigate", url=address)

    def run(self, expression):
        """What the expression is in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression, seconds=30):
        """Waits until the expression is true in the page; answers what it is."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.run(expression)
            if found:
                return found
            time.sleep(0.1)
        raise RuntimeError(f"never in the page: {expression}")

    def picture(self, file):
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))
