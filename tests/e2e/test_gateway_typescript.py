"""The gateway as the official TypeScript client meets it."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.service import ROOT, serving
from tests.e2e.test_gateway import a_gateway_toolset
from tests.e2e.test_gateway_conformance import NODES

CLIENT = ROOT / "tests" / "node" / "gateway_client.mjs"


@pytest.mark.requirement("F5")
@pytest.mark.skipif(
    not (NODES and (CLIENT.parent / "node_modules" / "@modelcontextprotocol" / "client").exists()),
    reason="needs `make node peers`",
)
def test_the_typescript_client_lists_and_calls_the_tools_of_an_agent(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        session, log = a_gateway_toolset(service)
        arguments = json.dumps({"text": "from TypeScript"})
        answered = subprocess.run(
            [str(NODES[-1]), str(CLIENT), session["url"], session["token"], "mcp__watched__look", arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert answered.returncode == 0, answered.stderr
        seen = json.loads(answered.stdout)
        assert seen["text"] == "look says from TypeScript"
        assert {"mcp__watched__look", "code_execution"} <= set(seen["tools"])
        assert log.read_text().count("called look") == 1
