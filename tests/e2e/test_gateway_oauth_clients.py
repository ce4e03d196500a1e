"""More clients that only know OAuth: the bridge of clients over stdio, mcporter, the AI SDK, and
the conformance suite's."""

import asyncio
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.e2e.consent import People
from tests.e2e.front_door import TOOL, a_front_door
from tests.e2e.identity_provider import needs_identity_provider
from tests.e2e.oauth_client import a_client
from tests.e2e.processes import until
from tests.e2e.service import ROOT
from tests.e2e.test_gateway import text_of
from tests.e2e.test_gateway_conformance import NODES, SUITE

NODE_MODULES = ROOT / "tests" / "node" / "node_modules"
MCP_REMOTE = NODE_MODULES / "mcp-remote" / "dist" / "proxy.js"
MCPORTER = NODE_MODULES / "mcporter" / "dist" / "cli.js"
AI_SDK = ROOT / "tests" / "node" / "ai_sdk_oauth_client.mjs"
NEEDS = "needs `make node peers`"

pytestmark = [pytest.mark.timeout(400), pytest.mark.requirement("P5"), needs_identity_provider()]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    with a_front_door(tmp_path_factory.mktemp("oauth_clients") / "home") as running:
        yield running


def allowed(people: People, url: str) -> None:
    """A person allows it, and their browser goes back to the program that waits on this machine."""
    httpx.get(people.redirected(url), trust_env=False, timeout=60.0).raise_for_status()


def found_in(log: Path, people: People) -> str | None:
    """The authorization request that a program has printed."""
    wanted = re.escape(f"{people.service.url}/console/authorize")
    printed = re.search(rf"{wanted}\?\S+", log.read_text(encoding="utf-8"))
    return None if printed is None else printed[0]


@pytest.mark.skipif(not (NODES and MCP_REMOTE.exists()), reason=NEEDS)
async def test_mcp_remote_connects_clients_that_speak_stdio(people: People, tmp_path: Path) -> None:
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text("#!/bin/sh\n")
    opener.chmod(0o755)
    log = tmp_path / "stderr"
    command = [str(MCP_REMOTE), f"{people.service.url}/mcp?agent=reader", "--host", "127.0.0.1"]
    command += ["--auth-timeout", "120"]
    environment = {
        "PATH": f"{opener.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "MCP_REMOTE_CONFIG_DIR": str(tmp_path / "remembered"),
    }
    for is_first in (True, False):
        with log.open("w+", encoding="utf-8") as errors:
            parameters = StdioServerParameters(command=str(NODES[-1]), args=command, env=environment)

            def allow() -> None:
                until(lambda: found_in(log, people) is not None, what="the address for the browser")
                allowed(people, found_in(log, people) or "")

            consent = asyncio.create_task(asyncio.to_thread(allow)) if is_first else None
            async with Client(stdio_client(parameters, errlog=errors)) as client:
                text = text_of(await client.call_tool(TOOL, {"text": "stdio"}))
            if consent is not None:
                await consent
        assert text == "look says stdio"
    assert found_in(log, people) is None, "the second time it has a token"


@pytest.mark.skipif(not (NODES and (NODE_MODULES / "@ai-sdk" / "mcp").exists()), reason=NEEDS)
def test_the_ai_sdk_connects(people: People) -> None:
    url = f"{people.service.url}/mcp?agent=reader"
    command = [str(NODES[-1]), str(AI_SDK), url, TOOL, json.dumps({"text": "the AI SDK"})]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        asked = process.stdout.readline().strip()
        assert asked.startswith(f"{people.service.url}/console/authorize?"), process.communicate()[1]
        said, complaints = process.communicate(people.redirected(asked) + "\n", timeout=150)
    assert process.returncode == 0, complaints
    assert json.loads(said.splitlines()[-1]) == {"text": "look says the AI SDK"}


@pytest.mark.skipif(not (NODES and SUITE.exists()), reason=NEEDS)
def test_the_conformance_suite_finds_no_fault_in_the_authorization_server(people: People, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = a_client(people.service, f"http://127.0.0.1:{port}/callback", name="Conformance suite")
    command = [
        str(NODES[-1]), str(SUITE), "authorization", "--url", people.service.url, "--client-id", client.client_id,
        "--resource", client.resource, "--port", str(port), "-o", str(tmp_path / "results"),
    ]  # fmt: skip
    log = tmp_path / "suite.txt"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            until(lambda: found_in(log, people) is not None, what="the address for the browser")
            allowed(people, found_in(log, people) or "")
            assert process.wait(timeout=120) == 0, log.read_text(encoding="utf-8")
        finally:
            process.kill()
    checks = [check for path in (tmp_path / "results").rglob("checks.json") for check in json.loads(path.read_text())]
    assert {check["status"] for check in checks} <= {"SUCCESS", "INFO"}, checks
    assert {"authorization-code-grant", "authorization-server-metadata-cimd"} <= {check["id"] for check in checks}


@pytest.mark.skipif(not (NODES and MCPORTER.exists()), reason=NEEDS)
def test_mcporter_connects_and_remembers_its_token(people: People, tmp_path: Path) -> None:
    log = tmp_path / "told"
    environment = {
        "PATH": f"{NODES[-1].parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "MCPORTER_OAUTH_NO_BROWSER": "1",
    }
    url = f"{people.service.url}/mcp?agent=reader"
    server = ["--http-url", url, "--allow-http", "--name", "gateway"]
    call = ["call", *server, "--tool", TOOL, "--args", json.dumps({"text": "mcporter"}), "--output", "text"]
    for command in (["auth", *server], [*call, "--no-oauth"]):
        with (
            log.open("w", encoding="utf-8") as told,
            subprocess.Popen(
                [str(NODES[-1]), str(MCPORTER), *command],
                stdout=told,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=tmp_path,
            ) as process,
        ):
            try:
                if command[0] == "auth":
                    until(lambda: found_in(log, people) is not None, what="the address for the browser")
                    allowed(people, found_in(log, people) or "")
                assert process.wait(timeout=150) == 0, log.read_text(encoding="utf-8")
            finally:
                process.kill()
    assert "look says mcporter" in log.read_text(encoding="utf-8")
