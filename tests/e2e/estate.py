"""Six real servers of every kind, and their use by a service:
`python -m tests.e2e.estate HTTP_PORT SSE_PORT` is that use as a process of its own, which can be
started where there is no network. Its home is DRAGOMAN_HOME: processes with the path of it in their
command line count as left over. It prints an `Outcome` as JSON."""

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, results_by_tool, serving
from tests.integration.mcp.parts import EVERYTHING

CALLS: dict[str, tuple[str, Json, str]] = {
    "everything": ("echo", {"message": "from npm"}, "Echo: from npm"),
    "memory": ("read_graph", {}, '"entities"'),
    "sqlite": ("list_tables", {}, "[]"),
    "time": ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}, "T21:00:00"),
    "http": ("echo", {"message": "over HTTP"}, "Echo: over HTTP"),
    "sse": ("echo", {"message": "over SSE"}, "Echo: over SSE"),
}
"""Per server a tool, its arguments, and what is in its result."""
INSTALLATION_S = 300.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of it: per server the protocol version that a test reported or its error, and the
    text of its call's result; the run's status; the name of the error when an address elsewhere is
    connected, if it is one."""

    tested: dict[str, str]
    status: str
    called: dict[str, str]
    elsewhere: str | None


def registrations(directory: Path, http_port: int, sse_port: int) -> list[Json]:
    """All six as they are registered. `directory` is for the data of servers."""
    npm = {"kind": "npm", "version": "2026.8.31"}
    return [
        {"slug": "everything", "package": "@modelcontextprotocol/server-everything", **npm},
        {"slug": "memory", "package": "@modelcontextprotocol/server-memory", **npm},
        {
            "slug": "sqlite",
            "kind": "python",
            "package": "mcp-server-sqlite mcp<2",
            "version": "2025.4.25",
            "args": ["--db-path", str(directory / "data.db")],
        },
        {"slug": "time", "kind": "python", "package": "mcp-server-time"},
        {"slug": "http", "kind": "http", "url": f"http://127.0.0.1:{http_port}/mcp"},
        {"slug": "sse", "kind": "sse", "url": f"http://127.0.0.1:{sse_port}/sse"},
    ]


@contextmanager
def _everything(mode: str, port: int) -> Iterator[None]:
    process = subprocess.Popen(
        ["node", EVERYTHING, mode],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def ready() -> bool:
        assert process.poll() is None, "server-everything does not start; run `npm ci` in tests/node"
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(ready, what="server-everything")
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def estate(home: Path, http_port: int, sse_port: int, **settings: str) -> Iterator[Service]:
    """The service, and the two servers that it does not start itself."""
    with ExitStack() as stack:
        stack.enter_context(_everything("streamableHttp", http_port))
        stack.enter_context(_everything("sse", sse_port))
        yield stack.enter_context(serving(home, **settings))


def install(service: Service, servers: list[Json]) -> dict[str, Json]:
    """Register the servers, install what is a package, and save an agent that calls them all; what
    the packages' states are in the end."""
    for server in servers:
        service.call("POST", "/mcp-servers", server)
    packages = [str(server["slug"]) for server in servers if "package" in server]
    for slug in packages:
        service.call("POST", f"/mcp-servers/{slug}/install", expect=202)
    status = {}
    for slug in packages:
        path = f"/mcp-servers/{slug}/status"
        until(lambda: service.call("GET", path)["state"] != "installing", INSTALLATION_S, f"{slug}'s installation")  # noqa: B023
        status[slug] = service.call("GET", path)
    calls = ((f"mcp__{slug}__{tool}", arguments) for slug, (tool, arguments, _) in CALLS.items())
    service.agent("caller", service.script("six", a_turn("All six.", *calls), a_turn("Done.")), mcp_servers=[*CALLS])
    return status


def use(service: Service) -> Outcome:
    """Test every server, and call all of them in one run."""
    tested = {slug: service.call("POST", f"/mcp-servers/{slug}/test") for slug in CALLS}
    answer = service.run("caller")
    results = results_by_tool(answer["messages"])
    return Outcome(
        tested={slug: str(test["protocol_version"] if test["ok"] else test["error"]) for slug, test in tested.items()},
        status=answer["run"]["status"],
        called={slug: str(results[f"mcp__{slug}__{tool}"]["result"]) for slug, (tool, _, _) in CALLS.items()},
        elsewhere=_elsewhere(),
    )


def _elsewhere() -> str | None:
    try:
        socket.create_connection(("192.0.2.1", 443), 0.1).close()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0)
    return None


def main(http_port: str, sse_port: str) -> None:
    with estate(Path(os.environ["DRAGOMAN_HOME"]), int(http_port), int(sse_port)) as service:
        outcome = use(service)
    sys.stdout.write(json.dumps(asdict(outcome)))


if __name__ == "__main__":
    main(*sys.argv[1:])
