"""Port that passes requests of a server to the caller."""

from collections.abc import Mapping
from typing import Protocol

from domain.json_value import JsonObject
from domain.mcp.client_request import ClientAnswer, ClientRequest


class CallerRelay(Protocol):
    """The caller of a tool, reachable during the call. Waiting for the caller does not count
    towards the call's timeout."""

    @property
    def caller(self) -> str:
        """Identifies the client that is asked: calls with the same value have the same one."""
        ...

    @property
    def capabilities(self) -> JsonObject:
        """The requests that the caller supports and permits, as protocol capabilities."""
        ...

    def lacks(self, required: JsonObject) -> JsonObject:
        """The part of `required` that the caller lacks."""
        ...

    async def ask(self, requests: tuple[ClientRequest, ...]) -> Mapping[str, ClientAnswer]:
        """The answer to each of the server's requests, by their keys. Cancelling withdraws the
        requests."""
        ...
