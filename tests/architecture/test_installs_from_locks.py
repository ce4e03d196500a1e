"""Environments get exactly the versions of their lock."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

INSTALLS = [
    line.strip()
    for name in ("Makefile", "Containerfile")
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
    if "pip install" in line and "--require-hashes" in line
]


def test_installs_from_locks_are_found() -> None:
    assert len(INSTALLS) == 3


@pytest.mark.parametrize("line", INSTALLS)
def test_the_first_lock_is_the_constraint_too(line: str) -> None:
    # pip before 23.3 does not apply a pin to the same package with extras.
    lock = re.search(r"-r (\S+)", line)
    assert lock is not None
    assert f"-c {lock[1]}" in line
