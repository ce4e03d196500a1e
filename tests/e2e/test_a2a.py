"""Agents over A2A as the protocol's own client has them, on both bindings, over a real service."""

import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e.processes import until
from tests.e2e.service import ROOT, Json, Service, a_turn, serving

pytestmark = pytest.mark.requirement("X5")
client_of_a2a = pytest.importorskip("a2a.client")
types = pytest.importorskip("a2a.types")
errors = pytest.importorskip("a2a.utils.errors")
json_format = pytest.importorskip("google.protobuf.json_format")
struct_pb2 = pytest.importorskip("google.protobuf.struct_pb2")

NOTE, HELD = "mcp__watched__note", "mcp__watched__held_look"
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
BINDINGS = ("JSONRPC", "HTTP+JSON")
both = pytest.mark.parametrize("binding", BINDINGS)
CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("a2a") / "home") as running:
        running.watched_server("watched", trusted=True)
        notes = a_turn("May I?", (NOTE, {"text": "x"})), a_turn("Done with {{ user }}.")
        policies = {NOTE: {"decision": "require_approval"}}
        running.agent("guide", running.script("guide", *notes), mcp_servers=["watched"], tool_policies=policies)
        running.agent("cities", running.script("cities", a_turn('{"city": "Lisbon"}')), output_schema=CITY)
        running.agent("broken", running.script("broken", a_turn("{{ results.last }}")))
        yield running


@asynccontextmanager
async def connected(service: Service, agent: str, binding: str) -> AsyncGenerator[Any]:
    async with httpx.AsyncClient(headers=service.headers, timeout=60, trust_env=False) as http:
        config = client_of_a2a.ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
        yield await client_of_a2a.create_client(f"{service.url}/a2a/v1/{agent}", config)


def says(text: str, **more: Any) -> Any:
    part = types.Part(text=text)
    message = types.Message(message_id=os.urandom(8).hex(), role=types.Role.ROLE_USER, parts=[part], **more)
    return types.SendMessageRequest(message=message)


def approves(status: Any, task: Any) -> Any:
    [question] = json_format.MessageToDict(status.message.parts[1].data)["pending"]
    request = says("", task_id=task.id, context_id=task.context_id)
    decision = {"id": question["id"], "approved": True}
    request.message.parts[0].CopyFrom(types.Part(data=json_format.ParseDict(decision, struct_pb2.Value())))
    return request


async def told(stream: Any) -> list[Any]:
    return [update async for update in stream]


def kinds(updates: list[Any]) -> list[str]:
    return [str(update.WhichOneof("payload")) for update in updates]


def state(updates: list[Any]) -> str:
    return str(types.TaskState.Name(updates[-1].status_update.status.state))


@both
async def test_a_stream_waits_for_an_approval_and_continues_with_it(service: Service, binding: str) -> None:
    async with connected(service, "guide", binding) as client:
        asked = await told(client.send_message(says("note it")))
        assert (kinds(asked)[0], state(asked)) == ("task", "TASK_STATE_INPUT_REQUIRED")
        task = asked[0].task
        rest = await told(client.send_message(approves(asked[-1].status_update.status, task)))
        assert state(rest) == "TASK_STATE_COMPLETED"
        calls = [dict(update.status_update.metadata["toolCall"]) for update in rest if "toolCall" in _metadata(update)]
        assert [(call["name"], call.get("failed")) for call in calls] == [(NOTE, False)]
        whole = await client.get_task(types.GetTaskRequest(id=task.id))
        assert [part.text for part in whole.artifacts[0].parts] == ["Done with note it."]
        assert [message.parts[0].text for message in whole.history] == ["note it", "May I?", "Done with note it."]
        listed = await client.list_tasks(types.ListTasksRequest(context_id=task.context_id))
        assert ([found.id for found in listed.tasks], listed.total_size) == ([task.id], 1)
        card = await client.get_extended_agent_card(types.GetExtendedAgentCardRequest())
        assert card.name == "guide"


def _metadata(update: Any) -> Any:
    return update.status_update.metadata if update.HasField("status_update") else ()


@both
async def test_an_answer_by_a_schema_is_data(service: Service, binding: str) -> None:
    async with connected(service, "cities", binding) as client:
        updates = await told(client.send_message(says("where?")))
        [*_, last] = [update.artifact_update for update in updates if update.HasField("artifact_update")]
        assert dict(last.artifact.parts[0].data.struct_value) == {"city": "Lisbon"}


@both
async def test_a_failed_run_is_a_failed_task_and_errors_are_those_of_the_protocol(
    service: Service, binding: str
) -> None:
    async with connected(service, "broken", binding) as client:
        updates = await told(client.send_message(says("go")))
        assert state(updates) == "TASK_STATE_FAILED"
        with pytest.raises(errors.TaskNotFoundError):
            await client.get_task(types.GetTaskRequest(id="run_none"))
        with pytest.raises(errors.TaskNotCancelableError):
            await client.cancel_task(types.CancelTaskRequest(id=updates[0].task.id))
        with pytest.raises(errors.UnsupportedOperationError):
            await told(client.subscribe(types.SubscribeToTaskRequest(id=updates[0].task.id)))
        with pytest.raises(errors.UnsupportedOperationError):
            await told(client.send_message(says("more", task_id=updates[0].task.id)))


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_example_finishes_after_a_kill_in_the_middle_of_a_stream(tmp_path: Path, binding: str) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with serving(home) as service:
        log = service.watched_server("watched", trusted=True)
        held = a_turn("Looking.", (HELD, {"text": "x", "gate": str(gate)}))
        service.agent("guide", service.script("guide", held, a_turn("Found.")), mcp_servers=["watched"])
        program = example(service, "look", binding)
        until(lambda: log.exists() and "called held_look x" in log.read_text(), what="the call")
        service.stop(signal.SIGKILL)
    gate.touch()
    with serving(home, DRAGOMAN_PORT=str(urlsplit(service.url).port)), program:
        said, _ = program.communicate(timeout=120)
    assert (program.returncode, said) == (0, "TASK_STATE_COMPLETED Found.\n")


@pytest.mark.requirement("U3")
def test_the_example_lets_its_user_decide(service: Service) -> None:
    with example(service, "note it", "JSONRPC") as program:
        said, _ = program.communicate("yes\n", timeout=120)
    assert program.returncode == 0
    assert said.endswith("TASK_STATE_COMPLETED Done with note it.\n")


def example(service: Service, question: str, binding: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [PYTHON, ROOT / "examples" / "a2a_client.py", "guide", question, binding],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DRAGOMAN_URL": service.url, "DRAGOMAN_API_KEY": service.key},
    )
