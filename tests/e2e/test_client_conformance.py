"""The official conformance suite against our MCP client, which a running service puts to use as
people have it do so (`clients/conformance_client.py`). What is expected to fail is written down
with its reason (ADR 0019), and the list may only become shorter.
"""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.e2e.service import ROOT, serving
from tests.e2e.test_gateway_conformance import NODES, SUITE

CLIENT = Path(__file__).parent / "clients" / "conformance_client.py"
SUITE_S = 500.0

_ADDRESS = "it wants one fixed address as client id; ours is where the service's own document is, and is used"
_NULL = "it calls a tool with null for a boolean; arguments that do not fit a tool's schema are never sent"
_QUESTION = (
    "a run answers questions after the call that asked has ended, if the server is of an older version (ADR 0007)"
)
EXPECTED: dict[str, dict[str, str]] = {
    "2025-11-25": {"auth/basic-cimd": _ADDRESS, "elicitation-sep1034-client-defaults": _QUESTION},
    "2026-07-28": {"auth/basic-cimd": _ADDRESS, "http-custom-headers": _NULL},
}

_OUTCOME = re.compile(r"^([✓✗]) ([\w/.-]+): (\d+) passed", re.MULTILINE)
_NOT_SCORED = re.compile(r"^  [✓✗] ([\w/.-]+) \(", re.MULTILINE)


def serving_client(home: Path) -> str:
    """The command of the client that has the service do it."""
    return f"{sys.executable} -I -S {CLIENT} {home}"


async def said_by(client: str, results: Path, *wanted: str) -> str:
    """What the suite says of the wanted scenarios."""
    process = await asyncio.create_subprocess_exec(
        str(NODES[-1]), str(SUITE), "client", "--command", client, *wanted, "-o", str(results),
        "--timeout", "90000",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=ROOT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(SUITE_S):
            said = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
    results.with_suffix(".txt").write_text(said)
    return said


async def outcomes(home: Path, revision: str, results: Path) -> dict[str, bool]:
    """Which of the scenarios that the revision requires of clients pass, without a warning."""
    said = await said_by(serving_client(home), results, "--requirements", revision)
    summary = said.partition("=== SUITE SUMMARY ===")[2]
    beside = set(_NOT_SCORED.findall(summary))
    scored = {name: mark == "✓" for mark, name, _ in _OUTCOME.findall(summary) if name not in beside}
    assert scored, said[-4000:]
    return scored


@pytest.mark.requirement("B4", "B12")
@pytest.mark.timeout(600)
@pytest.mark.skipif(not (SUITE.exists() and NODES), reason="needs `make node peers`")
@pytest.mark.parametrize("revision", sorted(EXPECTED))
async def test_our_client_passes_the_scenarios_that_a_revision_requires(
    tmp_path: Path, revision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path / "home", DRAGOMAN_PUBLIC_URL="https://agents.example.com") as service:
        scored = await outcomes(service.home, revision, tmp_path / "results")
    failed = {name for name, passed in scored.items() if not passed}
    expected = EXPECTED[revision].keys()
    with capsys.disabled():
        sys.stdout.write(f"\nconformance {revision} of our client: {len(scored) - len(failed)} of {len(scored)}\n")
    assert not sorted(failed - expected), "these failed"
    assert not sorted(expected - failed), "these pass: take them off the list"


@pytest.mark.requirement("P4")
@pytest.mark.timeout(600)
@pytest.mark.skipif(not (SUITE.exists() and NODES), reason="needs `make node peers`")
@pytest.mark.parametrize("scenario", ["auth/client-credentials-basic", "auth/client-credentials-jwt"])
async def test_our_client_passes_the_scenarios_of_clients_that_act_for_themselves(
    tmp_path: Path, scenario: str
) -> None:
    with serving(tmp_path / "home", DRAGOMAN_PUBLIC_URL="https://agents.example.com") as service:
        said = await said_by(serving_client(service.home), tmp_path / "results", "--scenario", scenario)
    assert ", 0 failed, 0 warnings" in said, said[-4000:]


@pytest.mark.requirement("P4")
@pytest.mark.timeout(600)
@pytest.mark.skipif(not (SUITE.exists() and NODES), reason="needs `make node peers`")
async def test_our_client_passes_the_scenario_of_authorization_that_an_enterprise_manages(tmp_path: Path) -> None:
    client = f"{sys.executable} -m tests.e2e.clients.managed_client"
    said = await said_by(client, tmp_path / "results", "--scenario", "auth/enterprise-managed-authorization")
    assert "Client exited with code" not in said, said[-4000:]
    assert ", 0 failed, 0 warnings" in said, said[-4000:]
