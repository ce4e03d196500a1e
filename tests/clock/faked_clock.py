"""Environment in which programs see a moved clock: libfaketime, with what corrects its waits
(`real_waits.c`)."""

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from tests.clock.cases import ClockCase

HERE = Path(__file__).resolve().parent
BUILT = HERE.parents[1] / "build" / "clock" / "real_waits.so"
ZONES = Path("/usr/share/zoneinfo")
_PLACES = ("/usr/lib/*/faketime", "/usr/lib64/faketime", "/usr/lib/faketime")


class ClockUnavailable(Exception):
    """The clock cannot be moved on this machine. The message says what is missing."""


def faked_clock(case: ClockCase, now: datetime, inherited: Mapping[str, str]) -> dict[str, str]:
    """`inherited`, and what moves the clock to the start of a case. Raises ClockUnavailable."""
    if not (ZONES / case.zone).exists():
        raise ClockUnavailable(f"there is no time zone {case.zone} in {ZONES} (Debian package: tzdata)")
    offset = round((case.start(now) - now).total_seconds())
    moved = {
        **inherited,
        "TZ": case.zone,
        # MCP servers and clients measure durations with the monotonic clock, and the kernel knows
        # only its own.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # Otherwise each wait on a condition, of which Python's threads make many, ends at once.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        # Times of files are real: with moved ones every start of a Python would compile all modules
        # again.
        "NO_FAKE_STAT": "1",
        "FAKETIME": f"{offset:+d}",
        "LD_PRELOAD": f"{_real_waits()} {_libfaketime()}",
    }
    _check(moved, now.timestamp() + offset)
    return moved


def _libfaketime() -> Path:
    found = [path for place in _PLACES for path in sorted(Path("/").glob(f"{place[1:]}/libfaketimeMT.so.1"))]
    if not found:
        raise ClockUnavailable("there is no libfaketime (Debian package: faketime)")
    return found[0]


def _real_waits() -> Path:
    """Compiled, and put in its place at once: programs of another run may load it."""
    BUILT.parent.mkdir(parents=True, exist_ok=True)
    fresh = BUILT.with_suffix(f".{os.getpid()}")
    source = HERE / "real_waits.c"
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", fresh, source], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ClockUnavailable("there is no C compiler that works (Debian packages: gcc libc6-dev)") from error
    return fresh.replace(BUILT)


def _check(environment: Mapping[str, str], wanted: float) -> None:
    """A program sees the moved clock, and sleeps as long as it should."""
    program = "import time; at = time.monotonic(); time.sleep(0.1); print(time.time(), time.monotonic() - at)"
    asked = subprocess.run(
        [sys.executable, "-I", "-c", program],
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    seen, slept = (float(word) for word in asked.stdout.split()[:2]) if asked.returncode == 0 else (0.0, 0.0)
    if not (abs(seen - wanted) < 60 and 0.05 < slept < 60):
        raise ClockUnavailable(f"a program with the moved clock says {asked.stdout or asked.stderr}")
