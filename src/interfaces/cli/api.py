"""The service as commands see it: JSON under `/v1`, and the event stream of a run."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.failures import BadUsage, UnexpectedAnswer

Query = Mapping[str, str | int]
PAGE_SIZE = 200
IN_PROCESS = "http://in-process"
"""The address of a service that was opened for one command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """One event of a stream; `id` is None for `end`, which is not stored."""

    id: str | None
    type: str
    data: str


class ServiceApi(Protocol):
    """Paths begin with `/v1`. Every method raises ApiProblem, ServiceUnreachable, ConnectionLost or
    UnexpectedAnswer."""

    @property
    def address(self) -> str:
        """The service's address, for people."""

    async def get(self, path: str, query: Query | None = None) -> JsonObject: ...

    async def post(
        self, path: str, body: JsonObject | None = None, *, headers: Mapping[str, str] | None = None
    ) -> JsonObject: ...

    async def upload(self, path: str, content: bytes, query: Query) -> JsonObject: ...

    async def patch(self, path: str, body: JsonObject, *, headers: Mapping[str, str] | None = None) -> JsonObject: ...

    async def delete(self, path: str) -> JsonObject:
        """Empty for most resources."""

    def events(self, path: str, *, after: str | None = None) -> AsyncGenerator[ServerEvent, None]:
        """Follow an event stream after the event `after`, until the service ends it."""

    def lines(self, path: str, query: Query | None = None) -> AsyncGenerator[str, None]:
        """Read a long text line by line, without line ends."""


def path_to(*segments: str) -> str:
    """`/v1/…` with each segment quoted, so that user input stays one segment."""
    for segment in segments:
        if segment in {"", ".", ".."}:
            raise BadUsage(f"{segment!r} is neither an id nor a name.")
    return "/".join(["/v1", *(quote(segment, safe="") for segment in segments)])


async def listed(api: ServiceApi, path: str, query: Query | None = None, *, limit: int | None = None) -> JsonObject:
    """Entries of a paged list as one page: all, or the first `limit`. `next_cursor` tells
    whether there are more."""
    entries: list[JsonValue] = []
    cursor: str | None = None
    while True:
        wanted = PAGE_SIZE if limit is None else min(PAGE_SIZE, limit - len(entries))
        position: Query = {"cursor": cursor} if cursor else {}
        page = await api.get(path, {**(query or {}), "limit": wanted, **position})
        data, following = page.get("data"), page.get("next_cursor")
        if not isinstance(data, list) or not isinstance(following, str | None):
            raise UnexpectedAnswer(f"{path} is not a list")
        entries += data
        cursor = following
        if not cursor or (limit is not None and len(entries) >= limit):
            return {"data": entries, "next_cursor": cursor}
