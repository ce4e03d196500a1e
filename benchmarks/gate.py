"""Whether the hot paths have become dearer: counts of what a call and a turn execute, compared with those in gate.json.

`python -m benchmarks.gate` compares, and fails where something takes 20 % more, or so much less that the file should say so;
`--write` writes the file. Counts hardly depend on the machine, so continuous integration can hold to them; they do depend
on the version of Python, for each of which the file has figures of its own.
"""

import argparse
import json
import socket
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path

from benchmarks.calls import tool_call
from benchmarks.processes import counterpart
from benchmarks.service import Service, running_service
from benchmarks.upstreams import MODERN, UPSTREAMS

FILE = Path(__file__).with_name("gate.json")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TOLERANCE = 0.2
SLACK = 1.0
"""What a count may differ anyway: a fifth of five statements is one."""
SHORT, LONG = 2, 8
"""Tool calls of the runs whose difference is what a turn takes."""
CALLS, RUNS = 21, 7
WARM_UP = 12

Costs = dict[str, dict[str, int]]
"""By what was done, by what was counted."""


class Meter:
    """The counts of a service."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._lines = self._socket.makefile("r", encoding="ascii")

    def so_far(self) -> dict[str, int]:
        """What was counted since they were first asked for."""
        self._socket.sendall(b"\n")
        return dict(json.loads(self._lines.readline()))

    def usual(self, times: int, act: Callable[[], None]) -> dict[str, int]:
        """What acting takes: the lower quartile, as what happens besides, a lease that is renewed, only adds to it."""
        counts = [self.so_far()]
        for _ in range(times):
            act()
            counts.append(self.so_far())
        differences = [{name: after[name] - before[name] for name in after} for before, after in pairwise(counts)]
        return {name: int(statistics.quantiles([each[name] for each in differences], n=4)[0]) for name in counts[0]}

    def close(self) -> None:
        """Leave the service alone."""
        self._lines.close()
        self._socket.close()


def measured(*, dearer: int = 0, with_runs: bool = True) -> Costs:
    """What a call through the gateway and a turn of a run execute. With `dearer`, each call is decided that much more often."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-gate-"))
        model = stack.enter_context(counterpart("model", "1"))
        ports = {"modern": stack.enter_context(counterpart("mcp-modern")), "stdio": None}
        extra = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model}/v1"}
        meter_path = f"{folder}/counts"
        service = stack.enter_context(running_service(extra, ("benchmarks.counted", meter_path, str(dearer))))
        for upstream in UPSTREAMS:
            if upstream.slug in ports:
                service.post("/mcp-servers", upstream.config(ports[upstream.slug]))
        connection = stack.enter_context(closing(HTTPConnection("127.0.0.1", service.port, timeout=60)))
        call = _gateway_call(service, connection)
        runs = {
            slug: (_run(service, connection, slug, SHORT), _run(service, connection, slug, LONG))
            for slug in ports
            if with_runs
        }
        for _ in range(WARM_UP):
            call()
            for short, _long in runs.values():
                short()
        meter = Meter(meter_path)
        stack.callback(meter.close)
        costs = {"gateway call": meter.usual(CALLS, call)}
        for slug, (short, long) in runs.items():
            some, more = meter.usual(RUNS, short), meter.usual(RUNS, long)
            turn = {count: (more[count] - some[count]) // (LONG - SHORT) for count in some}
            costs[f"turn with a call, {slug}"] = turn
            costs[f"run without calls, {slug}"] = {count: some[count] - turn[count] * SHORT for count in some}
        return costs


def _gateway_call(service: Service, connection: HTTPConnection) -> Callable[[], None]:
    """A call in the newest version of the protocol, under policy, to a server over HTTP."""
    tool = "mcp__modern__echo"
    policies = {tool: {"decision": "allow", "allowed_params": ["text"]}}
    agent = {"name": "gateway", "model": "openai:bench", "mcp_servers": ["modern"], "tool_policies": policies}
    service.post("/agents", agent)
    opened = service.post("/gateway-sessions", {"agent_id": "gateway"})
    body, headers = tool_call(tool, MODERN)
    headers["Authorization"] = f"Bearer {opened['token']}"
    return partial(_expect, b"hello", connection, "/mcp", body, headers)


def _run(service: Service, connection: HTTPConnection, slug: str, calls: int) -> Callable[[], None]:
    """A run with so many turns that call the server's tool, created and waited for."""
    name = f"{slug}-{calls}"
    service.post("/agents", {"name": name, "model": f"openai:calls-{calls}-{slug}", "mcp_servers": [slug]})
    body = json.dumps({"agent": name, "input": "go"}).encode()
    headers = {"Authorization": f"Bearer {service.key}"}
    return partial(_expect, b'"status":"completed"', connection, "/v1/runs/wait", body, headers)


def _expect(part: bytes, connection: HTTPConnection, path: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Send the request. Raises SystemExit if that is not in the answer."""
    connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse().read()
    if part not in answer:
        raise SystemExit(f"not answered as it should be: {answer[:600]!r}")


def findings(costs: Costs, written: Costs) -> list[str]:
    """What has become dearer, or so much cheaper that it should be written down; empty if all is as it was."""
    found = []
    for name in sorted({*costs, *written}):
        if name not in written or name not in costs:
            found.append(f"{name}: {'not in the file' if name in costs else 'no longer measured'}; write the file anew")
            continue
        for count, before in written[name].items():
            now = costs[name][count]
            allowed = max(TOLERANCE * before, SLACK)
            if now > before + allowed:
                found.append(f"{name}: {now} {count}, {now / before - 1:+.0%}: dearer than the {before} of the file")
            elif now < before - allowed:
                found.append(
                    f"{name}: {now} {count}, {now / before - 1:+.0%}: cheaper than the {before}; write the file anew"
                )
    return found


def read() -> Costs | None:
    """The figures of the file for this version of Python, if there are any."""
    versions: dict[str, Costs] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return versions.get(PYTHON)


def write(costs: Costs) -> None:
    """Keep the figures for this version of Python."""
    versions: dict[str, Costs] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    FILE.write_text(json.dumps({**versions, PYTHON: costs}, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    """Measure, and compare or write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate")
    parser.add_argument("--write", action="store_true", help="keep what is measured as what is to be held")
    given = parser.parse_args()
    costs, written = measured(), read()
    for name, counts in costs.items():
        sys.stdout.write(f"{name}: {', '.join(f'{number} {count}' for count, number in counts.items())}\n")
    if given.write:
        write(costs)
        return 0
    if written is None:
        sys.stdout.write(f"{FILE.name} has no figures for Python {PYTHON}: nothing to compare with\n")
        return 0
    found = findings(costs, written)
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
