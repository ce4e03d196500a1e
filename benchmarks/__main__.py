"""`make bench`: what everything costs that has a budget, each beside a floor that is measured in the same run.

Prints docs/performance.md; `--write` writes it. `--only PART` measures one part or some, and leaves the others as they are in
the file. Absolute figures depend on the machine, ratios hardly do.
"""

import argparse
import asyncio
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks import browser, control, gateway, growth, listeners, queue, run_start, runs, starting, workers

FILE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
_MEASURED = "_Measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section: what is measured, and how. `about` says what the figures mean."""

    name: str
    title: str
    about: str
    measure: Callable[[], Iterable[str]]


PARTS = (
    Part(
        name="starting",
        title="Start and memory",
        about="Medians of five starts, from the command to the first answer. The relay's process does nothing but hand requests on.",
        measure=starting.report,
    ),
    Part(
        name="runs",
        title="Runs",
        about=f"A run makes {runs.TOOL_CALLS} tool calls and is created and awaited over HTTP with everything on: policy, ledger, "
        "events, audit, SQLite. The floor makes the same model and MCP calls over raw sockets with one SQLite commit per run; an "
        "iteration is a model call and a tool call.",
        measure=runs.report,
    ),
    Part(
        name="runs-on-postgresql",
        title="Runs on PostgreSQL",
        about="The same, with every commit of the database durable; the database server shares the cores, its CPU is not counted.",
        measure=partial(runs.report, postgres=True),
    ),
    Part(
        name="gateway",
        title="Calls through the gateway",
        about="With a session token, policy, argument schema, ledger, audit and limits, to a server that says a text again; beside "
        "them the same calls sent to the server itself, and through a bare relay (Litestar and aiohttp, without any control). "
        "`python -m benchmarks.gateway --help` says what more can be measured.",
        measure=partial(gateway.report, calls=1_500, memory_calls=10_000),
    ),
    Part(
        name="gateway-on-postgresql",
        title="Calls through the gateway on PostgreSQL",
        about="The same to one server over HTTP.",
        measure=partial(gateway.report, calls=1_000, memory_calls=0, only="modern", postgres=True),
    ),
    Part(
        name="growth",
        title="What does not grow",
        about="Cost of a turn as the run gets long, of a call as there are more tools, of an event as more clients follow the run.",
        measure=growth.report,
    ),
    Part(
        name="run-start",
        title="From request to model",
        about="What servers add to the start of a run.",
        measure=lambda: asyncio.run(run_start.measure()),
    ),
    Part(
        name="control",
        title="Control",
        about="What deciding, recording and sealing add to a tool call.",
        measure=lambda: asyncio.run(control.report()),
    ),
    Part(name="workers", title="Workers", about="Several processes on PostgreSQL.", measure=workers.report),
    Part(name="queue", title="Queue", about="From submitting to starting.", measure=queue.measure),
    Part(
        name="console",
        title="The console",
        about="Listeners are connections as browsers open them on the page of a run; the page is opened in Chromium.",
        measure=lambda: [*asyncio.run(listeners.measure()), "", *browser.measure()],
    ),
)


def machine() -> str:
    """Where it was measured."""
    model = re.search(r"^model name\s*:\s*(.*)$", _text("/proc/cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+)", _text("/proc/meminfo"), re.MULTILINE)
    described = [
        f"{os.cpu_count()} cores" + (f" ({model[1].strip()})" if model else ""),
        *([f"{int(memory[1]) / 1024**2:.0f} GB of memory"] if memory else []),
        f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        f"Python {platform.python_version()}",
    ]
    return ", ".join(described)


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""


def section(part: Part) -> str:
    """Measure it."""
    sys.stderr.write(f"{part.name} …\n")
    began = time.monotonic()
    lines = list(part.measure())
    stamp = (
        f"{_MEASURED} {datetime.now(UTC):%Y-%m-%d} in {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}._"
    )
    return "\n".join([f"## {part.title}", "", part.about, "", *lines, "", stamp, ""])


def document(measured: dict[str, str], former: str) -> str:
    """The page: what was measured now, and of other parts what it said before; then what was written by hand."""
    before: dict[str, str] = dict(re.findall(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)", former))
    head = [
        "# Performance",
        "",
        f"Written by `make bench` on: {machine()}. Service, model, MCP server and load share the cores. Where the load "
        "was much above their number other work shared them too: times are longer then, ratios hold. One part alone: "
        "`make bench BENCH_ARGS='--only PART --write'`; parts: " + ", ".join(f"`{part.name}`" for part in PARTS) + ".",
        "",
    ]
    sections = [
        measured.get(part.name) or (f"## {part.title}\n{before[part.title].rstrip()}\n" if part.title in before else "")
        for part in PARTS
    ]
    measurable = {part.title for part in PARTS}
    by_hand = [f"## {title}\n{text.rstrip()}\n" for title, text in before.items() if title not in measurable]
    return "\n".join([*head, *(text for text in sections if text), *by_hand])


def main(arguments: Sequence[str]) -> int:
    """Measure, print, perhaps write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--only", nargs="+", metavar="PART", choices=[part.name for part in PARTS])
    parser.add_argument("--write", action="store_true", help=f"write {FILE.parent.name}/{FILE.name}, part by part")
    given = parser.parse_args(arguments)
    measured: dict[str, str] = {}
    for part in PARTS:
        if given.only is None or part.name in given.only:
            measured[part.name] = section(part)
            sys.stdout.write(f"{measured[part.name]}\n")
            sys.stdout.flush()
            if given.write:
                FILE.write_text(document(measured, FILE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
