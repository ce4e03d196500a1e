"""All tests at other moments and in other time zones:
`python -m tests.clock --cases "year decade" -- -n 3`, or `make test-clock`."""

import argparse
import os
import subprocess
import sys
from datetime import UTC, datetime

from tests.clock.cases import CASES, ClockCase
from tests.clock.faked_clock import ClockUnavailable, faked_clock

DESELECTED = {
    "tests/integration/mcp/test_stdio_launcher.py::test_the_server_gets_its_streams_and_nothing_else": (
        "libfaketime opens a file in every program that it is loaded into"
    ),
    "tests/integration/native_tools/test_code_execution.py::test_the_interpreter_is_confined_where_this_machine_can": (
        "libfaketime opens shared memory in every program, which the confined interpreter may not"
    ),
}
"""Tests that cannot pass with a moved clock though neither they nor the product are wrong, and
why."""
DESELECTED_IN = {
    "decade": {
        "tests/documents/test_pages_other.py::test_the_commands_of_a_page_work_as_written[examples/README.md]": (
            "it installs from a package registry, whose certificate is not valid for so long"
        )
    }
}
"""The same, in one case."""


def main(arguments: list[str]) -> int:
    """1 if a test failed, 2 if the clock cannot be moved here."""
    parser = argparse.ArgumentParser(prog="python -m tests.clock", description=__doc__)
    names = [case.name for case in CASES]
    parser.add_argument("--cases", default="", help=f"which of: {' '.join(names)} (all)")
    parser.add_argument("pytest", nargs="*", metavar="ARGUMENT", help="arguments of pytest, after --")
    given = parser.parse_args(arguments)
    chosen = given.cases.split() or names
    if unknown := set(chosen) - set(names):
        parser.error(f"no such case: {' '.join(sorted(unknown))}")
    try:
        results = {case.name: _run(case, given.pytest) for case in CASES if case.name in chosen}
    except ClockUnavailable as missing:
        print(f"The clock of the tests cannot be moved: {missing}.", file=sys.stderr)
        return 2
    for name, status in results.items():
        print(f"{name:12} {'passed' if status == 0 else 'FAILED'}")
    return int(any(results.values()))


def _run(case: ClockCase, arguments: list[str]) -> int:
    now = datetime.now(UTC)
    environment = faked_clock(case, now, os.environ)
    print(f"── {case.name}: from {case.start(now):%Y-%m-%d %H:%M} UTC on, in {case.zone}", flush=True)
    left_out = [f"--deselect={test}" for test in (*DESELECTED, *DESELECTED_IN.get(case.name, ()))]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *left_out, *arguments], env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
