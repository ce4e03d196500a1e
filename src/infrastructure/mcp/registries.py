"""HTTP reads of MCP registries (API v0.1), under the egress guard, bounded and cached. Below:
`transports/remote.py`."""

import asyncio
import json
from collections.abc import Mapping
from typing import cast
from urllib.parse import quote, urlencode

from application.mcp.registries import LATEST, REGISTRY_UNAVAILABLE
from application.system.lru import LruCache
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.json_value import JsonObject
from infrastructure.mcp.faults import TransportFailedError
from infrastructure.mcp.transports.remote import Endpoint, RemoteClient

TIMEOUT_S = 15.0
MAX_BYTES = 4 * 1024 * 1024
KEPT_S = 300.0
"""Age up to which an answer is used again."""
_KEPT_BYTES = 16 * 1024 * 1024
_NOT_FOUND = 404


class HttpMcpRegistries:
    """`urls` are the addresses before `/v0.1`, by the registries' names. Answers are cached by
    their addresses."""

    def __init__(self, *, urls: Mapping[str, str], remote: RemoteClient, clock: Clock) -> None:
        self._urls = urls
        self._remote = remote
        self._clock = clock
        self._kept: LruCache[str, tuple[float, bytes | None]] = LruCache(
            _KEPT_BYTES, weight=lambda kept: len(kept[1] or b"") + 1
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._urls)

    async def search(self, registry: str, search: str, *, limit: int, cursor: str | None) -> JsonObject:
        asked = {"search": search, "version": LATEST, "limit": str(limit), "cursor": cursor or ""}
        query = urlencode({name: value for name, value in asked.items() if value})
        found = await self._read(registry, f"/v0.1/servers?{query}")
        if found is None:
            raise _unavailable(registry, "there is no registry at its address")
        return found

    async def version(self, registry: str, name: str, version: str) -> JsonObject | None:
        return await self._read(registry, f"/v0.1/servers/{quote(name, safe='')}/versions/{quote(version, safe='')}")

    async def close(self) -> None:
        await self._remote.close()

    async def _read(self, registry: str, path: str) -> JsonObject | None:
        url = self._urls[registry].rstrip("/") + path
        kept, now = self._kept.get(url), self._clock.monotonic()
        if kept is None or now - kept[0] >= KEPT_S:
            kept = (now, await self._fetch(registry, url))
            self._kept.put(url, kept)
        if kept[1] is None:
            return None
        try:
            document = json.loads(kept[1])
        except (ValueError, RecursionError) as exc:
            raise _unavailable(registry, "its answer is not JSON") from exc
        if not isinstance(document, dict):
            raise _unavailable(registry, "its answer is not a JSON object")
        return cast(JsonObject, document)

    async def _fetch(self, registry: str, url: str) -> bytes | None:
        """The body; None for what the registry lacks."""
        endpoint = Endpoint(self._remote, url, {}, MAX_BYTES)
        try:
            async with (
                asyncio.timeout(TIMEOUT_S),
                endpoint.request("GET", {"accept": "application/json"}) as response,
            ):
                if response.status == _NOT_FOUND:
                    return None
                if not response.ok:
                    raise _unavailable(registry, f"it answers with the status {response.status}")
                return await endpoint.read_body(response)
        except TimeoutError as exc:
            raise _unavailable(registry, "it does not answer in time") from exc
        except TransportFailedError as exc:
            raise _unavailable(registry, exc.fault.cause or exc.fault.detail) from exc


def _unavailable(registry: str, why: str) -> ServiceError:
    detail = f"The MCP registry {registry!r} cannot be read: {why.rstrip('.')}."
    return ServiceError(REGISTRY_UNAVAILABLE, ErrorKind.UNAVAILABLE, detail)
