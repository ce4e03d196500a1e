"""Reads the catalogs for runs. Servers listed before are not contacted. Above: the toolset builder.
Below: stored catalogs and the catalog updater."""

import asyncio
import logging
from dataclasses import dataclass

from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.ports import ConnectionScope, McpCatalogStore, McpFailure, McpFailureKind
from application.system.ports import Clock
from domain.ids import McpServerId
from domain.mcp.backoff import Backoff
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer

logger = logging.getLogger(__name__)

DEFAULT_DEADLINE_S = 30.0
_PAUSES = Backoff(first_s=15.0, longest_s=300.0)
_CLOSED = McpFailure(McpFailureKind.NOT_CONNECTED, "Connections are being closed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unlisted:
    """A version of a server whose last `attempts` listings failed."""

    version: int
    failure: McpFailure
    attempts: int
    not_before: float


class CatalogReader:
    """Rules:
    - A server never listed in its current version is listed when a run needs it, once for all
      waiting runs, within `deadline_s`.
    - After a failure no run waits: the server is listed again in the background, with pauses that
      double from 15 s to 5 min.
    - Until then runs have the catalog of the previous version, if there is one.
    """

    def __init__(
        self,
        *,
        catalogs: McpCatalogStore,
        catalog_updater: CatalogUpdater,
        clock: Clock,
        deadline_s: float = DEFAULT_DEADLINE_S,
    ) -> None:
        self._catalogs = catalogs
        self._catalog_updater = catalog_updater
        self._clock = clock
        self._deadline_s = deadline_s
        self._listings: dict[tuple[McpServerId, int], asyncio.Task[McpCatalog | McpFailure]] = {}
        self._unlisted: dict[McpServerId, _Unlisted] = {}

    async def of(self, server: McpServer, scope: ConnectionScope) -> McpCatalog:
        """The catalog for `scope`. Raises McpFailure if there is none."""
        stored = await self._catalogs.load(server.organization_id, server.id)
        if stored is not None and stored.server_version == server.version:
            return stored
        known = self._unlisted.get(server.id)
        outcome: McpCatalog | McpFailure
        if known is not None and known.version == server.version:
            if self._clock.monotonic() >= known.not_before:
                _ = self._listing(
                    server, ConnectionScope(organization_id=scope.organization_id, person_id=scope.person_id)
                )
            outcome = known.failure
        else:
            listing = self._listing(server, scope)
            await asyncio.wait([listing])  # cancelling one waiter does not end the listing for others
            outcome = _CLOSED if listing.cancelled() else listing.result()
        if isinstance(outcome, McpCatalog):
            return outcome
        if stored is not None:
            return stored
        raise McpFailure(
            outcome.kind,
            outcome.detail,
            rpc_code=outcome.rpc_code,
            stderr=outcome.stderr,
            for_model=outcome.for_model,
        )

    async def stored(self, server: McpServer) -> McpCatalog:
        """The last stored catalog, of any version, without contacting the server. Raises McpFailure
        if there is none."""
        stored = await self._catalogs.load(server.organization_id, server.id)
        if stored is None:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, "The tools of the MCP server have not been listed yet.")
        return stored

    async def close(self) -> None:
        """Cancel the listings in progress."""
        listings = list(self._listings.values())
        for listing in listings:
            listing.cancel()
        await asyncio.gather(*listings, return_exceptions=True)

    def _listing(self, server: McpServer, scope: ConnectionScope) -> "asyncio.Task[McpCatalog | McpFailure]":
        key = (server.id, server.version)
        listing = self._listings.get(key)
        if listing is None or listing.done():
            listing = self._listings[key] = asyncio.create_task(self._list(server, scope), name="mcp-listing")
            listing.add_done_callback(lambda done: self._over(key, done))
        return listing

    def _over(self, key: tuple[McpServerId, int], listing: "asyncio.Task[McpCatalog | McpFailure]") -> None:
        if self._listings.get(key) is listing:
            del self._listings[key]

    async def _list(self, server: McpServer, scope: ConnectionScope) -> McpCatalog | McpFailure:
        try:
            catalog = await self._catalog_updater.relist(server, scope, timeout_s=self._deadline_s)
        except McpFailure as failure:
            self._failed(server, failure)
            return failure
        except Exception:
            logger.exception(
                "MCP discovery failed unexpectedly", extra={"server_id": server.id, "run_id": scope.run_id}
            )
            unexpected = McpFailure(McpFailureKind.NOT_CONNECTED, "The tools of the MCP server could not be listed.")
            self._failed(server, unexpected)
            return unexpected
        self._unlisted.pop(server.id, None)
        return catalog

    def _failed(self, server: McpServer, failure: McpFailure) -> None:
        known = self._unlisted.get(server.id)
        attempts = known.attempts if known is not None and known.version == server.version else 0
        self._unlisted[server.id] = _Unlisted(
            version=server.version,
            failure=failure,
            attempts=attempts + 1,
            not_before=self._clock.monotonic() + _PAUSES.bound_s(attempts),
        )
