"""The Java drivers, compiled where they are missing or older than their source."""

import subprocess
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent.parent / "target/java-client"
# Parts run beside each other and share them.
LOCK = threading.Lock()


def classes(driver, libraries):
    """The folder of a driver's classes."""
    source, compiled = HERE / f"drivers/{driver}.java", FOLDER / f"{driver}.class"
    with LOCK:
        if not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime:
            words = ["javac", "-cp", libraries, "-d", str(FOLDER), str(source)]
            subprocess.run(words, check=True)
    return FOLDER
