"""`make bench`: what everything costs that has a budget, each beside a floor that is measured in
the same run.

Prints docs/performance.md; `--write` writes it, part by part. `--only PART` measures one part or
some, and leaves the others as they are in the file. Each part is measured in a process of its own:
one that fails or hangs costs the others nothing, leaves what the page said about it, and the whole
ends with exit status 1. Absolute figures depend on the machine, ratios hardly do.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks import (
    browser,
    console_pages,
    control,
    gateway,
    growth,
    large,
    limits,
    listeners,
    people,
    protocols,
    queue,
    run_start,
    runs,
    starting,
    workers,
)
from benchmarks.page import FILE, document, section
from benchmarks.processes import ROOT

PATIENCE_S, LONG_PATIENCE_S = 600.0, 1_200.0
"""What a part may take before it is stopped; on two cores none takes a quarter of it."""
_CLEAN_UP_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section: what is measured, and how. `about` says what the figures mean; `is_long` ones must
    be asked for."""

    name: str
    title: str
    about: str
    measure: Callable[[], Iterable[str]]
    is_long: bool = False


PARTS = (
    Part(
        name="starting",
        title="Start and memory",
        about="Medians of five starts, from the command to the first answer. The relay's process does nothing but hand requests on.",
        measure=starting.report,
    ),
    Part(name="runs", title="Runs", about=runs.ABOUT, measure=runs.report),
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
        "At the end, two services that differ in their log alone, at default settings and off, turn by turn. "
        "`python -m benchmarks.gateway --help` says what more can be measured.",
        measure=partial(gateway.report, calls=4_000, memory_calls=0),
    ),
    Part(
        name="gateway-on-postgresql",
        title="Calls through the gateway on PostgreSQL",
        about="The same to one server over HTTP.",
        measure=partial(gateway.report, calls=2_000, memory_calls=0, only="modern", postgres=True),
    ),
    Part(
        name="gateway-memory",
        title="Memory of the gateway",
        about="Measured with `--long` only.",
        measure=gateway.long_memory,
        is_long=True,
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
    Part(name="protocols", title="Protocols of front ends", about=protocols.ABOUT, measure=protocols.report),
    Part(
        name="control",
        title="Control",
        about="What deciding, recording and sealing add to a tool call.",
        measure=lambda: asyncio.run(control.report()),
    ),
    Part(name="people", title="Calls of a person", about=people.ABOUT, measure=people.report),
    Part(name="workers", title="Workers", about="Several processes on PostgreSQL.", measure=workers.report),
    Part(
        name="limits",
        title="Limits",
        about="A limit that holds over several services on PostgreSQL.",
        measure=limits.report,
    ),
    Part(
        name="large",
        title="A large database",
        about="Measured with `--long` only.",
        measure=large.report,
        is_long=True,
    ),
    Part(name="queue", title="Queue", about="From submitting to starting.", measure=queue.measure),
    Part(
        name="console",
        title="The console",
        about="Listeners are connections as browsers open them on the page of a run; the page is opened in Chromium.",
        measure=lambda: [*asyncio.run(listeners.measure()), "", *browser.measure(), "", *console_pages.measure()],
    ),
)


class PartFailed(Exception):
    """A part could not be measured; its own words are on stderr."""


TITLES = {part.name: part.title for part in PARTS}


def in_process_of_its_own(part: Part) -> list[str]:
    """Measure it there. Raises PartFailed if it fails or takes too long; what it started has ended
    then."""
    patience_s = LONG_PATIENCE_S if part.is_long else PATIENCE_S
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", "--measure", part.name],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=patience_s)
    except BaseException as exc:
        _stopped(process)
        if isinstance(exc, subprocess.TimeoutExpired):
            raise PartFailed(f"took longer than {patience_s:.0f} s") from exc
        raise
    if process.returncode:
        raise PartFailed(f"ended with exit status {process.returncode}")
    return printed.rstrip("\n").split("\n")


def _stopped(process: "subprocess.Popen[str]") -> None:
    """Let it end what it started, then end what is left."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=_CLEAN_UP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def measured(
    parts: Iterable[Part], keep: Callable[[dict[str, str]], None], measure: Callable[[Part], Iterable[str]]
) -> dict[str, str]:
    """Measure one after the other and `keep` what there is after each. Returns why parts have
    failed, by their names."""
    sections: dict[str, str] = {}
    failed: dict[str, str] = {}
    for part in parts:
        sys.stderr.write(f"{part.name} …\n")
        began = time.monotonic()
        try:
            lines = list(measure(part))
        except PartFailed as exc:
            failed[part.name] = str(exc)
            sys.stderr.write(f"{part.name} failed: {failed[part.name]}\n")
            continue
        sections[part.name] = section(part.title, part.about, lines, took_s=time.monotonic() - began)
        sys.stdout.write(f"{sections[part.name]}\n")
        sys.stdout.flush()
        keep(sections)
    return failed


def written(sections: dict[str, str]) -> None:
    """Keep them in the file."""
    former = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
    FILE.write_text(document(TITLES, sections, former), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Measure, print, perhaps write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--only", nargs="+", metavar="PART", choices=list(TITLES), help=", ".join(TITLES))
    parser.add_argument("--long", action="store_true", help="200,000 calls and 2,000 idle sessions, too")
    parser.add_argument("--write", action="store_true", help=f"write {FILE.parent.name}/{FILE.name}, part by part")
    parser.add_argument("--measure", metavar="PART", choices=list(TITLES), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.measure is not None:
        [part] = [part for part in PARTS if part.name == given.measure]
        sys.stdout.write("\n".join([*part.measure(), ""]))
        return 0
    chosen = [
        part for part in PARTS if (given.long or not part.is_long if given.only is None else part.name in given.only)
    ]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends what a part has started
    began = time.monotonic()
    failed = measured(chosen, written if given.write else lambda _: None, in_process_of_its_own)
    sys.stderr.write(f"{len(chosen) - len(failed)} of {len(chosen)} parts in {time.monotonic() - began:.0f} s\n")
    sys.stderr.writelines(f"failed: {name}: {reason}\n" for name, reason in failed.items())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
