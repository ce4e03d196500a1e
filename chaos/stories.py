"""Clients, workers, crashes and time in any order, as the tests play them, but more stories, and
others each time."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = "tests/contract/test_run_machine.py"


def options(parser: argparse.ArgumentParser) -> None:
    """`--stories`: how many times as many."""
    parser.add_argument(
        "--stories",
        type=int,
        default=3,
        metavar="N",
        help="stories: N times as many as the tests play, on every backend (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> list[str]:
    """Plays them; hypothesis prints the shortest story that does not hold."""
    command = [sys.executable, "-m", "pytest", "-q", "--durations=0", "-p", "no:cacheprovider", TESTS]
    environment = {**os.environ, "DRAGOMAN_DEEP_STORIES": str(arguments.stories)}
    played = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    return [] if played.returncode == 0 else [f"a story of {TESTS} (printed above)"]
