"""A remote A2A 1.0 agent over HTTP: its card, and operations over the binding that the card
prefers."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any
from urllib.parse import quote

from application.system.event_stream import StreamEvent
from infrastructure.mcp.faults import NOT_JSON_RPC, TransportFailedError
from infrastructure.mcp.pace import Pace
from infrastructure.mcp.transports.remote import Endpoint, content_type_of, status_fault

CARD_PATH = "/.well-known/agent-card.json"
_VERSION = {"a2a-version": "1.0", "accept": "application/json, application/a2a+json"}
_PASSING_STATUSES = frozenset({429, 502, 503, 504})
_BINDINGS = ("JSONRPC", "HTTP+JSON")
_REST = {
    "SendMessage": ("POST", "/message:send"),
    "GetTask": ("GET", "/tasks/{id}"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("GET", "/tasks/{id}:subscribe"),
}

Json = Mapping[str, Any]
IsTrusted = Callable[[dict[str, Any]], bool]


class A2aRefused(Exception):
    """The agent refused an operation; the message is the agent's."""


class A2aAgent:
    """Rules:
    - The card is at the agent's URL. An interface that the card names must be of the same origin: a
      card leads no credentials elsewhere.
    - A card that `is_trusted` refuses is not used.
    - The first interface of version 1.0 is used whose binding is JSON-RPC or HTTP.
    """

    def __init__(self, endpoint: Endpoint, url: str, is_trusted: IsTrusted | None = None) -> None:
        self._endpoint = endpoint
        self._url = url.rstrip("/").removesuffix(CARD_PATH)
        self._is_trusted = is_trusted
        self._interface: tuple[str, str] | None = None
        self.has_streams = False

    async def card(self) -> Json:
        """The card as it is now. Raises TransportFailedError, A2aRefused."""
        card = await self._exchange("GET", self._url + CARD_PATH, None)
        if self._is_trusted is not None and not await asyncio.to_thread(self._is_trusted, dict(card)):
            raise A2aRefused("The agent's card is not signed by a key that this service trusts.")
        self._interface = _interface(card)
        capabilities = card.get("capabilities")
        self.has_streams = isinstance(capabilities, dict) and capabilities.get("streaming") is True
        return card

    async def call(self, method: str, params: Json) -> Json:
        """The result of an operation. A read that is refused for now is a fault, whatever the
        answer says. Raises TransportFailedError, A2aRefused."""
        answer = await self._exchange(*await self._request(method, params), is_read=method == "GetTask")
        return self._result(answer)

    async def updates(self, task_id: str, pace: Pace) -> AsyncGenerator[Json]:
        """The updates of a task (`SubscribeToTask`) until the agent ends the stream. Raises
        TransportFailedError, A2aRefused."""
        verb, url, body = await self._request("SubscribeToTask", {"id": task_id})
        sent = {**_sent(body), "accept": "text/event-stream"}
        async with self._at(url).request(verb, sent, _encoded(body)) as response:
            fault = status_fault(response)
            if fault is not None or content_type_of(response) != "text/event-stream":
                raise TransportFailedError(fault or NOT_JSON_RPC)
            async for event in self._endpoint.read_events(response, pace):
                if isinstance(event, StreamEvent) and event.type == "message":
                    yield self._result(_object(event.data))

    async def _request(self, method: str, params: Json) -> tuple[str, str, Json | None]:
        """Verb, address and body of an operation."""
        if self._interface is None:
            await self.card()
        assert self._interface is not None
        binding, url = self._interface
        if binding == "JSONRPC":
            return "POST", url, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        verb, path = _REST[method]
        path = path.replace("{id}", quote(str(params.get("id", "")), safe=""))
        body = {name: value for name, value in params.items() if name != "id"}
        return verb, url.rstrip("/") + path, body if verb == "POST" else None

    def _result(self, answer: Json) -> Json:
        assert self._interface is not None
        if self._interface[0] == "JSONRPC":
            return _told(answer.get("result"), answer)
        return _told(None if "error" in answer else answer, answer)

    def _at(self, url: str) -> Endpoint:
        try:
            return self._endpoint.at(url)
        except ValueError as exc:
            raise A2aRefused("The agent's card has an invalid address.") from exc

    async def _exchange(self, verb: str, url: str, body: Json | None, *, is_read: bool = False) -> Json:
        """The JSON object of an answer; an error status without one is a fault."""
        async with self._at(url).request(verb, _sent(body), _encoded(body)) as response:
            fault = status_fault(response)
            if fault is not None and (fault.needs_auth or (is_read and response.status in _PASSING_STATUSES)):
                raise TransportFailedError(fault)
            text = await self._endpoint.read_body(response)
            if fault is None:
                return _object(text)
            answer = _parsed(text)
            if not (isinstance(answer, dict) and isinstance(answer.get("error"), dict)):
                raise TransportFailedError(fault)
            return answer


def _sent(body: Json | None) -> dict[str, str]:
    return _VERSION if body is None else {**_VERSION, "content-type": "application/json"}


def _encoded(body: Json | None) -> bytes | None:
    return None if body is None else json.dumps(body).encode()


def _parsed(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _object(text: bytes) -> Json:
    """Raises TransportFailedError for what is no JSON object."""
    answer = _parsed(text)
    if not isinstance(answer, dict):
        raise TransportFailedError(NOT_JSON_RPC)
    return answer


def _interface(card: Json) -> tuple[str, str]:
    found = card.get("supportedInterfaces")
    for each in found if isinstance(found, list) else ():
        if not isinstance(each, dict) or not isinstance(each.get("url"), str):
            continue
        is_ours = str(each.get("protocolVersion", "")).startswith("1.") and each.get("protocolBinding") in _BINDINGS
        if is_ours:
            return str(each["protocolBinding"]), str(each["url"])
    raise A2aRefused("The agent's card has no interface of A2A 1.0 over JSON-RPC or HTTP.")


def _told(result: object, answer: Json) -> Json:
    if isinstance(result, dict):
        return result
    error = answer.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    raise A2aRefused(str(message) if message else "The agent answered without a result.")
