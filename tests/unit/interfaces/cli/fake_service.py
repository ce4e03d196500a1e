"""A service of canned answers behind the real client, and a way to run commands against it."""

import io
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from types import UnionType
from typing import Literal, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

import httpx

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.api import ServiceApi
from interfaces.cli.app import invoke
from interfaces.cli.service_client import ServiceClient
from interfaces.cli.session import Session
from interfaces.cli.terminal import Terminal
from interfaces.cli.typed_input import read_secret
from interfaces.http.agents.views import SavedAgentView
from interfaces.http.runs.views import RunView

Answer = Union[JsonValue, httpx.Response, Callable[[httpx.Request], httpx.Response]]  # noqa: UP007 - JsonValue is a text


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command left behind."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> JsonObject:
        """The document on stdout."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document


class TerminalStream(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass(slots=True)
class FakeService:
    """Answers by method and path: the given answers in order, the last one again and again; else
    404."""

    answers: dict[tuple[str, str], list[Answer]] = field(default_factory=dict)
    requests: list[httpx.Request] = field(default_factory=list)
    workers_asked_for: list[bool] = field(default_factory=list)
    creating: list[bool] = field(default_factory=list)

    def on(self, method: str, path: str, *answers: Answer) -> "FakeService":
        """Add answers; returns itself."""
        self.answers.setdefault((method, path), []).extend(answers)
        return self

    def run(self, *arguments: str, interactive: bool = False, typed: Sequence[str] = ()) -> Outcome:
        """Run a command. A person types these lines at its prompts, then ends the input."""
        stream = TerminalStream if interactive else io.StringIO
        out, err = stream(), stream()
        lines = iter(typed)
        session = Session(
            terminal=Terminal(out=out, err=err),
            connect=self.connected,
            read_line=lambda _: next(lines, None),
            read_secret=(lambda _: next(lines, "")) if typed else read_secret,
        )
        exit_code = invoke(arguments, session)
        return Outcome(exit_code=exit_code, out=out.getvalue(), err=err.getvalue())

    @asynccontextmanager
    async def connected(self, *, worker: bool = False, creates: bool = False) -> AsyncIterator[ServiceApi]:
        """A client of this service."""
        self.workers_asked_for.append(worker)
        self.creating.append(creates)
        async with aclosing(self.client()) as client:
            yield client

    def client(self) -> ServiceClient:
        """A client that the caller closes."""
        transport = httpx.MockTransport(self._handle)
        return ServiceClient(address="http://service.test", api_key="dgm_test", transport=transport)

    def sent(self, method: str, path: str) -> list[JsonValue]:
        """The bodies of the requests to that path."""
        return [
            json.loads(request.content) if request.content else None
            for request in self.requests
            if (request.method, request.url.path) == (method, path)
        ]

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answers = self.answers.get((request.method, request.url.path))
        if not answers:
            return problem(404, "not_found", f"There is nothing at {request.url.path}.")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, httpx.Response):
            return answer
        return answer(request) if callable(answer) else httpx.Response(200, json=answer)


def problem(status: int, code: str, detail: str, **errors: str) -> httpx.Response:
    """A problem document; `errors` are messages by path."""
    document: dict[str, object] = {
        "type": f"urn:dragoman:problem:{code}",
        "status": status,
        "detail": detail,
        "code": code,
    }
    if errors:
        document["errors"] = [{"path": path, "message": message} for path, message in errors.items()]
    return httpx.Response(status, json=document, headers={"Content-Type": "application/problem+json"})


def stream_of(*events: JsonObject, end: str | None = None) -> Callable[[httpx.Request], httpx.Response]:
    """An event stream of a run that begins after Last-Event-ID; `end` is the status it closes with,
    if it does."""

    def answer(request: httpx.Request) -> httpx.Response:
        after = int(request.headers.get("last-event-id", "0"))
        frames = [
            f"id: {event['seq']}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
            for event in events
            if isinstance(event["seq"], int) and event["seq"] > after
        ]
        if end is not None:
            frames.append(f'event: end\ndata: {{"status": "{end}"}}\n\n')
        return httpx.Response(200, text="".join(frames), headers={"Content-Type": "text/event-stream"})

    return answer


def event(seq: int, kind: str, **fields: JsonValue) -> JsonObject:
    """An event of a run."""
    return {"seq": seq, "type": kind, "run_id": "run_1", "at": "2026-01-01T12:00:00.000000Z", **fields}


def run_document(status: str = "completed", **changes: JsonValue) -> JsonObject:
    """A run as the service shows it."""
    run: JsonObject = {
        "id": "run_1",
        "thread_id": "thr_1",
        "agent_id": "agt_1",
        "agent_version": 1,
        "status": status,
        "model": "scripted:t.yaml",
        "input": [{"type": "text", "text": "hi"}],
        "output": None,
        "error": None,
        "output_json": None,
        "incomplete_reason": None,
        "pending": [],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "cached_tokens": 0,
            "reasoning_tokens": 0,
            "cost_usd": 0.0,
            "turns": 1,
            "tool_calls": 0,
            "estimated": False,
        },
        "attempt": 1,
        "created_at": "2026-01-01T12:00:00.000000Z",
        "started_at": "2026-01-01T12:00:00.000000Z",
        "finished_at": "2026-01-01T12:00:02.500000Z",
        "metadata": {},
    }
    return whole(RunView, run | changes)


def whole(view: type, given: Mapping[str, JsonValue]) -> JsonObject:
    """An answer with every field of its view: what is not given is null, else empty, or the first
    value of an enumeration."""
    types = get_type_hints(view)
    required: frozenset[str] = getattr(view, "__required_keys__", frozenset())
    missing = {name: _empty(types[name]) for name in types if name in required and name not in given}
    return {**{name: _whole_value(types.get(name), value) for name, value in given.items()}, **missing}


def _whole_value(kind: object, value: JsonValue) -> JsonValue:
    for choice in get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,):
        if is_typeddict(choice) and isinstance(choice, type) and isinstance(value, dict):
            return whole(choice, value)
        if get_origin(choice) is list and isinstance(value, list):
            return [_whole_value(get_args(choice)[0], entry) for entry in value]
    return value


def _empty(kind: object) -> JsonValue:
    if is_typeddict(kind) and isinstance(kind, type):
        return whole(kind, {})
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return next(iter(kind)).value
    if get_origin(kind) is Literal:
        return cast(JsonValue, get_args(kind)[0])
    empty: dict[object, JsonValue] = {str: "", int: 0, float: 0, bool: False, list: [], dict: {}, Mapping: {}}
    return empty.get(get_origin(kind) or kind)


def agent_document(**changes: JsonValue) -> JsonObject:
    """An agent as the service shows it."""
    agent: JsonObject = {
        "id": "agt_1",
        "name": "guide",
        "model": "scripted:t.yaml",
        "fallback_models": [],
        "instructions": "Be brief.",
        "tools": ["code_execution"],
        "mcp_servers": ["time"],
        "tool_allowlist": None,
        "limits": {"max_turns": 5, "timeout_s": None},
        "enabled": True,
        "version": 3,
        "created_at": "2026-01-01T12:00:00.000000Z",
        "updated_at": "2026-01-02T12:00:00.000000Z",
    }
    return whole(SavedAgentView, agent | changes)


def message_document(role: str, *content: JsonValue) -> JsonObject:
    """A message as the service shows it."""
    return {
        "id": "msg_1",
        "role": role,
        "content": [*content],
        "created_at": "2026-01-01T12:00:00.000000Z",
        "run_id": "run_1",
    }
