"""What all suites share: where they are kept, commands of bounded time, cases."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
BUILD_SECONDS_MAX = 1800
TEXT_CHARACTERS_MAX = 2_000


class Case(NamedTuple):
    """How one case ended, and what it said where it did not pass."""
    outcome: str
    text: str = ""


def failed(text):
    return Case(FAILED, text[-TEXT_CHARACTERS_MAX:])


def cache(name):
    """The folder of a fetched suite; its name holds the version, so that another version is another folder."""
    home = Path(os.environ.get("CORELINE_CACHE", Path.home() / ".cache/coreline"))
    folder = home / "suites" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def once(folder, build):
    """Builds into the folder where that has not been done to its end."""
    mark = folder / ".complete"
    if not mark.exists():
        shutil.rmtree(folder)
        folder.mkdir()
        build(folder)
        mark.touch()


def call(words, cwd, seconds=BUILD_SECONDS_MAX, **environment):
    """A step of fetching or building; answers what it printed, and shows all where it fails."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, timeout=seconds, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment})
    if done.returncode:
        sys.exit(f"{words[0]} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-TEXT_CHARACTERS_MAX:]}")
    return done.stdout


def run(words, cwd, log, seconds, **environment):
    """Runs a part of a suite; answers its exit code, None where its time ran out, and what it printed. Whatever it
    started ends with it."""
    with open(log, "wb") as out:
        process = subprocess.Popen([str(word) for word in words], cwd=cwd, stdout=out, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True,
                                   env={**os.environ, **environment})
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    return code, Path(log).read_text(errors="replace")
