"""The other ends of a measurement as processes of their own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def counterpart(*arguments: str) -> Iterator[int]:
    """A counterpart process; yields its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.counterparts", *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
