"""Secrets of a workflow's tools are planted, used, and echoed by careless servers; then none may be
found where it is not meant, while the run lasts and when it has ended."""

from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.outside import outside
from tests.e2e.processes import until
from tests.e2e.service import ISOLATED_PYTHON, SERVERS, Json, Service, a_turn, serving
from tests.e2e.test_planted_secrets import found
from tests.e2e.test_workflow_tools import by_id
from tests.e2e.test_workflows import SECRET, settled, weather

pytestmark = pytest.mark.timeout(300)

SERVER_TOKEN = "planted-server-token-6d1e0a9b"
PLANTED = {"bound input": SECRET, "server's environment": SERVER_TOKEN}


def careless(url: str) -> Json:
    """A request that takes its secret in the query, too; one that is refused; and a server that
    tells its environment."""

    def component(name: str, token: str) -> Json:
        return {
            "url": f"{url}/{name}/{{{{inputs.city}}}}",
            "headers": {"Authorization": f"Bearer {token}{{{{inputs.token}}}}"},
            "query": {"key": "{{inputs.token}}"},
            "inputs": {"city": {"type": "string"}, "token": {"type": "string"}},
            "tool": {
                "name": name,
                "description": f"The {name}.",
                "bound": {"token": {"secret": "WEATHER"}},
                "exposed": ["city"],
            },
        }

    command = [*ISOLATED_PYTHON, str(SERVERS / "indiscreet_server.py")]
    desk = {
        "slug": "desk",
        "kind": "custom",
        "command": command[0],
        "args": command[1:],
        "env": {"SERVICE_TOKEN": {"secret": "DESK"}},
    }
    return {
        "name": "careless",
        "nodes": [
            {"id": "start", "kind": "entrypoint"},
            {"id": "weather", "kind": "http_request", "mode": "tool", "config": component("weather", "")},
            {"id": "refused", "kind": "http_request", "mode": "tool", "config": component("refused", "not ")},
            {"id": "desk", "kind": "mcp_server", "mode": "tool", "config": {"server": desk}},
            {"id": "alice", "kind": "agent", "config": {"agent": "alice", "input": "Go."}},
            {"id": "hold", "kind": "human_input", "config": {"prompt": "Enough?"}},
        ],
        "edges": [
            {"source": "start", "target": "alice"},
            {"source": "alice", "target": "hold"},
            *({"source": tool, "target": "alice", "target_handle": "tools"} for tool in ("weather", "refused", "desk")),
        ],
    }


def everything_said(service: Service, run_id: str, agent_run_id: str) -> bytes:
    """Every answer about the workflow, its run, the agent's run and the trail."""
    paths = ["/workflows", "/workflows/careless", "/workflow-runs", f"/workflow-runs/{run_id}", "/runs", "/secrets"]
    paths += [f"/runs/{agent_run_id}", f"/runs/{agent_run_id}/wait", f"/runs/{agent_run_id}/events", "/audit-events"]
    paths += ["/gateway-sessions", "/mcp-servers", "/tools"]
    return b"\n".join(service.client.get(path).content for path in paths)


def stored_in(home: Path) -> bytes:
    """All files. One that is gone before it is read holds nothing any more."""
    contents = b""
    for path in home.rglob("*"):
        with suppress(FileNotFoundError):
            contents += path.read_bytes() if path.is_file() else b""
    return contents


@pytest.mark.requirement("A5", "B12", "F2", "F6", "G1")
def test_secrets_of_a_workflows_tools_are_found_nowhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with weather() as server, outside() as there:
        settings = {
            "DRAGOMAN_LOG_LEVEL": "debug",
            "LANGFUSE_PUBLIC_KEY": "pk-public",
            "LANGFUSE_SECRET_KEY": "sk-tracing",
            "LANGFUSE_HOST": there.url,
        }
        with serving(home, **settings) as service:
            service.call("POST", "/secrets", {"name": "WEATHER", "value": SECRET})
            service.call("POST", "/secrets", {"name": "DESK", "value": SERVER_TOKEN})
            calls: list[tuple[str, Json]] = [
                ("weather", {"city": "Ulm"}),
                ("refused", {"city": "Ulm"}),
                ("mcp__desk__look", {}),
                ("mcp__desk__crash", {}),
            ]
            service.agent("alice", service.script("alice", a_turn("", *calls), a_turn("Done.")))
            service.call("POST", "/workflows", careless(server.url))
            run_id = service.call("POST", "/workflows/careless/runs", {}, expect=202)["id"]
            run = settled(service, run_id)
            assert run["status"] == "requires_action", run
            # They were really used.
            assert any(SECRET in path for path in server.asked)
            said = everything_said(service, run_id, by_id(run)["alice"]["run_id"])
            assert b"[hidden]" in said
            assert found(PLANTED, said) == []
            assert found(PLANTED, stored_in(home)) == []

            answer = {"answers": [{"node_id": "hold", "answer": "yes"}]}
            service.call("POST", f"/workflow-runs/{run_id}/resume", answer)
            ended = settled(service, run_id)
            assert ended["status"] == "completed", ended
            stream = service.client.get(f"/workflow-runs/{run_id}/stream").content
            assert found(PLANTED, stream + everything_said(service, run_id, by_id(run)["alice"]["run_id"])) == []
            until(lambda: bool(there.exports), what="traces are sent")
            assert service.stop() == 0
            assert found(PLANTED, service.log.read_bytes()) == []
            assert found(PLANTED, service.output.read_bytes()) == []
        assert found(PLANTED, b"".join(there.exports)) == []
    for path in home.rglob("*"):
        assert not path.is_file() or found(PLANTED, path.read_bytes()) == [], path.name
