"""The gateway as agent frameworks meet it, with their own MCP clients and their own loops; their
models say what they are told to. They live in an environment of their own (`make frameworks`), as
they bring the official SDK's first generation."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.documents.pages import blocks
from tests.e2e.service import ROOT, serving
from tests.e2e.test_gateway import a_gateway_toolset

PYTHON = ROOT / ".venv-frameworks" / "bin" / "python"
CLIENTS = Path(__file__).with_name("clients")
LOOK, NOTE, PUT = "mcp__watched__look", "mcp__watched__note", "mcp__watched__put"


@pytest.mark.requirement("F5")
@pytest.mark.timeout(400)
@pytest.mark.skipif(not PYTHON.exists(), reason="needs `make frameworks`")
@pytest.mark.parametrize(("framework", "module"), [("langchain_agent.py", "chain"), ("openai_agent.py", "helper")])
def test_an_agent_of_a_framework_has_the_tools_of_a_session_under_policy(
    tmp_path: Path, framework: str, module: str
) -> None:
    (tmp_path / f"{module}.py").write_text(shown_by_the_guide(module))
    with serving(tmp_path / "home") as service:
        session, log = a_gateway_toolset(
            service,
            tool_allowlist=[LOOK, NOTE, "code_execution"],
            tool_policies={NOTE: {"arguments_schema": {"properties": {"text": {"const": "allowed"}}}}},
        )
        calls = json.dumps([[LOOK, {"text": "here"}], [NOTE, {"text": "secret"}], [NOTE, {"text": "allowed"}]])
        ran = subprocess.run(
            [str(PYTHON), str(CLIENTS / framework), session["url"], session["token"], calls],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
        assert ran.returncode == 0, ran.stderr
        seen = json.loads(ran.stdout)
        assert {LOOK, NOTE, "code_execution"} == set(seen["tools"])
        looked, denied, noted = seen["results"]
        assert "look says here" in looked
        assert "note says" in noted
        assert "note says" not in denied
        assert "text" in denied
        assert seen["answer"] == "Done."
        assert log.read_text().count("called note") == 1
        audit = service.call("GET", "/audit-events?limit=50")["data"]
        made = [(entry["tool"], entry["action"]) for entry in reversed(audit) if entry["action"].startswith("tool.")]
        assert made == [(LOOK, "tool.executed"), (NOTE, "tool.blocked"), (NOTE, "tool.executed")]


def shown_by_the_guide(module: str) -> str:
    """The program for this framework in the gateway's guide."""
    marks = {"chain": "langchain_mcp_adapters", "helper": "agents.mcp"}
    [program] = [block.text for block in blocks("docs/guides/gateway.md") if marks[module] in block.text]
    return program
