"""Tests that did not run are told of, and are a failure where all must run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.completeness import COMPLETE
from tests.e2e.service import ROOT

RAN = "def test_runs():\n    pass\n"


def a_test_that_needs(reason: str) -> str:
    return f"@pytest.mark.skip(reason={reason!r})\ndef test_is_left_out():\n    pass\n"


def run(directory: Path, *tests: str, complete: str, workers: str = "0") -> subprocess.CompletedProcess[str]:
    """pytest over a file with these tests, as `make test` starts it."""
    (directory / "test_some.py").write_text("\n\n".join(("import pytest", *tests)), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.completeness", "-p", "no:cacheprovider", "-n", workers]
    return subprocess.run(
        [*command, f"--rootdir={directory}", "-c", os.devnull, str(directory)],
        cwd=ROOT,
        env={**os.environ, COMPLETE: complete},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_left_out_fails_a_run_that_has_to_be_whole_and_is_told_of_with_its_reason(
    tmp_path: Path, workers: str
) -> None:
    done = run(tmp_path, RAN, a_test_that_needs("needs chromium: `make browser`"), complete="1", workers=workers)
    assert done.returncode == 1, done.stdout
    told = done.stdout.partition("tests that did not run")[2]
    assert "    1  needs chromium: `make browser`" in told
    assert "1 of them could have run" in told


def test_a_test_left_out_is_told_of_where_a_run_need_not_be_whole(tmp_path: Path) -> None:
    done = run(tmp_path, RAN, a_test_that_needs("needs npm: `make node`"), complete="")
    assert done.returncode == 0, done.stdout
    assert "    1  needs npm: `make node`" in done.stdout.partition("tests that did not run")[2]


@pytest.mark.parametrize("reason", ["opt in with DRAGOMAN_TEST_X=1", "beyond this machine: there is no curl"])
def test_what_nobody_asked_for_or_the_machine_cannot_do_is_told_of_and_fails_nothing(
    tmp_path: Path, reason: str
) -> None:
    done = run(tmp_path, RAN, a_test_that_needs(reason), complete="1")
    assert done.returncode == 0, done.stdout
    assert f"    1  {reason}" in done.stdout.partition("tests that did not run")[2]


def test_a_file_that_is_left_out_whole_counts(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(RAN, encoding="utf-8")
    done = run(tmp_path, "pytest.skip('needs a thing', allow_module_level=True)", complete="1")
    assert done.returncode == 1, done.stdout


def test_a_run_without_gaps_says_nothing_of_them(tmp_path: Path) -> None:
    done = run(tmp_path, RAN, complete="1")
    assert done.returncode == 0, done.stdout
    assert "did not run" not in done.stdout


def test_continuous_integration_asks_for_all_tests() -> None:
    assert f"{COMPLETE}=1 exec make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
