"""Hostile MCP servers beside other clients of a real service: whatever a server says without end,
everybody else is answered."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest

from tests.e2e.harm import unharmed
from tests.e2e.processes import resident_bytes, until
from tests.e2e.servers.flooding_server import KINDS, KINDS_OVER_STDIO
from tests.e2e.servers.heavy_server import KINDS as HEAVY_KINDS
from tests.e2e.service import ISOLATED_PYTHON, SERVERS, Json, Service, serving

pytestmark = pytest.mark.timeout(600)

FLOODING = str(SERVERS / "flooding_server.py")
MOST_BYTES = 200_000_000
"""Growth of peak memory over all floods of one transport; without a bound one flood took hundreds
of megabytes a second."""


@contextmanager
def flooding(kind: str, transport: str) -> Iterator[Json]:
    """How a server is registered that says `kind` without end."""
    if transport == "stdio":
        yield {"kind": "custom", "command": ISOLATED_PYTHON[0], "args": [*ISOLATED_PYTHON[1:], FLOODING, kind, "stdio"]}
        return
    with subprocess.Popen([sys.executable, FLOODING, kind, transport], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield {"kind": transport, "url": f"http://127.0.0.1:{port}/mcp"}
        finally:
            process.kill()


@pytest.mark.requirement("A5", "B3", "B11")
@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
def test_a_server_that_says_something_without_end_delays_nobody_and_fills_no_memory(
    tmp_path: Path, transport: str
) -> None:
    with serving(tmp_path / "home") as service:
        service.call("GET", "/agents")
        before = resident_bytes(service.process.pid)
        for kind in KINDS_OVER_STDIO if transport == "stdio" else KINDS:
            with flooding(kind, transport) as settings:
                unharmed(service, partial(_flood, service, kind, count(), settings), memory=MOST_BYTES)
            grown = resident_bytes(service.process.pid, peak=True) - before
            assert grown < MOST_BYTES, f"{kind}: {grown} bytes"


def _flood(service: Service, kind: str, numbers: Iterator[int], settings: Json) -> None:
    """A server is connected and called while it floods, then disconnected. Over HTTP the response
    to the call is a stream of its own, which the server floods, too."""
    slug = f"flood-{kind}-{next(numbers)}"
    service.call("POST", "/mcp-servers", {"slug": slug, "isolation": "shared", **settings})
    service.call("POST", f"/mcp-servers/{slug}/refresh")
    service.agent(slug, "scripted:hello.yaml", mcp_servers=[slug], tool_policies={"*": {"timeout_s": 1}})
    until(lambda: connected(service, slug), what=slug)
    called = call_of(service, slug, f"mcp__{slug}__flood")
    service.call("POST", f"/mcp-servers/{slug}/disconnect")
    assert called.is_success


@pytest.mark.requirement("A6", "B3")
@pytest.mark.parametrize("kind", HEAVY_KINDS)
def test_a_result_that_is_much_work_delays_nobody(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path / "home", DRAGOMAN_LOG_LEVEL="error") as service:
        command = [*ISOLATED_PYTHON, str(SERVERS / "heavy_server.py"), kind]
        service.server("heavy", *command, isolation="shared")
        service.call("POST", "/mcp-servers/heavy/refresh")
        service.agent("reader", "scripted:hello.yaml", mcp_servers=["heavy"], canary_tokens=["0123456789abcdefgh"])
        answer = unharmed(service, lambda: call_of(service, "reader", "mcp__heavy__go"), memory=MOST_BYTES)
        assert "result" in answer.text


def call_of(service: Service, agent: str, tool: str) -> httpx.Response:
    """Call a tool through the gateway."""
    params = {"name": tool, "arguments": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**service.headers, "Accept": "application/json, text/event-stream"}
    url = f"{service.url}/mcp?agent={agent}"
    return httpx.post(url, json=message, headers=headers, timeout=120, trust_env=False)


def connected(service: Service, slug: str) -> bool:
    return bool(service.call("GET", f"/mcp-servers/{slug}/status")["state"] in ("connected", "unhealthy"))
