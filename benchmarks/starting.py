"""How long a start takes, and what memory an idle service and waiting runs hold.

`python -m benchmarks --only starting`.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.figures import Budget, held
from benchmarks.gateway import relayed
from benchmarks.processes import ROOT, counterpart
from benchmarks.runs import drive
from benchmarks.service import running_service
from benchmarks.upstreams import UPSTREAMS

STARTS = 5
SETTLED_S = 1.5
"""After which an idle service has loaded what it loads when it is ready."""
WAITING, WARM_UP = 1_000, 100
_READY = Budget(what="`serve` ready, new HOME", limit=1.5, unit="s")
_IDLE = Budget(what="resident memory, idle", limit=120, unit="MB")
_WAITING = Budget(what="memory of a run that waits for an approval", limit=100, unit="KB")


def report() -> list[str]:
    """Starts beside their floors, and memory."""
    ready: dict[str, list[float]] = {"new": [], "used": []}
    resident: dict[str, list[float]] = {"new": [], "used": []}
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as folder:
            for kind in ("new", "used"):
                with running_service({}, home=Path(folder)) as service:
                    ready[kind].append(service.ready_s)
                    time.sleep(SETTLED_S)
                    resident[kind].append(service.resident_mb())
    relays = [_relay() for _ in range(STARTS)]
    relay_s, relay_mb = (statistics.median(figures) for figures in zip(*relays, strict=True))
    help_s = statistics.median(_seconds("-m", "interfaces.cli", "--help") for _ in range(STARTS))
    python_s = statistics.median(_seconds("-c", "pass") for _ in range(STARTS))
    new_s, used_s = (statistics.median(ready[kind]) for kind in ("new", "used"))
    new_mb, used_mb = (statistics.median(resident[kind]) for kind in ("new", "used"))
    more_mb = waiting()
    return [
        "| start | s | resident MB | floor | floor: s | floor: resident MB | ratio of s |",
        "|---|---|---|---|---|---|---|",
        f"| `serve` ready, new HOME | {new_s:.2f} | {new_mb:.0f} | a bare Litestar relay | {relay_s:.2f} | {relay_mb:.0f} "
        f"| {new_s / relay_s:.1f} |",
        f"| `serve` ready, HOME used before | {used_s:.2f} | {used_mb:.0f} | a bare Litestar relay | {relay_s:.2f} | {relay_mb:.0f} "
        f"| {used_s / relay_s:.1f} |",
        f"| `dragoman --help` | {help_s:.2f} |  | Python | {python_s:.3f} |  | {help_s / python_s:.0f} |",
        "",
        f"{WAITING:,} runs that wait for an approval take {more_mb:.1f} MB more.",
        *held(
            (_READY, new_s),
            (_IDLE, max(new_mb, used_mb)),
            (_WAITING, more_mb * 1024 / WAITING),
        ),
    ]


def waiting() -> float:
    """MB that runs hold which wait for an approval."""
    with ExitStack() as stack:
        model_port = stack.enter_context(counterpart("model", "1"))
        mcp_port = stack.enter_context(counterpart("mcp-modern"))
        extra = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model_port}/v1"}
        service = stack.enter_context(running_service(extra))
        [modern] = [upstream for upstream in UPSTREAMS if upstream.slug == "modern"]
        service.post("/mcp-servers", modern.config(mcp_port))
        policies = {"mcp__*": {"decision": "require_approval"}}
        agent = {"name": "asks", "model": "openai:calls-1-modern", "mcp_servers": ["modern"], "tool_policies": policies}
        service.post("/agents", agent)
        asyncio.run(drive(service, "asks", runs=WARM_UP, concurrency=8, ends_as="requires_action"))
        time.sleep(SETTLED_S)
        before_mb = service.resident_mb()
        asyncio.run(drive(service, "asks", runs=WAITING, concurrency=8, ends_as="requires_action"))
        time.sleep(SETTLED_S)
        return service.resident_mb() - before_mb


def _seconds(*arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
    return time.perf_counter() - began


def _relay() -> tuple[float, float]:
    """Seconds until a bare relay answers, and the MB it holds."""
    began = time.perf_counter()
    with relayed(0) as relay:
        return time.perf_counter() - began, relay.resident_mb()
