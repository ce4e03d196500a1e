"""Requests of one path as they mostly are, a small POST answered in one piece, with less around them than uvicorn has for any.

What is not of that kind (other paths and methods, pipelining, large bodies, streams) takes uvicorn's way, at any point.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple, cast

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from interfaces.joined_writes import JoiningHttpProtocol
from interfaces.known_headers import KnownHeaders

Message = MutableMapping[str, Any]
"""An ASGI message, as uvicorn has them."""

_JSON_PATH = b"/mcp"
_NOTHING = b""
_BLANK_LINE = b"\r\n\r\n"


class WholeRequest(RequestResponseCycle):
    """A request that is begun once its body is there, and whose answer leaves in one write."""

    access_log = False
    disconnected = False
    waiting_for_100_continue = False
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding: bool | None = None
    expected_content_length = 0
    is_begun = False
    _held: bytes | None = None

    def __init__(self, protocol: "WholeRequestProtocol", *, keep_alive: bool) -> None:
        # uvicorn's own is not called: the attributes are the same, those that begin alike stand above.
        self._protocol = protocol
        self.scope = protocol.scope
        self.transport = protocol.transport
        self.flow = protocol.flow
        self.logger = protocol.logger
        self.access_logger = protocol.access_logger
        self.default_headers = protocol.server_state.default_headers
        self.message_event = asyncio.Event()
        self.on_response = protocol.on_response_complete
        self.keep_alive = keep_alive
        self.body = bytearray()

    async def receive(self) -> Any:
        """The body, as it came; then as uvicorn has it."""
        if self.more_body or self.disconnected or not self.body:
            return await super().receive()
        body, self.body = bytes(self.body), bytearray()
        self.message_event.clear()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Any) -> None:
        """The head of an answer of known length waits for its body, which comes in the same step; all else is sent as uvicorn
        does."""
        if self._held is not None:
            held, self._held = self._held, None
            if self._sent_whole(held, message):
                return
            self.transport.write(held)
        elif not self.response_started and self._is_held(message):
            return
        await super().send(message)

    def _is_held(self, message: Mapping[str, Any]) -> bool:
        if message["type"] != "http.response.start" or not self.keep_alive or self.disconnected:
            return False
        status, headers = message["status"], list(message["headers"])
        last, length = headers.pop() if headers else (_NOTHING, _NOTHING)
        if last != b"content-length" or not length.isdigit():
            return False
        made = self._protocol.made_head
        if (
            made is None
            or made.status != status
            or made.defaults is not self.default_headers
            or made.headers != headers
        ):
            made = self._made_head(status, headers)
            if made is None:
                return False
            self._protocol.made_head = made
        self._held = b"%bcontent-length: %b\r\n\r\n" % (made.head, length)
        self.response_started, self.chunked_encoding, self.expected_content_length = True, False, int(length)
        return True

    def _made_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> "_MadeHead | None":
        """None for one that uvicorn is to look at."""
        parts = [STATUS_LINE[status]]
        for name, value in (*self.default_headers, *headers):
            if b"\n" in value or b"\r" in value or name in (b"connection", b"content-length"):
                return None
            parts += (name, b": ", value, b"\r\n")
        return _MadeHead(status, self.default_headers, headers, b"".join(parts))

    def _sent_whole(self, held: bytes, message: Mapping[str, Any]) -> bool:
        body = message.get("body", _NOTHING)
        if message.get("more_body", False) or len(body) != self.expected_content_length or self.flow.write_paused:
            return False
        if not self.disconnected:
            self.transport.write(held + body)
        self.expected_content_length = 0
        self.response_complete = True
        self.message_event.set()
        self.on_response()
        return True


class _MadeHead(NamedTuple):
    """The head of an answer up to its length, and what it was made of. uvicorn's own headers are another list each second."""

    status: int
    defaults: list[tuple[bytes, bytes]]
    headers: list[tuple[bytes, bytes]]
    head: bytes


class _SeenHead(NamedTuple):
    """The head of a request that was taken whole, byte for byte, how long the body after it is, and what was made of it (ASGI)."""

    head: bytes
    size: int
    scope: dict[str, Any]


class WholeRequestProtocol(JoiningHttpProtocol):
    """uvicorn's protocol, but for such requests; and with one timer for connections that nobody uses instead of one after
    each request. What a connection's next request begins with is mostly what the last one began with: then it is not parsed
    again; nor is the head of its answer written anew within a second, but for the length."""

    made_head: _MadeHead | None = None
    _idle_since: float | None = None
    _known = KnownHeaders()
    _seen: _SeenHead | None = None
    _messages = 0
    """How many messages the parser has begun."""
    _is_between = True
    """Whether it has ended the last one of them."""

    def data_received(self, data: bytes) -> None:
        """Something came. Whatever is not exactly one request like the last one is for the parser, which has then seen all of the
        requests before, or nothing of them."""
        seen = self._seen
        if (
            seen is not None
            and len(data) == len(seen.head) + seen.size
            and self._takes_more
            and data.startswith(seen.head)
        ):
            self._idle_since = None
            self._take_again(seen, data)
            return
        messages, is_alone = self._messages, self._takes_more
        super().data_received(data)
        if is_alone and self._messages == messages + 1 and self._is_between:
            self._seen = self._head_of(data)

    @property
    def _takes_more(self) -> bool:
        """Whether the next bytes are a request's first, and nothing is to be answered before it."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return self._is_between and (cycle is None or (cycle.response_complete and cycle.keep_alive))

    def _head_of(self, data: bytes) -> _SeenHead | None:
        """The head in what was one request and nothing else, its body as it is on the wire; None for any other."""
        cycle = self.cycle
        if not isinstance(cycle, WholeRequest) or not cycle.keep_alive or len(cycle.body) > HIGH_WATER_LIMIT:
            return None
        end = data.find(_BLANK_LINE) + len(_BLANK_LINE)
        if end != len(data) - len(cycle.body):
            return None
        return _SeenHead(data[:end], len(cycle.body), dict(cast("dict[str, Any]", self.scope)))

    def _take_again(self, seen: _SeenHead, data: bytes) -> None:
        self.scope = cast("Any", {**seen.scope, "state": self.app_state.copy()})
        self.cycle = cycle = WholeRequest(self, keep_alive=True)
        cycle.body += data[len(seen.head) :]
        cycle.more_body = False
        cycle.message_event.set()
        self._begin(cycle)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._messages += 1
        self._is_between = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Whose request it is."""
        parser, earlier = self.parser, cast("RequestResponseCycle | None", self.cycle)
        if (
            self.url != _JSON_PATH
            or (earlier is not None and not earlier.response_complete)
            or self.expect_100_continue
            or self.limit_concurrency is not None
            or parser.get_method() != b"POST"
            or parser.get_http_version() != "1.1"
            or parser.should_upgrade()
        ):
            super().on_headers_complete()
            return
        if self.headers != self._known:
            self._known = KnownHeaders(self.headers)
        scope = cast("dict[str, Any]", self.scope)
        scope["method"], scope["query_string"], scope["headers"] = "POST", b"", self._known
        scope["path"], scope["raw_path"] = f"{self.root_path}/mcp", self.root_path.encode("ascii") + _JSON_PATH
        self.cycle = WholeRequest(self, keep_alive=parser.should_keep_alive())

    def on_body(self, body: bytes) -> None:
        """A part of a body; a large one is not waited for."""
        super().on_body(body)
        cycle = self.cycle
        if isinstance(cycle, WholeRequest) and not cycle.is_begun and len(cycle.body) > HIGH_WATER_LIMIT:
            self._begin(cycle)

    def on_message_complete(self) -> None:
        """All of a request is there."""
        self._is_between = True
        super().on_message_complete()
        cycle = self.cycle
        if isinstance(cycle, WholeRequest) and not cycle.is_begun:
            self._begin(cycle)

    def _begin(self, cycle: WholeRequest) -> None:
        cycle.is_begun = True
        self._start_asgi_task(cycle, cast("Callable[..., Awaitable[None]]", self.app))

    # --- connections that nobody uses ---

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def on_response_complete(self) -> None:
        """An answer was sent."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        if self.timeout_keep_alive_task is None:
            super().on_response_complete()
        else:
            self.server_state.total_requests += 1
            self.flow.resume_reading()
        self._idle_since = self.loop.time()

    def _unset_keepalive_if_required(self) -> None:
        """Something was received: the timer goes on, and finds that out."""
        self._idle_since = None

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that nobody has used for so long, else look again when it could be."""
        self.timeout_keep_alive_task = None
        if self._idle_since is None:
            return  # at work: the answer will set it again
        left_s = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left_s, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()
