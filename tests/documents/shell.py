"""Runs the blocks of a page as a reader would: in order, in one shell on a terminal of 80 columns,
in a directory where README's first steps were done; and holds what they print against what the page
says."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.documents.pages import BEGINNINGS, ROOT, Block, blocks
from tests.documents.reading import Ids, commands, own, unread
from tests.documents.terminal import ReadersTerminal
from tests.e2e.service import migrated_database

SERVE = "dragoman serve"
STEPS = "Quick start: approve an agent's tool call"
"""The section of README that makes what all guides begin with."""
_ADDRESS = "127.0.0.1:8321"


def first_steps(directory: Path) -> None:
    """A directory as `make setup` leaves it, in which README's first steps were done and the
    service stopped."""
    (directory / ".venv").symlink_to(sys.prefix)
    (directory / "examples").symlink_to(ROOT / "examples")
    built = shutil.ignore_patterns("node_modules", "dist", "__pycache__")
    shutil.copytree(ROOT / "clients", directory / "clients", ignore=built)
    subprocess.run(["git", "init", "--quiet", str(directory)], check=True)
    home = directory / ".dragoman"
    home.mkdir(mode=0o700)
    database = home / "dragoman.db"
    database.touch(mode=0o600)
    database.write_bytes(migrated_database())
    _Page(directory).run([block for block in blocks("README.md") if block.runs and block.section == STEPS])


def run_page(page: str, directory: Path) -> None:
    """Run its blocks. Every command must succeed, unless its block says how it ends, and print what
    the block says. The service runs already, unless the page begins with it."""
    wanted = [block for block in blocks(page) if block.runs]
    if page in BEGINNINGS:
        for left in ("clock.yaml", ".dragoman/serve.json"):
            (directory / left).unlink(missing_ok=True)
        (directory / ".dragoman" / "dragoman.db").write_bytes(migrated_database())
    _Page(directory).run(wanted, served=page not in BEGINNINGS)


class _Page:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._environment = {
            **os.environ,
            "PATH": f"{directory}/.venv/bin:{os.environ['PATH']}",
            "DRAGOMAN_PORT": "0",
            "TERM": "xterm-256color",
        }
        self._environment.pop("COLUMNS", None)
        self._ids: Ids = {}

    def run(self, wanted: list[Block], *, served: bool = False) -> None:
        parts = _services(wanted, served=served)
        with ReadersTerminal(self._directory, self._environment) as terminal:
            for serve, of_service in parts:
                with self._service(serve):
                    for block in of_service:
                        self._block(block, terminal)

    @contextmanager
    def _service(self, text: str) -> Iterator[None]:
        """The service on any free port, which stands for the page's 8321."""
        ready = self._directory / ".dragoman" / "serve.json"
        ready.unlink(missing_ok=True)
        with (
            (self._directory / ".service.log").open("ab") as said,
            subprocess.Popen(
                ["bash", "-c", f"exec env {text}"],
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            ) as process,
        ):
            try:
                _until_ready(ready, process, Path(said.name))
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                status = process.wait(60)
            assert status == 0, f"the service ended with {status}\n{Path(said.name).read_text()[-4000:]}"

    def _block(self, block: Block, terminal: ReadersTerminal) -> None:
        if file := block.marks.get("file"):
            path = self._directory / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._own(block.text), encoding="utf-8")
            return
        if block.language == "python":
            (self._directory / ".block.py").write_text(self._own(block.text), encoding="utf-8")
            self._command(block, "python .block.py", (), None, terminal)
            return
        of_block = commands(block)
        for number, command in enumerate(of_block):
            ends = block.marks.get("exits") if number == len(of_block) - 1 else None
            self._command(block, command.text, command.printed, ends, terminal)

    def _command(
        self, block: Block, text: str, printed: tuple[str, ...], ends: str | None, terminal: ReadersTerminal
    ) -> None:
        wanted = int(ends or 0)
        status, output = terminal.run(self._own(text), fails=wanted != 0)
        assert status == wanted, f"{block.place}: `{text}` ended with {status}, not {wanted}\n{output}"
        line = unread([self._addressed(line) for line in printed], output, self._ids)
        assert line is None, f"{block.place}: `{text}` does not print\n    {line}\nbut\n{output}"

    def _own(self, text: str) -> str:
        return self._addressed(own(text, self._ids))

    def _addressed(self, text: str) -> str:
        serving = json.loads((self._directory / ".dragoman" / "serve.json").read_text(encoding="utf-8"))
        address = str(serving["url"]).removeprefix("http://")
        return text.replace(_ADDRESS, address).replace("localhost:8321", address)


def _services(wanted: list[Block], *, served: bool) -> list[tuple[str, list[Block]]]:
    """The blocks by the service that they talk to: a page may start another in the place of the one
    before."""
    parts: list[tuple[str, list[Block]]] = [(SERVE, [])] if served else []
    for block in wanted:
        if "serves" in block.marks:
            if served and len(parts) == 1 and not parts[0][1]:
                parts.pop()
            parts.append((block.text.strip().removeprefix("$ "), []))
        else:
            parts[-1][1].append(block)
    return parts


def _until_ready(ready: Path, process: "subprocess.Popen[bytes]", log: Path) -> None:
    while not (ready.exists() and ready.stat().st_size):
        try:
            status = process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"the service ended with {status}\n{log.read_text()[-4000:]}")
