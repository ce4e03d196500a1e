"""A provider that is as strict as the vendors: HTTP on a port, over a family that knows one API and
its refusals."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from aiohttp import web

from domain.json_value import JsonObject

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the model says next. `reasoning` is a summary that it shows. `hangs_after` stops the
    stream after so many events, until the client is gone; a `silent` one has not even a head."""

    text: str = ""
    calls: tuple[tuple[str, JsonObject], ...] = ()
    reasoning: str = ""
    hangs_after: int | None = None
    silent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer with another status than 200, in the vendor's words."""

    status: int
    body: Json | list[Json]
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def code(self) -> str | None:
        """The vendor's code of the error."""
        body = self.body if isinstance(self.body, dict) else self.body[0]
        return str(body["error"].get("code")) if "error" in body else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The same reply whole, and as the data of server-sent events."""

    whole: Json
    events: tuple[Json, ...]
    named: bool = False
    """Whether each event is named after its type."""
    end: bytes = b""
    encode: Callable[[Json], bytes] | None = None
    """How an event is sent that is not a server-sent one."""


class PromptCache:
    """A provider's cache of prompts. Four bytes are a token; parts are cached in steps of 128."""

    def __init__(self) -> None:
        self._prompts: list[str] = []

    def count(self, *parts: Any) -> tuple[int, int]:
        """Tokens of a prompt, and how many of them begin an earlier one too."""
        prompt = json.dumps(parts)
        shared = max((_shared(prompt, earlier) for earlier in self._prompts), default=0)
        self._prompts.append(prompt)
        return len(prompt) // 4, shared // 4 // 128 * 128


def _shared(one: str, other: str) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def pieces(text: str, size: int = 8) -> Iterator[str]:
    """A text as it is streamed."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


def is_closed(schema: Any) -> bool:
    """Whether all objects of a JSON Schema have no other properties than their own."""
    if isinstance(schema, list):
        return all(map(is_closed, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return False
    return all(map(is_closed, schema.values()))


class Family(Protocol):
    """One API of one vendor. It remembers what it said, and refuses a request that does not fit
    it."""

    @property
    def paths(self) -> tuple[str, ...]: ...

    def refusal(self, path: str, body: Json, key: str) -> Refusal | None: ...

    def answer(self, body: Json, said: Said, key: str) -> Answer: ...


@runtime_checkable
class Signed(Protocol):
    """A family whose requests are signed instead of having a key."""

    def key_of(self, request: web.Request, raw: bytes) -> str: ...


class StrictProvider:
    """Answers requests with what the test has it `say`, in turn, unless the family refuses.
    `prefix` is the path of its base URL, `key_header` the only header of keys."""

    def __init__(self, family: Family, *, prefix: str = "/v1", key_header: str | None = None) -> None:
        self.family = family
        self._prefix = prefix
        self._key_header = key_header
        self.url = ""
        self.streams = True
        """False: it answers whole though a stream is requested."""
        self.bodies: list[Json] = []
        """Of all requests, those refused too."""
        self.answers: list[Json] = []
        """What it said, each whole."""
        self.keys: list[str] = []
        self.refused: list[Refusal] = []
        self.cut_off = asyncio.Event()
        """A client went away from a stream that hangs."""
        self.hanging = asyncio.Event()
        """An answer hangs."""
        self._said: deque[Said] = deque()
        self._next_refusals: deque[Refusal] = deque()

    def say(self, *said: Said) -> None:
        self._said.extend(said)

    def refuse(self, *refusals: Refusal) -> None:
        """Answer the next requests so, whatever they are."""
        self._next_refusals.extend(refusals)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["StrictProvider"]:
        """The provider on a port of this machine; `url` is its base URL, with `/v1`."""
        prefix = self._prefix
        app = web.Application(client_max_size=64 * 1024 * 1024)
        for path in self.family.paths:
            app.router.add_post(f"{prefix}{path}", self._answered(path))
        app.router.add_get(f"{prefix}/models", self._models)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            self.url = f"http://{host}:{port}{prefix}"
            yield self
        finally:
            await runner.cleanup()

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "gpt-test", "object": "model"}]})

    def _answered(self, path: str) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            raw = await request.read()
            body: Json = json.loads(raw)
            key = self._key_of(request, raw)
            self.bodies.append(body)
            self.keys.append(key)
            refusal = self._next_refusals.popleft() if self._next_refusals else None
            refusal = refusal or self.family.refusal(path, body, key)
            if refusal is not None:
                self.refused.append(refusal)
                return web.json_response(refusal.body, status=refusal.status, headers=refusal.headers)
            said = self._said.popleft()
            if said.silent:
                await self._hang()
            answer = self.family.answer(body, said, key)
            self.answers.append(answer.whole)
            if not self.streams:
                return web.json_response(answer.whole)
            return await self._streamed(request, answer, said)

        return handle

    def _key_of(self, request: web.Request, raw: bytes) -> str:
        """With a `key_header`, that of another header is none."""
        if isinstance(self.family, Signed):
            return self.family.key_of(request, raw)
        key_header = self._key_header or getattr(self.family, "key_header", None)
        if key_header is not None:
            return request.headers.get(key_header, "")
        return request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key", "")

    async def _streamed(self, request: web.Request, answer: Answer, said: Said) -> web.StreamResponse:
        kind = "text/event-stream" if answer.encode is None else "application/vnd.amazon.eventstream"
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(request)
        for data in _events(answer, said.hangs_after):
            await response.write(data)
        if said.hangs_after is not None:
            await self._hang()
        return response

    async def _hang(self) -> None:
        self.hanging.set()
        try:
            await asyncio.Event().wait()  # cancelled when the client closes the connection
        finally:
            self.cut_off.set()


def _events(answer: Answer, limit: int | None) -> Iterable[bytes]:
    for event in answer.events if limit is None else answer.events[:limit]:
        if answer.encode is not None:
            yield answer.encode(event)
            continue
        name = f"event: {event['type']}\n".encode() if answer.named else b""
        yield name + b"data: " + json.dumps(event).encode() + b"\n\n"
    if limit is None:
        yield answer.end
