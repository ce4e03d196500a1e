"""The bridge for editors: its messages on the wire, the content of prompts, and how runs end."""

import asyncio
import json
import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import cast

import httpx
import pytest

from domain.json_value import JsonObject, JsonValue
from interfaces.cli import following
from interfaces.cli.acp import turn
from interfaces.cli.acp.bridge import AcpBridge
from interfaces.cli.acp.prompts import input_of
from interfaces.cli.acp.wire import MAX_LINE_BYTES, MAX_REQUESTS, Peer, RpcFailure, over_stdio
from interfaces.cli.failures import CommandFailure
from interfaces.http.threads.views import ThreadView
from tests.unit.interfaces.cli.fake_service import (
    FakeService,
    event,
    message_document,
    problem,
    run_document,
    stream_of,
    whole,
)

pytestmark = pytest.mark.requirement("X8")
SESSION: JsonObject = {"sessionId": "thr_1"}
PROMPT: JsonObject = {**SESSION, "prompt": [{"type": "text", "text": "Go."}]}


class Written:
    """The stream to the editor: the messages that were written."""

    def __init__(self) -> None:
        self.messages: list[JsonObject] = []
        self.arrived = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.arrived.set()
        self.messages += [json.loads(line) for line in data.splitlines()]

    async def drain(self) -> None: ...


class Allowing(Written):
    """The stream to an editor that allows what it is asked, then leaves."""

    editor: asyncio.StreamReader

    def write(self, data: bytes) -> None:
        super().write(data)
        asked = self.messages[-1]
        if asked.get("method") == "session/request_permission":
            answer = {"id": asked["id"], "result": {"outcome": {"outcome": "selected", "optionId": "allow"}}}
            self.editor.feed_data(json.dumps(answer).encode() + b"\n")
            self.editor.feed_eof()


def a_peer(*lines: str) -> tuple[Peer, Written]:
    """The editor that sends these lines, then leaves."""
    reader, written = asyncio.StreamReader(limit=MAX_LINE_BYTES), Written()
    for line in lines:
        reader.feed_data(line.encode() + b"\n")
    reader.feed_eof()
    return Peer(reader, cast(asyncio.StreamWriter, written)), written


def a_request(method: str, params: JsonValue = None, request_id: int | None = 1) -> str:
    message: JsonObject = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    return json.dumps(message if request_id is None else {**message, "id": request_id})


async def answered(service: FakeService, *lines: str) -> list[JsonObject]:
    """What the bridge writes for these lines."""
    peer, written = a_peer(*lines)
    async with aclosing(service.client()) as api:
        await peer.serve(AcpBridge(api=api, peer=peer, agent="guide", version="1").answer)
    return written.messages


def away(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def code_of(message: JsonObject) -> JsonValue:
    error = message["error"]
    assert isinstance(error, dict)
    return error["code"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("no JSON", -32700),
        ("[" * 100_000, -32700),
        ("[]", -32600),
        (a_request("session/fork"), -32601),
        (a_request("session/new", [1]), -32602),
        (a_request("session/prompt", {"prompt": []}), -32602),
        (a_request("session/prompt", {**SESSION, "prompt": "Go."}), -32602),
        (a_request("session/load", SESSION), -32002),
    ],
)
async def test_a_message_that_cannot_be_answered_gets_an_error_and_the_next_one_its_answer(
    line: str, code: int
) -> None:
    refused, hello = await answered(FakeService(), line, a_request("initialize", request_id=2))
    assert code_of(refused) == code
    assert (hello["id"], cast(JsonObject, hello["result"])["protocolVersion"]) == (2, 1)


async def test_notifications_and_unknown_answers_get_no_answer() -> None:
    lines = a_request("session/cancel", SESSION, None), a_request("no/such", None, None), '{"id": 7, "result": {}}'
    assert await answered(FakeService(), *lines) == []


async def test_a_fault_of_a_handler_is_logged_and_the_next_request_gets_its_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    peer, written = a_peer(a_request("fail", None, None), a_request("fail"), a_request("well", request_id=2))

    async def handler(method: str, params: JsonObject) -> JsonObject:
        if method == "fail":
            raise ValueError("unforeseen")
        return {}

    await peer.serve(handler)
    refused, answer = sorted(written.messages, key=lambda message: cast(int, message["id"]))
    assert (code_of(refused), answer["result"]) == (-32603, {})
    assert caplog.text.count("ValueError: unforeseen") == 2


async def test_more_requests_at_a_time_than_the_bound_are_refused() -> None:
    peer, written = a_peer(*(a_request("wait", request_id=number) for number in range(MAX_REQUESTS + 1)))
    released = asyncio.Event()

    async def handler(method: str, params: JsonObject) -> JsonObject:
        await released.wait()
        return {}

    serving = asyncio.create_task(peer.serve(handler))
    await written.arrived.wait()
    released.set()
    await serving
    assert [message["id"] for message in written.messages if "error" in message] == [MAX_REQUESTS]
    assert len(written.messages) == MAX_REQUESTS + 1


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "Hi"}, {"type": "text", "text": "Hi"}),
        (
            {"type": "image", "data": "QQ==", "mimeType": "image/png"},
            {"type": "image", "media_type": "image/png", "data": "QQ=="},
        ),
        (
            {"type": "audio", "data": "QQ==", "mimeType": "audio/wav"},
            {"type": "file", "media_type": "audio/wav", "data": "QQ=="},
        ),
        (
            {"type": "resource_link", "uri": "file:///a.py", "name": "a.py"},
            {"type": "text", "text": "[a.py](file:///a.py)"},
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a.py", "text": "x = 1"}},
            {"type": "text", "text": "file:///a.py:\n\nx = 1"},
        ),
        (
            {
                "type": "resource",
                "resource": {"uri": "file:///a%20b.pdf", "blob": "QQ==", "mimeType": "application/pdf"},
            },
            {"type": "file", "media_type": "application/pdf", "data": "QQ==", "name": "a b.pdf"},
        ),
        (
            {"type": "resource", "resource": {"uri": "file://[x", "blob": "QQ==", "mimeType": "application/pdf"}},
            {"type": "file", "media_type": "application/pdf", "data": "QQ=="},
        ),
    ],
)
def test_content_of_a_prompt_is_a_part_of_the_input(block: JsonValue, part: JsonValue) -> None:
    assert input_of([block]) == [part]


@pytest.mark.parametrize("prompt", [None, [], "text", [1], [{"type": "video"}], [{"type": "image"}]])
def test_other_content_is_refused(prompt: JsonValue) -> None:
    with pytest.raises(RpcFailure):
        input_of(prompt)


def a_service(status: str, **run: JsonValue) -> FakeService:
    service = FakeService().on("GET", "/v1/runs", {"data": [], "next_cursor": None})
    service.on("POST", "/v1/threads/thr_1/runs", run_document(status="queued"))
    return service.on("GET", "/v1/runs/run_1", run_document(status, **run))


@pytest.mark.parametrize(
    ("status", "reason", "stop_reason"),
    [
        ("completed", None, "end_turn"),
        ("cancelled", None, "cancelled"),
        ("incomplete", "max_output_tokens", "max_tokens"),
        ("incomplete", "refusal", "refusal"),
        ("incomplete", "max_turns", "max_turn_requests"),
    ],
)
async def test_a_prompt_stops_for_the_reason_for_which_its_run_ended(
    status: str, reason: str | None, stop_reason: str
) -> None:
    told = (
        event(1, "reasoning.delta", message_id="msg_1", text="Hm."),
        event(2, "message.delta", message_id="msg_1", text="Hi"),
    )
    service = a_service(status, incomplete_reason=reason).on(
        "GET", "/v1/runs/run_1/stream", stream_of(*told, end=status)
    )

    *updates, ended = await answered(service, a_request("session/prompt", PROMPT))

    shown = [cast(JsonObject, cast(JsonObject, one["params"])["update"])["sessionUpdate"] for one in updates]
    assert shown == ["agent_thought_chunk", "agent_message_chunk"]
    assert ended["result"] == {"stopReason": stop_reason}


@pytest.mark.requirement("H6")
@pytest.mark.parametrize("said", ["tools.0: too long", None])
async def test_a_failed_prompt_says_what_the_provider_said_to_those_who_get_it(said: str | None) -> None:
    told: JsonObject = {"status": 400, "code": None, "message": said}
    error: JsonObject = {"code": "model_rejected", "detail": "Rejected.", **({"provider_error": told} if said else {})}
    service = a_service("failed", error=error).on("GET", "/v1/runs/run_1/stream", stream_of(end="failed"))
    *_, ended = await answered(service, a_request("session/prompt", PROMPT))
    message = cast(JsonObject, ended["error"])["message"]
    assert message == ("Rejected." if said is None else f"Rejected. The provider said: {said}")


async def test_what_a_loaded_session_has_shown_is_not_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    use: JsonObject = {"type": "tool_use", "id": "call_1", "name": "look", "params": {}}
    result: JsonObject = {"type": "tool_result", "tool_id": "call_1", "tool_name": "look", "result": "seen"}
    asks, sees = message_document("assistant", use), {**message_document("tool", result), "id": "msg_2"}
    told = (
        event(1, "reasoning.delta", message_id="msg_1", text="Hm."),
        event(2, "message.completed", message=asks),
        event(3, "tool.started", tool_call_id="call_1", name="look", params={}),
        event(4, "message.completed", message=sees),
        event(5, "message.delta", message_id="msg_3", text="Do"),
        event(6, "message.delta", message_id="msg_3", text="ne."),
    )
    service = FakeService().on("GET", "/v1/threads/thr_1", whole(ThreadView, {"id": "thr_1"}))
    service.on("GET", "/v1/threads/thr_1/messages", {"data": [asks, sees], "next_cursor": None})
    service.on("GET", "/v1/runs", {"data": [run_document("in_progress")]})
    service.on("GET", "/v1/runs/run_1", run_document())
    service.on("GET", "/v1/runs/run_1/stream", stream_of(*told[:5]), away, stream_of(*told, end="completed"))
    service.on("POST", "/v1/threads/thr_1/runs", run_document("queued", id="run_2"))
    service.on("GET", "/v1/runs/run_2", run_document(id="run_2"))
    service.on("GET", "/v1/runs/run_2/stream", stream_of(end="completed"))
    monkeypatch.setattr(following, "RECONNECT_PAUSE_S", 0)
    monkeypatch.setattr(turn, "RECONNECTS", 1)
    peer, written = a_peer()
    async with aclosing(service.client()) as api:
        bridge = AcpBridge(api=api, peer=peer, agent="guide", version="1")
        await bridge.answer("session/load", SESSION)
        with pytest.raises(CommandFailure):
            await bridge.answer("session/prompt", PROMPT)
        await bridge.answer("session/prompt", PROMPT)

    updates = [cast(JsonObject, cast(JsonObject, one["params"])["update"]) for one in written.messages]
    kinds = [update["sessionUpdate"] for update in updates]
    assert kinds == ["tool_call", "tool_call_update", "agent_message_chunk", "agent_message_chunk"]


async def test_a_failed_run_fails_its_prompt_with_the_reason() -> None:
    error: JsonObject = {"code": "model_unavailable", "detail": "No model answers."}
    service = a_service(status="failed", error=error).on("GET", "/v1/runs/run_1/stream", stream_of(end="failed"))
    (refused,) = await answered(service, a_request("session/prompt", PROMPT))
    assert cast(JsonObject, refused["error"])["message"] == "No model answers."


async def test_a_prompt_looks_once_for_unfinished_runs_and_again_while_the_service_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "RECONNECT_PAUSE_S", 0)
    ended = run_document("completed", id="run_0")
    service = FakeService().on("GET", "/v1/runs", away, {"data": [ended], "next_cursor": "2"})
    service.on("POST", "/v1/threads/thr_1/runs", run_document(status="queued"))
    service.on("GET", "/v1/runs/run_1", run_document())
    service.on("GET", "/v1/runs/run_1/stream", stream_of(end="completed"))

    (answer,) = await answered(service, a_request("session/prompt", PROMPT))

    assert answer["result"] == {"stopReason": "end_turn"}
    assert len(service.sent("GET", "/v1/runs")) == 2


@pytest.mark.parametrize("end", ["failed", "halted", "cancelled", "incomplete"])
async def test_a_prompt_starts_its_run_however_an_earlier_one_ended(end: str) -> None:
    service = FakeService().on("GET", "/v1/runs", {"data": [run_document("in_progress", id="run_0")]})
    service.on("GET", "/v1/runs/run_0", run_document(end, id="run_0"))
    service.on("GET", "/v1/runs/run_0/stream", stream_of(end=end))
    service.on("POST", "/v1/threads/thr_1/runs", run_document(status="queued"))
    service.on("GET", "/v1/runs/run_1", run_document())
    service.on("GET", "/v1/runs/run_1/stream", stream_of(end="completed"))

    (ended,) = await answered(service, a_request("session/prompt", PROMPT))

    assert ended["result"] == {"stopReason": "end_turn"}
    assert len(service.sent("POST", "/v1/threads/thr_1/runs")) == 1


def a_service_that_waits_for_a_person() -> FakeService:
    call: JsonObject = {"type": "tool_use", "id": "call_1", "name": "note", "params": {}, "approval_id": "apr_1"}
    service = a_service(status="requires_action", pending=[call])
    return service.on("GET", "/v1/runs/run_1/stream", stream_of(end="requires_action"))


async def test_a_cancellation_reaches_a_service_that_was_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "RECONNECT_PAUSE_S", 0)
    service = a_service_that_waits_for_a_person()

    def cancelled(request: httpx.Request) -> httpx.Response:
        service.answers["GET", "/v1/runs/run_1"] = [run_document("cancelled")]
        return httpx.Response(200, json=run_document("cancelled"))

    service.on("POST", "/v1/runs/run_1/cancel", away, away, cancelled)

    lines = a_request("session/prompt", PROMPT), a_request("session/cancel", SESSION, None)
    *_, ended = await answered(service, *lines)

    assert ended["result"] == {"stopReason": "cancelled"}
    assert len(service.sent("POST", "/v1/runs/run_1/cancel")) == 3


async def test_a_refused_cancellation_ends_its_prompt_with_the_reason() -> None:
    service = a_service_that_waits_for_a_person()
    service.on("POST", "/v1/runs/run_1/cancel", problem(403, "forbidden", "Not your run."))
    lines = a_request("session/prompt", PROMPT), a_request("session/cancel", SESSION, None)
    *_, refused = await answered(service, *lines)
    assert cast(JsonObject, refused["error"])["message"] == "Not your run."


async def test_an_answer_decides_the_approval_that_was_asked_about() -> None:
    service = a_service_that_waits_for_a_person()

    def stale(request: httpx.Request) -> httpx.Response:
        service.answers["GET", "/v1/runs/run_1"] = [run_document("cancelled")]
        return problem(409, "approval_stale", "The agent has changed.")

    service.on("POST", "/v1/approvals/apr_1", stale)
    reader, written = asyncio.StreamReader(), Allowing()
    written.editor = reader
    peer = Peer(reader, cast(asyncio.StreamWriter, written))
    reader.feed_data(a_request("session/prompt", PROMPT).encode() + b"\n")
    async with aclosing(service.client()) as api:
        await peer.serve(AcpBridge(api=api, peer=peer, agent="guide", version="1").answer)

    ended = written.messages[-1]
    assert ended["result"] == {"stopReason": "cancelled"}
    assert service.sent("POST", "/v1/approvals/apr_1") == [{"decision": "approve"}]
    assert service.sent("POST", "/v1/runs/run_1/resume") == []


async def test_questions_of_servers_are_declined_and_client_tools_count_as_displayed() -> None:
    asked: JsonObject = {"request_id": "1", "message": "Which?"}
    pending: list[JsonValue] = [
        {"type": "tool_use", "id": "call_1", "name": "paint", "params": {}, "elicitation": asked},
        {"type": "tool_use", "id": "call_2", "name": "send_email", "params": {}},
    ]
    service = a_service(status="requires_action", pending=pending).on(
        "GET", "/v1/runs/run_1", run_document(status="completed")
    )
    service.on("GET", "/v1/runs/run_1/stream", stream_of(end="requires_action"))
    service.on("POST", "/v1/runs/run_1/resume", problem(409, "run_not_waiting", "Decided elsewhere."))

    (ended,) = await answered(service, a_request("session/prompt", PROMPT))

    assert ended["result"] == {"stopReason": "end_turn"}
    (body,) = service.sent("POST", "/v1/runs/run_1/resume")
    assert body == {
        "tool_results": [
            {"tool_call_id": "call_1", "result": {"action": "decline"}},
            {"tool_call_id": "call_2", "result": "Tool has been displayed successfully"},
        ]
    }


async def test_output_into_a_file_is_said_to_be_the_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taking, giving = os.pipe()
    with os.fdopen(taking) as stdin, (tmp_path / "out").open("w") as stdout:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)
        with pytest.raises(CommandFailure, match="Stdout is a file"):
            await over_stdio()
    os.close(giving)
