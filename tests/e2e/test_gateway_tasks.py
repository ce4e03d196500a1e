"""Tasks of official clients of both generations, through a service that is killed while the agent
is at work."""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Request, Result
from pydantic import ConfigDict

from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving

EXTENSION = "io.modelcontextprotocol/tasks"
ASKED = {"input": "What does it say?"}
ENDED = {"completed", "failed", "cancelled"}


class Answer(Result):
    """Whatever a request of tasks is answered."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["complete"] | None = None

    def fields(self) -> Json:
        return dict(self.model_dump(by_alias=True, exclude_none=True))


class Created(Result):
    """A task in place of a result."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"


class TaskRequest(Request[dict[str, Any], str]):
    """A request about a task."""

    name_param = "taskId"


class Tasks(ClientExtension):
    """A client that takes tasks, and polls them itself."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        async def resolve(created: Created, context: ClaimContext) -> CallToolResult:
            raise AssertionError("the test polls")

        return (ResultClaim(result_type="task", model=Created, resolve=resolve),)


@asynccontextmanager
async def connected(service: Service, token: str, mode: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60.0) as http,
        Client(
            streamable_http_client(f"{service.url}/mcp", http_client=http), mode=mode, extensions=[Tasks()]
        ) as client,
    ):
        yield client


async def begun(client: Client, service: Service, token: str, mode: str) -> str:
    """The id of a task of `researcher`."""
    if mode == "legacy":  # the client takes nothing but results for answers to calls of that generation
        params = {"name": "agent__researcher", "arguments": ASKED, "task": {"ttl": 600_000}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"Authorization": f"Bearer {token}", "MCP-Protocol-Version": "2025-11-25"}
        headers["Accept"] = "application/json, text/event-stream"
        response = service.client.post(f"{service.url}/mcp", json=message, headers=headers)
        return str(response.json()["result"]["task"]["taskId"])
    created = await client.session.call_tool("agent__researcher", ASKED, allow_claimed=True)
    assert isinstance(created, Created)
    return str(created.model_dump(by_alias=True)["taskId"])


async def asked(client: Client, method: str, task_id: str) -> Json:
    request = TaskRequest(method=method, params={"taskId": task_id})
    return (await client.session.send_request(request, Answer)).fields()


async def result_of(client: Client, mode: str, task_id: str) -> Json:
    """What the call came to, once it has."""
    if mode == "legacy":
        return await asked(client, "tasks/result", task_id)
    async with asyncio.timeout(60):
        task = await asked(client, "tasks/get", task_id)
        while task["status"] not in ENDED:
            await asyncio.sleep(task["pollIntervalMs"] / 1000)
            task = await asked(client, "tasks/get", task_id)
    return dict(task["result"])


@pytest.mark.requirement("F5", "E3")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_result_of_a_task_is_there_although_the_service_was_killed_meanwhile(
    tmp_path: Path, mode: str
) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with serving(home) as service:
        log = service.watched_server("watched", trusted=True)
        turns = (a_turn("", ("mcp__watched__held_look", {"text": "here", "gate": str(gate)})), a_turn("It says here."))
        service.agent("researcher", service.script("researcher", *turns), mcp_servers=["watched"])
        service.agent("front", service.script("front", a_turn("Hello.")), agents=["researcher"])
        token = service.call("POST", "/gateway-sessions", {"agent_id": "front"})["token"]
        async with connected(service, token, mode) as client:
            task_id = await begun(client, service, token, mode)
            assert (await asked(client, "tasks/get", task_id))["status"] == "working"
            await asyncio.to_thread(until, lambda: log.exists() and "called held_look here" in log.read_text())
        assert service.stop(signal.SIGKILL) == -signal.SIGKILL
    with serving(home) as again:
        async with connected(again, token, mode) as client:
            assert (await asked(client, "tasks/get", task_id))["status"] == "working"
            gate.touch()
            result = await result_of(client, mode, task_id)
            assert result["content"] == [{"type": "text", "text": "It says here."}]
            run = again.call("GET", f"/runs/{result['structuredContent']['run_id']}")
            assert (run["status"], run["attempt"]) == ("completed", 2)
            [only] = again.call("GET", "/runs")["data"]
            assert only["id"] == run["id"]
            assert (await asked(client, "tasks/get", task_id))["status"] == "completed"
