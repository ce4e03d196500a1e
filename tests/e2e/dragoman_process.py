"""The real `dragoman` command in processes of its own, over a data directory of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import yaml

from domain.json_value import JsonObject

COMMAND = str(Path(sys.executable).with_name("dragoman"))
DEADLINE_S = 120
"""Generous: machines that run tests are busy."""
_FOREIGN = ("DRAGOMAN_", "OPENAI_", "ANTHROPIC_", "LANGFUSE_", "OTEL_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that has ended."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> JsonObject:
        """The document on stdout."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document


class Dragoman:
    """Commands over one HOME. Nothing of the tester's environment reaches them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        self.environment = {
            **kept,
            "DRAGOMAN_HOME": str(home),
            "DRAGOMAN_PORT": "0",
            "DRAGOMAN_EGRESS_ALLOW": "127.0.0.0/8",  # servers of tests are on this machine
            "PYTHONUNBUFFERED": "1",
        }

    def run(self, *arguments: str, exit_code: int = 0, piped: str = "", **environment: str) -> Done:
        """Run a command to its end, which must come with this exit code; it reads what is
        `piped`."""
        ended = subprocess.run(
            [COMMAND, *arguments],
            env={**self.environment, **environment},
            input=piped,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert ended.returncode == exit_code, f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        assert "Traceback" not in ended.stderr, ended.stderr
        return Done(exit_code=ended.returncode, out=ended.stdout, err=ended.stderr)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Begin a command whose output is read as it comes."""
        return subprocess.Popen(
            [COMMAND, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def script(self, name: str, *turns: JsonObject) -> str:
        """Write a scripted model; gives its name for --model."""
        folder = self.home / "scripted"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.home.chmod(0o700)
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"turns": [*turns]}), encoding="utf-8")
        return f"scripted:{name}.yaml"

    def add_time_server(self) -> None:
        """Register a real MCP server under the slug `time`."""
        self.run("mcp", "add", "time", "--", sys.executable, "-m", "mcp_server_time")


def read_until(stream: IO[str] | None, text: str) -> str:
    """Lines up to the one that holds `text`; fails at the stream's end."""
    assert stream is not None
    lines = []
    for line in stream:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError(f"{text!r} never came:\n{''.join(lines)}")
