"""Crash history of started servers: a server that crashes repeatedly enters a cool-down."""

from collections.abc import Callable

from application.system.lru import LruCache
from domain.ids import McpServerId, OrganizationId
from domain.mcp.restarts import RestartLimit, Restarts
from infrastructure.mcp.connections.connection_key import ConnectionKey

_MAX_KEYS = 10_000


class Crashes:
    """Counts per connection key: the crashes of one run's or thread's server do not affect
    others."""

    def __init__(self, limit: RestartLimit) -> None:
        self._limit = limit
        self._restarts: LruCache[ConnectionKey, Restarts] = LruCache(_MAX_KEYS)

    def crashed(self, key: ConnectionKey, *, lived_s: float, now: float) -> float:
        """Record a crash; returns the seconds of cool-down."""
        before = self._restarts.get(key) or Restarts(limit=self._limit)
        after = before.crashed(lived_s=lived_s, now=now)
        self._restarts.put(key, after)
        return after.pause_left_s(now)

    def pause_left_s(self, key: ConnectionKey | None, now: float) -> float:
        """Remaining cool-down in seconds; 0 if the server may be started."""
        restarts = None if key is None else self._restarts.get(key)
        return 0.0 if restarts is None else restarts.pause_left_s(now)

    def forgive(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Drop the history of the server."""
        for key in self._restarts:
            if (key.organization_id, key.server_id) == (organization_id, server_id):
                self._restarts.pop(key)

    def release(self, is_over: Callable[[ConnectionKey], bool]) -> None:
        """Drop the history of ended runs or threads."""
        for key in self._restarts:
            if is_over(key):
                self._restarts.pop(key)
