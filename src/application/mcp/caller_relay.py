"""The port by which a server's questions reach whoever made the call."""

from collections.abc import Mapping
from typing import Protocol

from domain.json_value import JsonObject
from domain.mcp.client_request import ClientAnswer, ClientRequest


class CallerRelay(Protocol):
    """Whoever made a call, who can be asked in the middle of it. Time spent on asking does not count as the call's."""

    @property
    def capabilities(self) -> JsonObject:
        """What it can be asked for, as the protocol has it, and may be."""
        ...

    def lacks(self, required: JsonObject) -> JsonObject:
        """Of capabilities that a server needs, those that it has not, and could use."""
        ...

    async def ask(self, requests: tuple[ClientRequest, ...]) -> Mapping[str, ClientAnswer]:
        """The answers to what a server asks together, by the requests' keys; each request has one. Cancelling takes the
        questions back."""
        ...
