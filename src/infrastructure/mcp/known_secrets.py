"""Secrets passed to each server, hidden from logs, traces, and the output and replies of the
server. Above: connections and transports."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from application.mcp.caller_relay import CallerRelay
from application.mcp.log_messages import LogTap, McpLogMessage
from application.mcp.ports import (
    ContentBlock,
    McpCall,
    McpFailure,
    McpInputRequired,
    McpProgress,
    McpReply,
    ProgressCallback,
)
from application.system.lru import LruCache
from domain.ids import McpServerId, UserId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.client_request import ClientAnswer, ClientRequest
from domain.mcp.server import McpServer
from infrastructure.secrets.redaction import Redactor

_CAPACITY = 50_000
_MAX_DEPTH = 64
_Key = tuple[McpServerId, UserId | None]


class KnownSecrets:
    """Secrets by server and the person it acts for: a server's replies must not reveal whether a
    text is another organization's or person's secret. Operators read logs of the processes of all
    people. `everywhere` hides secrets from logs and traces."""

    def __init__(self, everywhere: Redactor) -> None:
        self._everywhere = everywhere
        self._nothing = Redactor()
        self._of_server: LruCache[_Key, Redactor] = LruCache(_CAPACITY)
        self._of_all_people: LruCache[McpServerId, Redactor] = LruCache(_CAPACITY)

    def register(self, server: McpServer, *values: str) -> None:
        """Add secrets passed to the server."""
        if not values:
            return
        self._everywhere.register(*values)
        known = self._of_server.get(_key(server)) or Redactor()
        known.register(*values)
        self._of_server.put(_key(server), known)
        of_all = self._of_all_people.get(server.id) or Redactor()
        of_all.register(*values)
        self._of_all_people.put(server.id, of_all)

    def redact(self, server: McpServer, text: str) -> str:
        """The server's output for operators, without its secrets and secret-like texts."""
        return (self._of_all_people.get(server.id) or self._nothing).redact(text)

    def hide_in(self, server: McpServer, reply: McpReply) -> McpReply:
        """The server's reply for models, without its secrets."""
        known = self._of_server.get(_key(server))
        if known is None:
            return reply
        return replace(
            reply,
            content=tuple(_hidden_block(known, block) for block in reply.content),
            structured=_hidden_value(known, reply.structured),
            input_required=_hidden_asked(known, reply.input_required),
        )

    def hide_in_json(self, server: McpServer, value: JsonObject) -> JsonObject:
        """A value of the server, without its secrets."""
        known = self._of_server.get(_key(server))
        return value if known is None else cast(JsonObject, _hidden_value(known, value))

    def hide_in_failure(self, server: McpServer, failure: McpFailure) -> None:
        """Remove the server's secrets from the failure's texts."""
        known = self._of_server.get(_key(server))
        if known is not None:
            failure.detail = known.hide(failure.detail)

    @contextmanager
    def hidden_in_failures(self, server: McpServer) -> Iterator[None]:
        """Remove the server's secrets from failures that leave the block."""
        try:
            yield
        except McpFailure as failure:
            self.hide_in_failure(server, failure)
            raise

    def hiding(self, server: McpServer, on_progress: ProgressCallback | None) -> ProgressCallback | None:
        """The callback, called without the server's secrets."""
        known = self._of_server.get(_key(server))
        if known is None or on_progress is None:
            return on_progress

        async def told(progress: McpProgress) -> None:
            message = None if progress.message is None else known.hide(progress.message)
            await on_progress(replace(progress, message=message))

        return told

    def hiding_in(self, server: McpServer, call: McpCall) -> McpCall:
        """The call, with log messages and requests to its caller without the server's secrets."""
        known, tap = self._of_server.get(_key(server)), call.logs
        if known is not None and call.relay is not None:
            call = replace(call, relay=_HidingRelay(call.relay, known))
        if known is None or tap is None:
            return call

        async def told(message: McpLogMessage) -> None:
            name = None if message.logger is None else known.hide(message.logger)
            await tap.tell(replace(message, data=_hidden_value(known, message.data), logger=name))

        return replace(call, logs=LogTap(level=tap.level, tell=told))


class _HidingRelay:
    """Passes on the server's requests without its secrets."""

    def __init__(self, relay: CallerRelay, known: Redactor) -> None:
        self._relay = relay
        self._known = known

    @property
    def caller(self) -> str:
        return self._relay.caller

    @property
    def capabilities(self) -> JsonObject:
        return self._relay.capabilities

    def lacks(self, required: JsonObject) -> JsonObject:
        return self._relay.lacks(required)

    async def ask(self, requests: tuple[ClientRequest, ...]) -> Mapping[str, ClientAnswer]:
        return await self._relay.ask(tuple(_hidden_request(self._known, request) for request in requests))


def _key(server: McpServer) -> _Key:
    return server.id, server.person_id


def _hidden_request(known: Redactor, request: ClientRequest) -> ClientRequest:
    return replace(request, params=cast(JsonObject, _hidden_value(known, request.params)))


def _hidden_asked(known: Redactor, asked: McpInputRequired | None) -> McpInputRequired | None:
    if asked is None or not asked.requests:
        return asked
    return replace(asked, requests=tuple(_hidden_request(known, request) for request in asked.requests))


def _hidden_block(known: Redactor, block: ContentBlock) -> ContentBlock:
    text = known.hide(block.text)
    return block if text == block.text else replace(block, text=text)


def _hidden_value(known: Redactor, value: JsonValue, depth: int = 0) -> JsonValue:
    match value:
        case str():
            return known.hide(value)
        case dict() if depth < _MAX_DEPTH:
            return {known.hide(name): _hidden_value(known, inner, depth + 1) for name, inner in value.items()}
        case list() if depth < _MAX_DEPTH:
            return [_hidden_value(known, inner, depth + 1) for inner in value]
        case dict() | list():
            return None
        case _:
            return value
