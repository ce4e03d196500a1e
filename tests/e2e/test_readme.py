"""The first use that README describes, command by command as it stands there."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.completeness import beyond
from tests.e2e.processes import until
from tests.e2e.service import ROOT, STOP_S

PORT_IN_README = "8321"
COMMANDS = {"curl", "dragoman", "export", "KEY"}
"""How a line of a block begins that is a command of its own."""


def blocks_under(heading: str) -> list[str]:
    """The fenced blocks of a section."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """An empty directory with the environment that `make setup` makes: where a reader stands."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


def environment(checkout: Path, **settings: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{checkout}/.venv/bin:{os.environ['PATH']}", **settings}


def typed(block: str, checkout: Path, *, before: str = "") -> str:
    """What the commands of a block print, typed in one shell; each must succeed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", before + block],
        cwd=checkout,
        env=environment(checkout),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_first_use_from_the_terminal_works_as_written(checkout: Path) -> None:
    [block] = blocks_under("First use, from the terminal")
    assert {re.split(r"[ =]", line)[0] for line in block.splitlines()} <= COMMANDS
    printed = typed(block, checkout)
    assert "time works" in printed
    assert "You said: Hello, who are you?" in printed
    assert "run.completed" in printed
    assert (checkout / ".dragoman" / "dragoman.db").exists()


@pytest.mark.requirement("E1")
@pytest.mark.skipif(shutil.which("curl") is None, reason=beyond("there is no curl"))
def test_first_use_over_http_works_as_written(checkout: Path) -> None:
    serve, curls = blocks_under("First use, over HTTP")
    announced = checkout / ".dragoman" / "serve.json"
    with subprocess.Popen(
        ["bash", "-c", f"exec {serve}"],
        cwd=checkout,
        env=environment(checkout, DRAGOMAN_PORT="0"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            until(lambda: announced.exists() or process.poll() is not None, what="the service")
            port = json.loads(announced.read_text())["url"].rpartition(":")[2]
            assert f"localhost:{PORT_IN_README}/" in curls
            # An HTTP error must not pass unseen.
            strict = 'curl() { command curl --fail-with-body "$@"; echo; }\n'
            printed = typed(curls.replace(f":{PORT_IN_README}/", f":{port}/"), checkout, before=strict)
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=STOP_S)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "is ready on http://127.0.0.1:" in said
    assert ".dragoman/admin.key" in said
    answers = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    registered, tested, agent, waited = answers
    assert registered["slug"] == "clock"
    assert tested["ok"] is True
    assert agent["name"] == "greeter"
    assert waited["run"]["status"] == "completed"
    assert "You said: Hello!" in waited["run"]["output"]
    assert printed.count("You said: Hello!") >= 2
    assert 'event: end\ndata: {"status":"completed"}' in printed
