"""An HTTP endpoint that answers only `tools/call`, from its registration to calls under policy."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.dragoman_here import DragomanHere

TOOL = "mcp__reputation__lookup"
PARAMETERS = {"type": "object", "properties": {"ip": {"type": "string"}}, "required": ["ip"]}
LISTED = {
    "tools": [
        {
            "name": "lookup",
            "title": "Lookup",
            "description": "Looks up the reputation of an IP address.",
            "inputSchema": PARAMETERS,
            "annotations": {"readOnlyHint": True},
        }
    ]
}


class Connector:
    """The endpoint; `methods` are those of all its requests."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self.url = ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.methods.append(request["method"])
        if request["method"] != "tools/call":
            return {"error": {"code": -32601, "message": "Method not found"}}
        text = f"{request['params']['arguments']['ip']} is harmless"
        return {"result": {"content": [{"type": "text", "text": text}]}}


@pytest.fixture
def connector() -> Iterator[Connector]:
    there = Connector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps({"jsonrpc": "2.0", "id": request["id"], **there.answer(request)}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there.url = f"http://127.0.0.1:{server.server_port}/rpc"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield there
    server.shutdown()
    server.server_close()


def an_agent(path: Path, model: str) -> str:
    definition = {
        "name": "guard",
        "model": model,
        "mcp_servers": ["reputation"],
        "tool_policies": {TOOL: {"decision": "require_approval"}},
    }
    path.write_text(json.dumps(definition), encoding="utf-8")
    return str(path)


@pytest.mark.requirement("B1", "B4", "C7", "D1")
def test_a_declared_tool_is_called_under_policy_and_a_changed_declaration_waits(
    tmp_path: Path, connector: Connector
) -> None:
    dragoman = DragomanHere(tmp_path / "home")
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(LISTED), encoding="utf-8")
    dragoman.run("mcp", "add", "reputation", "--url", connector.url, "--declared-tools", str(tools))
    tested = dragoman.run("mcp", "test", "reputation")
    assert tested.out == "reputation is not tested: it answers calls only. Usable of its declared tools: 1.\n"
    assert "declared tools" in dragoman.run("mcp", "show", "reputation").out
    assert dragoman.run("mcp", "test", "reputation", "--json").json["protocol_version"] is None
    assert connector.methods == []

    model = dragoman.script(
        "guard",
        {"text": "", "calls": [{"tool": TOOL, "arguments": {"ip": "192.0.2.1"}}]},
        {"text": "{{ results.last }}."},
    )
    agent = an_agent(tmp_path / "agent.json", model)
    waiting = dragoman.run("run", "Is it harmless?", "--agent", agent, exit_code=3)
    assert connector.methods == []
    resume = re.search(r"dragoman (run resume run_\w+ --approve \w+)", waiting.err)
    assert resume is not None
    assert "192.0.2.1 is harmless" in dragoman.run(*resume[1].split()).out
    assert connector.methods == ["tools/call"]

    changed = {"name": "lookup", "description": "Looks up addresses, and reports yours.", "parameters": PARAMETERS}
    dragoman.run("mcp", "update", "reputation", f"declared_tools={json.dumps([changed])}")
    assert "quarantine" in dragoman.run("mcp", "tools", "reputation", "--refresh").err
    refused = dragoman.run("run", "Once more?", "--agent", "guard")
    assert connector.methods == ["tools/call"], refused.out
    dragoman.run("mcp", "approve", "reputation", "lookup")
    assert "quarantine" not in dragoman.run("mcp", "tools", "reputation").err


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "must be a list of tools"),
        ("{}", "must be a list of tools"),
        ("- name: a b\n  description: x\n  parameters: {type: object}", "declared_tools.0.name"),
        ("- name: a\n  description: x\n  parameters: {}", "declared_tools.0.parameters"),
        ("- name: a\n  parameters: {type: object}", "declared_tools.0.description"),
        ("- name: [", "is not valid YAML"),
    ],
    ids=["empty", "mapping", "name", "no type", "no description", "syntax"],
)
def test_a_wrong_declaration_is_refused_with_the_place_of_its_fault(tmp_path: Path, text: str, said: str) -> None:
    dragoman = DragomanHere(tmp_path / "home")
    tools = tmp_path / "tools.yaml"
    tools.write_text(text, encoding="utf-8")
    url = "https://connector.example.com/rpc"
    done = dragoman.outcome("mcp", "add", "reputation", "--url", url, "--declared-tools", str(tools))
    assert done.exit_code in (1, 2)
    assert said in done.err
