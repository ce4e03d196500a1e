"""What the hot paths execute: instructions of Python, C calls and SQL statements of a call through
the gateway and of a run's turn.

`python -m benchmarks.counts` prints a report, with `--postgres` on PostgreSQL, where statements are
not counted. Counts hardly depend on the machine, but on the version of Python, and say little of
time: they help to find where a change has made a path longer.
"""

import json
import platform
import socket
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from http.client import HTTPConnection
from itertools import pairwise

from benchmarks.calls import tool_call
from benchmarks.postgres import migrated_database
from benchmarks.processes import counterpart
from benchmarks.service import Service, running_service
from benchmarks.upstreams import MODERN, UPSTREAMS

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
        """What acting takes: the lower quartile, as what happens besides, a lease that is renewed,
        only adds to it."""
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


def measured(*, postgres: bool = False) -> Costs:
    """What a call through the gateway and a turn of a run execute."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-counts-"))
        model = stack.enter_context(counterpart("model", "1"))
        ports = {"modern": stack.enter_context(counterpart("mcp-modern")), "stdio": None}
        extra = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model}/v1"}
        if postgres:
            extra["DRAGOMAN_DATABASE_URL"] = stack.enter_context(migrated_database())
            extra["DRAGOMAN_SECRET_KEY"] = "the key of a benchmark"
        meter_path = f"{folder}/counts"
        service = stack.enter_context(running_service(extra, ("benchmarks.counted", meter_path)))
        for upstream in UPSTREAMS:
            if upstream.slug in ports:
                service.post("/mcp-servers", upstream.config(ports[upstream.slug]))
        connection = stack.enter_context(closing(HTTPConnection("127.0.0.1", service.port, timeout=60)))
        call = _gateway_call(service, connection)
        runs = {slug: (_run(service, connection, slug, SHORT), _run(service, connection, slug, LONG)) for slug in ports}
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


def report(costs: Costs) -> str:
    """The counts as a table."""
    counted = list(next(iter(costs.values())))
    lines = [f"| Python {platform.python_version()} | " + " | ".join(counted) + " |", "|---" * (len(counted) + 1) + "|"]
    lines += [
        f"| {name} | " + " | ".join(f"{counts[count]:,}" for count in counted) + " |" for name, counts in costs.items()
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(report(measured(postgres="--postgres" in sys.argv[1:])))
