"""Started servers that end by themselves over and over are left alone for a while: what is remembered of their ends."""

from collections.abc import Callable

from application.system.lru import LruCache
from domain.ids import McpServerId, OrganizationId
from domain.mcp.restarts import RestartLimit, Restarts
from infrastructure.mcp.connections.connection_key import ConnectionKey

_MAX_KEYS = 10_000


class Crashes:
    """Per connection key: what a server does to one run or thread keeps it from no other."""

    def __init__(self, limit: RestartLimit) -> None:
        self._limit = limit
        self._restarts: LruCache[ConnectionKey, Restarts] = LruCache(_MAX_KEYS)

    def crashed(self, key: ConnectionKey, *, lived_s: float, now: float) -> float:
        """A server ended by itself; how long it is left alone now."""
        before = self._restarts.get(key) or Restarts(limit=self._limit)
        after = before.crashed(lived_s=lived_s, now=now)
        self._restarts.put(key, after)
        return after.pause_left_s(now)

    def pause_left_s(self, key: ConnectionKey | None, now: float) -> float:
        """How long it is not started; 0 if it may be."""
        restarts = None if key is None else self._restarts.get(key)
        return 0.0 if restarts is None else restarts.pause_left_s(now)

    def forgive(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """The server may be started again, for whomever."""
        for key in self._restarts:
            if (key.organization_id, key.server_id) == (organization_id, server_id):
                self._restarts.pop(key)

    def release(self, is_over: Callable[[ConnectionKey], bool]) -> None:
        """The run or thread of such keys is over."""
        for key in self._restarts:
            if is_over(key):
                self._restarts.pop(key)
