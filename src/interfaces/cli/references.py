"""References as people type them, over the service's API: beginnings of ids, and names with a
typing error."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from difflib import get_close_matches
from urllib.parse import quote, unquote

from domain.json_value import JsonObject
from interfaces.cli.api import Query, ServerEvent, ServiceApi, listed, path_to
from interfaces.cli.failures import ApiProblem, BadUsage
from interfaces.cli.kinds import BY_CODE, Kind, kind_of

_SHORTEST, _WHOLE = 4, 26
"""Characters after the `_` of an id: of a beginning that is looked up, and of a complete id."""
_LOOKED_THROUGH = 2_000
"""The newest entries of a list in which a beginning is looked up."""
_SHOWN = 5


class References:
    """The API, with these rules for paths, queries and bodies:
    - The beginning of an id stands for the one id that begins so, among the newest of its kind.
    - A beginning of several ids is bad usage, which names them.
    - What there is not is reported with the nearest name, the kind that the id belongs to, and the
      command that lists all.
    """

    def __init__(self, api: ServiceApi) -> None:
        self._api = api

    @property
    def address(self) -> str:
        return self._api.address

    async def get(self, path: str, query: Query | None = None) -> JsonObject:
        try:
            return await self._api.get(await self._path(path), await self._query(query))
        except ApiProblem as problem:
            raise await self._explained(problem) from problem

    async def post(
        self, path: str, body: JsonObject | None = None, *, headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        try:
            return await self._api.post(await self._path(path), await self._body(body), headers=headers)
        except ApiProblem as problem:
            raise await self._explained(problem) from problem

    async def upload(self, path: str, content: bytes, query: Query) -> JsonObject:
        try:
            return await self._api.upload(await self._path(path), content, query)
        except ApiProblem as problem:
            raise await self._explained(problem) from problem

    async def patch(self, path: str, body: JsonObject, *, headers: Mapping[str, str] | None = None) -> JsonObject:
        try:
            return await self._api.patch(await self._path(path), body, headers=headers)
        except ApiProblem as problem:
            raise await self._explained(problem) from problem

    async def delete(self, path: str) -> JsonObject:
        try:
            return await self._api.delete(await self._path(path))
        except ApiProblem as problem:
            raise await self._explained(problem) from problem

    async def events(self, path: str, *, after: str | None = None) -> AsyncGenerator[ServerEvent, None]:
        try:
            async with aclosing(self._api.events(await self._path(path), after=after)) as events:
                async for event in events:
                    yield event
        except ApiProblem as problem:
            raise await self._explained(problem) from problem

    async def lines(self, path: str, query: Query | None = None) -> AsyncGenerator[str, None]:
        try:
            async with aclosing(self._api.lines(await self._path(path), await self._query(query))) as lines:
                async for line in lines:
                    yield line
        except ApiProblem as problem:
            raise await self._explained(problem) from problem

    async def _path(self, path: str) -> str:
        return "/".join([quote(await self._whole(unquote(segment)), safe="") for segment in path.split("/")])

    async def _query(self, query: Query | None) -> Query | None:
        if query is None:
            return None
        return {
            name: await self._whole(value) if isinstance(value, str) and name != "cursor" else value
            for name, value in query.items()
        }

    async def _body(self, body: JsonObject | None) -> JsonObject | None:
        if body is None:
            return None
        return {
            name: await self._whole(value) if isinstance(value, str) and name in _REFERRING else value
            for name, value in body.items()
        }

    async def _whole(self, reference: str) -> str:
        """The id that begins so; else the reference as it is, for the service to judge."""
        kind = kind_of(reference)
        if kind is None or not _SHORTEST <= len(reference.partition("_")[2]) < _WHOLE:
            return reference
        found = sorted({entry for entry in await self._values(kind, "id") if entry.startswith(reference)})
        if len(found) > 1 and reference not in found:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            raise BadUsage(
                f"{reference} is the beginning of {len(found)} ids: {', '.join(found[:_SHOWN])}{more}. Give more of it."
            )
        return found[0] if len(found) == 1 else reference

    async def _values(self, kind: Kind, field: str) -> list[str]:
        """This field of the newest entries; empty if they cannot be listed."""
        try:
            page = await listed(self._api, path_to(kind.path), limit=None if kind.name else _LOOKED_THROUGH)
        except ApiProblem:
            return []
        data = page["data"]
        entries = data if isinstance(data, list) else []
        values = [entry.get(field) for entry in entries if isinstance(entry, dict)]
        return [value for value in values if isinstance(value, str)]

    async def _explained(self, problem: ApiProblem) -> ApiProblem:
        """The problem, with what to do about it."""
        if problem.code == "mcp_server_slug_taken":
            slug = _quoted(problem.message)
            return problem.with_hint(f"`dragoman mcp update {slug} FIELD=VALUE` changes it.")
        kind = BY_CODE.get(problem.code)
        if problem.status != 404 or kind is None:
            return problem
        meant = _quoted(problem.message)
        other = kind_of(meant)
        if other is not None and other is not kind:
            command = other.shown_by or other.listed_by
            return problem.with_hint(f"It is the id of {other.one}: `dragoman {command} {meant}`.")
        hints = []
        if kind.name is not None:
            near = get_close_matches(meant, await self._values(kind, kind.name), n=1, cutoff=0.6)
            hints += [f"Did you mean {near[0]!r}?"] if near else []
        hints += [f"`dragoman {kind.listed_by}` shows all."] if kind.listed_by else []
        hints += [f"`dragoman {kind.listed_of}` lists them."] if kind.listed_of else []
        return problem.with_hint(" ".join(hints))


_REFERRING = frozenset({"agent", "agent_id", "run_id", "thread_id", "server", "workflow_run_id"})
"""Fields of bodies that refer to something; other texts may begin like an id."""


def _quoted(message: str) -> str:
    """The reference that the service's message names."""
    return message.partition("'")[2].partition("'")[0]
