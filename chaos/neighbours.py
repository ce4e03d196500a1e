"""What an organization notices of another one's hostile MCP servers: its gateway calls and runs
beside each of them, and in quiet. Quiet and hostile rounds alternate, since the machine has other
work, too."""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from chaos.hostile_servers import LIMITS, Act, HostileServer, hostile_servers, world_of
from chaos.neighbour import AGENT
from tests.e2e.processes import descendants, until
from tests.e2e.service import ROOT, Json, Service, a_turn, serving
from tests.integration.confinement.world import MACHINE

CALLS, RUNS, ROUNDS = 150, 5, 3
MOST = 2.0
"""How many times as long as in quiet the slowest hundredth of the neighbour's calls may take."""
TRIES = 3
"""Comparisons of a hostile server: one that exceeds the bound must do so in each, since the machine
has other work."""
_BEGIN_S = 2.0
_NOT_SENT = re.compile(
    r"tried again in|cool-down|[Nn]othing was sent|was not called|was not found|Unknown tool|not installed|MCP (is )?disabled"
)
"""How the service says that it asked the server nothing."""
_CALL_TIMEOUT_S = 1


@dataclass(slots=True)
class Times:
    """Seconds that calls and runs took, and of calls those that the service worked
    (`neighbour.py`)."""

    calls: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    runs: list[float] = field(default_factory=list)

    def add(self, measured: Json) -> None:
        self.calls += measured["calls"]
        self.busy += measured["busy"]
        self.runs += measured["runs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`acts` are what the hostile organization did meanwhile, as far as it reached its server.
    `holds` is how often the event loop was held meanwhile, by the service's watchdog."""

    quiet: Times
    hostile: Times
    acts: int
    holds: int

    @property
    def ratio(self) -> float:
        """Of the slowest hundredth of the calls."""
        return percentile(self.hostile.calls, 99) / percentile(self.quiet.calls, 99)

    def row(self, name: str) -> str:
        """A line of the table (`HEAD`)."""
        figures = [
            1000 * percentile(values, of)
            for of, quiet, beside in (
                (50, self.quiet.calls, self.hostile.calls),
                (99, self.quiet.calls, self.hostile.calls),
                (99, self.quiet.busy, self.hostile.busy),
                (50, self.quiet.runs, self.hostile.runs),
            )
            for values in (quiet, beside)
        ]
        cells = [
            f"{name:32}",
            *(f"{figure:7.1f}" for figure in figures),
            f"{self.ratio:5.2f}",
            f"{self.acts:5}",
            f"{self.holds:5}",
        ]
        return f"| {' | '.join(cells)} |"


HEAD = """\
| ms, in quiet and beside          | p50     | beside  | p99     | beside  | busy p99| beside  | run p50 | beside  | ratio |  acts | holds |
|----------------------------------|---------|---------|---------|---------|---------|---------|---------|---------|-------|-------|-------|"""


def options(parser: argparse.ArgumentParser) -> None:
    """What this part can be told."""
    parser.add_argument("--neighbour-calls", type=int, default=CALLS, help="calls of a round (default %(default)s)")
    parser.add_argument("--neighbour-rounds", type=int, default=ROUNDS, help="of each kind (default %(default)s)")
    parser.add_argument("--hostile", default="", metavar="TEXT", help="only hostile servers with this in their names")


def run(arguments: argparse.Namespace) -> list[str]:
    """One hostile server after the other on one service; what did not hold."""
    complaints = []
    with beside() as (stage, servers):
        print(HEAD, flush=True)
        for server in servers:
            if arguments.hostile not in server.name:
                continue
            comparisons: list[Comparison] = []
            while len(comparisons) < TRIES and all(each.ratio > MOST for each in comparisons):
                comparisons.append(
                    stage.compare(server, rounds=arguments.neighbour_rounds, calls=arguments.neighbour_calls, runs=RUNS)
                )
                print(comparisons[-1].row(server.name), flush=True)
            if not any(each.acts for each in comparisons):
                complaints.append(f"{server.name}: nothing reached it")
            if least := excess(comparisons):
                complaints.append(f"{server.name}: the neighbour's p99 is {least:.2f} times that in quiet")
            if holds := min(each.holds for each in comparisons):
                complaints.append(f"{server.name}: the event loop was held {holds} times")
    return complaints


def excess(comparisons: list[Comparison]) -> float | None:
    """The least ratio, if it is over the bound."""
    least = min(each.ratio for each in comparisons)
    return least if least > MOST else None


def percentile(values: list[float], of: int) -> float:
    """The least value that so many of a hundred do not exceed."""
    return sorted(values)[math.ceil(len(values) * of / 100) - 1]


@contextmanager
def beside() -> Iterator[tuple["Stage", tuple[HostileServer, ...]]]:
    """A service with two organizations, and the hostile servers for one of them."""
    is_confined = bool(MACHINE.landlock or MACHINE.bubblewrap)
    sandbox = "auto" if is_confined else "off"
    with (
        tempfile.TemporaryDirectory(prefix="dragoman-neighbours-") as folder,
        _program("chaos.noting_server", f"{folder}/calls.log") as quiet,
        serving(Path(folder) / "home", DRAGOMAN_MCP_SANDBOX=sandbox, DRAGOMAN_MCP_PROCESS_LIMITS=LIMITS) as service,
    ):
        assert quiet.stdout is not None
        key = _neighbour(service, int(quiet.stdout.readline()))
        service.call("GET", "/agents")
        own = service.home / "servers" / ".data"
        world = world_of(service.process.pid, quiet.pid, str(service.home), str(own)) if is_confined else None
        with _program("chaos.neighbour", service.url, key, str(service.process.pid)) as client:
            stage = Stage(service, client)
            stage.round(20, 2)  # what is loaded late is loaded then
            yield stage, hostile_servers(world)


@contextmanager
def _program(module: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _neighbour(service: Service, port: int) -> str:
    """The key of an organization with a server that answers and an agent that uses it."""
    key = str(service.call("POST", "/organizations", {"name": "neighbour"})["admin_key"]["token"])
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"{service.url}/v1", headers=headers, timeout=120, trust_env=False) as client:
        model = service.script("says", a_turn("Here."))
        for path, body in (
            ("/mcp-servers", {"slug": "quiet", "kind": "http", "url": f"http://127.0.0.1:{port}/mcp"}),
            ("/mcp-servers/quiet/refresh", None),
            ("/agents", {"name": AGENT, "model": model, "mcp_servers": ["quiet"]}),
        ):
            client.post(path, json=body).raise_for_status()
    return key


class Stage:
    """The service, and the client of the neighbour."""

    def __init__(self, service: Service, client: "subprocess.Popen[str]") -> None:
        self._service = service
        self._client = client
        self._names = 0

    def round(self, calls: int, runs: int) -> Json:
        """What the neighbour measured."""
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        self._client.stdin.write(f"{calls} {runs}\n")
        self._client.stdin.flush()
        found: Json = json.loads(self._client.stdout.readline())
        return found

    def compare(self, server: HostileServer, *, rounds: int, calls: int, runs: int) -> Comparison:
        """As many rounds in quiet as beside the server, in turn."""
        quiet, hostile, acts, holds = Times(), Times(), 0, 0
        with self._registered(server) as slug:
            for _ in range(rounds):
                quiet.add(self.round(calls, runs))
                before = self._holds()
                with self._attacked(server, slug) as attack:
                    hostile.add(self.round(calls, runs))
                acts += attack.acts
                holds += self._holds() - before
        return Comparison(quiet=quiet, hostile=hostile, acts=acts, holds=holds)

    def _holds(self) -> int:
        """How often the event loop was held so far for 100 ms or longer."""
        metrics = self._service.client.get(f"{self._service.url}/metrics").raise_for_status().text
        [counted] = re.findall(r"^dragoman_event_loop_hold_seconds_count ([0-9.e+]+)$", metrics, re.MULTILINE)
        return int(float(counted))

    @contextmanager
    def _registered(self, server: HostileServer) -> Iterator[str]:
        self._names += 1
        slug = f"hostile-{self._names}"
        with server.settings() as settings:
            self._service.call("POST", "/mcp-servers", {"slug": slug, "isolation": "shared", **settings})
            policies = {"*": {"timeout_s": _CALL_TIMEOUT_S}}
            self._service.agent(slug, "scripted:says.yaml", mcp_servers=[slug], tool_policies=policies)
            try:
                yield slug
            finally:
                self._service.client.delete(f"/mcp-servers/{slug}").raise_for_status()

    @contextmanager
    def _attacked(self, server: HostileServer, slug: str) -> Iterator["Attack"]:
        """Until all that was started has ended."""
        before = descendants(self._service.process.pid)
        attack = Attack(self._service, server, slug)
        thread = threading.Thread(target=attack.go_on)
        thread.start()
        try:
            attack.begun.wait(_BEGIN_S)
            yield attack
        finally:
            attack.over.set()
            while thread.is_alive():
                self._service.call("POST", f"/mcp-servers/{slug}/disconnect")
                thread.join(0.5)
            self._service.call("POST", f"/mcp-servers/{slug}/disconnect")  # the last act may have connected it
            until(lambda: not descendants(self._service.process.pid) - before, what="the end of a hostile server")


def reached(response: httpx.Response) -> bool:
    """Whether the hostile server was asked, whatever came of it."""
    if 400 <= response.status_code < 500:
        return False
    answer = response.json()
    if response.is_success and "jsonrpc" not in answer:
        return True  # the list of its tools
    said = answer.get("detail") or json.dumps(answer.get("result", {}).get("content"))
    return "error" not in answer and _NOT_SENT.search(said) is None


class Attack:
    """An organization that uses a hostile server again and again, at least once, until it is over.
    `acts` are the uses that reached it."""

    def __init__(self, service: Service, server: HostileServer, slug: str) -> None:
        self._service = service
        self._server = server
        self._slug = slug
        self.begun, self.over = threading.Event(), threading.Event()
        self.acts = 0

    def go_on(self) -> None:
        with httpx.Client(
            base_url=self._service.url, headers=self._service.headers, timeout=120, trust_env=False
        ) as client:
            refreshed = client.post(f"/v1/mcp-servers/{self._slug}/refresh")
            self.acts += self._server.act is not Act.CALL and reached(refreshed)
            self.begun.set()
            while True:
                self.acts += reached(self._act(client))
                if self.over.is_set():
                    return

    def _act(self, client: httpx.Client) -> httpx.Response:
        """Whatever is answered, the service must answer."""
        if self._server.act is Act.CALL:
            name = f"mcp__{self._slug}__{self._server.tool}"
            params = {"name": name, "arguments": dict(self._server.arguments)}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            return client.post(
                f"/mcp?agent={self._slug}",
                json=message,
                headers={"Accept": "application/json, text/event-stream"},
            )
        refreshed = client.post(f"/v1/mcp-servers/{self._slug}/refresh")
        if self._server.act is Act.CONNECT:
            client.post(f"/v1/mcp-servers/{self._slug}/disconnect")
        return refreshed
