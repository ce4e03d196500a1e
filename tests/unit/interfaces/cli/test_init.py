"""`dragoman init`: what is asked, and what is made of the answers."""

import httpx
import pytest

from domain.json_value import JsonObject
from interfaces.http.mcp_servers.views import ServerStatusView
from tests.unit.interfaces.cli.fake_service import (
    FakeService,
    agent_document,
    event,
    problem,
    run_document,
    stream_of,
    whole,
)

pytestmark = pytest.mark.requirement("U2")

NO_KEY = problem(
    422, "agent_invalid", "The agent is not valid.", model="The model provider 'openai' has no API key; set it."
)


def empty_service() -> FakeService:
    installed = whole(ServerStatusView, {"state": "disconnected", "installed_version": "1.0"})
    return (
        FakeService()
        .on("POST", "/v1/mcp-servers", {"slug": "time"})
        .on("POST", "/v1/mcp-servers/time/install", installed)
        .on("POST", "/v1/runs", httpx.Response(202, json=run_document("queued")))
        .on("GET", "/v1/runs/run_1/stream", stream_of(event(1, "run.completed"), end="completed"))
        .on("GET", "/v1/runs/run_1/wait", {"run": run_document(output="Hello!"), "messages": []})
    )


def agent_of(service: FakeService) -> JsonObject:
    agent = service.sent("POST", "/v1/agents")[-1]
    assert isinstance(agent, dict)
    return agent


def test_without_questions_it_takes_the_script_and_no_server() -> None:
    service = empty_service().on("POST", "/v1/agents", agent_document())
    outcome = service.run("init", "--yes")
    assert (outcome.exit_code, outcome.out) == (0, "Hello!\n")
    assert agent_of(service)["model"] == "scripted:hello.yaml"
    assert agent_of(service)["mcp_servers"] == []
    assert service.creating == [True]
    assert "dragoman chat --agent guide" in outcome.err


def test_a_person_chooses_by_number_or_name_and_gives_the_key_that_is_missing() -> None:
    service = (
        empty_service()
        .on("POST", "/v1/agents", NO_KEY, agent_document())
        .on("POST", "/v1/model-providers", {"name": "openai"})
    )
    outcome = service.run("init", typed=["2", "time", "clock", "a-key"])
    assert outcome.exit_code == 0
    assert service.sent("POST", "/v1/model-providers") == [{"name": "openai", "kind": "openai", "api_key": "a-key"}]
    [server] = service.sent("POST", "/v1/mcp-servers")
    assert server == {"slug": "time", "kind": "python", "package": "mcp-server-time"}
    assert agent_of(service)["name"] == "clock"
    assert agent_of(service)["mcp_servers"] == ["time"]
    assert "a-key" not in outcome.err


def test_a_server_that_is_there_is_used() -> None:
    service = empty_service().on("POST", "/v1/agents", agent_document())
    service.answers["POST", "/v1/mcp-servers"] = [problem(409, "slug_taken", "There is an MCP server 'time' already.")]
    outcome = service.run("init", "--yes", "--server", "time")
    assert outcome.exit_code == 0
    assert service.sent("POST", "/v1/mcp-servers/time/install") == []
    assert agent_of(service)["model"] == "scripted:time.yaml"


def test_an_unknown_server_is_bad_usage_that_names_the_choices() -> None:
    outcome = FakeService().run("init", "--yes", "--server", "tiem")
    assert outcome.exit_code == 2
    assert "time, fetch, git, memory, none" in outcome.err


def test_an_end_of_input_chooses_nothing() -> None:
    outcome = FakeService().run("init")
    assert outcome.exit_code == 2
    assert "--yes" in outcome.err
