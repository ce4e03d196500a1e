"""Runs the blocks of a page, in order and in one shell, against a service of the page's own, and holds what they print against what the
page says."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.documents.model import model_provider
from tests.documents.pages import ROOT, Block, blocks
from tests.e2e.service import migrated_database

HERE = Path(__file__).parent
TOOLS = ROOT / ".venv-demo" / "bin"
BOUND_S = 800.0
"""Finds what hangs; pages of many commands take a minute where nothing else runs."""
SERVE = "dragoman serve\n"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block, and the lines that it prints there. `…` stands for anything."""

    text: str
    printed: tuple[str, ...]


def commands(block: Block) -> list[Command]:
    """The commands of a block. One of the shell's own form is one; in a console each begins behind `$ `, goes on behind a backslash,
    and is followed by what it prints."""
    if block.language != "console":
        return [Command(block.text, ())]
    found: list[Command] = []
    goes_on = False
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), ()))
        elif goes_on:
            found[-1] = Command(f"{found[-1].text}\n{line}", ())
        else:
            assert found, f"{block.place}: a console block begins with a command, behind `$ `"
            found[-1] = Command(found[-1].text, (*found[-1].printed, line))
            continue
        goes_on = found[-1].text.endswith("\\")
    return found


def missing(printed: Sequence[str], output: str) -> str | None:
    """The first of these lines that the output does not have, each after the one before."""
    rest = iter(" ".join(line.split()) for line in output.splitlines())
    for line in printed:
        words = r".*".join(re.escape(part) for part in " ".join(line.split()).split("…"))
        pattern = re.compile(words)
        if not any(pattern.fullmatch(said) for said in rest):
            return line
    return None


def run_page(page: str, directory: Path) -> None:
    """Run its blocks in a directory that gets an environment as `make setup` makes it. Every command must succeed, unless its block says how
    it ends, and print what the block says."""
    (directory / ".venv").symlink_to(sys.prefix)
    for shipped in ("examples", "clients"):
        (directory / shipped).symlink_to(ROOT / shipped)
    parts = directory / ".parts"
    parts.mkdir()
    home = directory / ".dragoman"
    home.mkdir(mode=0o700)
    (home / "dragoman.db").touch(mode=0o600)
    (home / "dragoman.db").write_bytes(migrated_database())
    script = directory / ".parts" / "page.sh"
    expected: dict[str, tuple[Block, Command]] = {}
    runs = [block for block in blocks(page) if block.runs]
    script.write_text("\n".join(_script(runs, parts, expected)), encoding="utf-8")
    with model_provider(directory / ".model") as url:
        _run(script, directory, model=url)
    for name, (block, command) in expected.items():
        output = (directory / ".output" / name).read_text(encoding="utf-8")
        line = missing(command.printed, output)
        assert line is None, f"{block.place}: `{command.text}` does not print\n    {line}\nbut\n{output}"


def _script(runs: Sequence[Block], parts: Path, expected: dict[str, tuple[Block, Command]]) -> Iterator[str]:
    yield (HERE / "shell.sh").read_text(encoding="utf-8")

    def part(name: str, text: str) -> str:
        (parts / name).write_text(text, encoding="utf-8")
        return shlex.quote(str(parts / name))

    if not any("serves" in block.marks for block in runs):
        yield f"start {part('serve', SERVE)}"
    for number, block in enumerate(runs):
        yield f"AT={shlex.quote(block.place)}"
        if given := block.marks.get("given"):
            yield f'LAST="$DOCUMENT_OUTPUT/{number}.given"'
            yield f'eval "$(own "$(cat {part(f"{number}.given", given)})")" >"$LAST" 2>&1 </dev/null'
        if "serves" in block.marks:
            yield f"start {part(f'{number}.serve', commands(block)[0].text)}"
        elif file := block.marks.get("file"):
            yield f"written {part(f'{number}.file', block.text)} {shlex.quote(file)}"
        elif block.language == "python":
            yield f'LAST="$DOCUMENT_OUTPUT/{number}"'
            yield f'python - <{part(f"{number}.py", block.text)} >"$LAST" 2>&1'
        else:
            for at, command in enumerate(commands(block)):
                name = f"{number}.{at}"
                expected[name] = (block, command)
                yield from _one(name, part(name, command.text), block, last=at == len(commands(block)) - 1)


def _one(name: str, path: str, block: Block, *, last: bool) -> Iterator[str]:
    yield f'LAST="$DOCUMENT_OUTPUT/{name}"'
    run = f'eval "$(own "$(cat {path})")" >"$LAST" 2>&1 </dev/null'
    status = block.marks.get("exits") if last else None
    if status is None:
        yield run
    else:
        yield f"set +e; {run}; ended=$?; set -e"
        yield f'[ "$ended" = {int(status)} ] || {{ echo "ended with $ended, not {status}" >>"$LAST"; exit 1; }}'


def _run(script: Path, directory: Path, *, model: str) -> None:
    local = {
        "OPENAI_API_KEY": "a-key-of-the-reader",
        "OPENAI_BASE_URL": model,
        "PATH": f"{directory}/bin:{directory}/.venv/bin:{os.environ['PATH']}:{TOOLS}",
        "DRAGOMAN_PORT": "0",
        "DRAGOMAN_EGRESS_ALLOW": "127.0.0.0/8",
        "FRAMEWORKS_PYTHON": str(ROOT / ".venv-frameworks" / "bin" / "python"),
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        "STAND_IN": str(HERE / "stand_in.py"),
        "DRAGOMAN_MCP_READABLE": str(HERE),
        "DRAGOMAN_LOG_LEVEL": "warning",
        "COLUMNS": "400",
    }
    with subprocess.Popen(
        ["bash", str(script)],
        cwd=directory,
        env={**os.environ, **local},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=BOUND_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, said
