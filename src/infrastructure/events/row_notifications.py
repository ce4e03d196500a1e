"""Notifications of rows that other processes change, and whether they are up to date. Caches of
rows depend on it (ADR 0015). `PostgresWakeups` feeds it."""

import time
from collections.abc import Callable

from domain.ids import OrganizationId

FRESH_S = 1.0
"""A received heartbeat confirms all earlier notifications for this time."""

Forget = Callable[[OrganizationId | None], None]
"""Called with the organization whose rows changed; None means any organization."""


class RowNotifications:
    """Changes of rows by table and organization.

    - In a `shared` database, cached rows may be used only while notifications are fresh. This
      process receives changes in commit order, and its own heartbeats after the changes that
      precede them.
      So a received heartbeat confirms every earlier commit, and no cached row is older than
      FRESH_S.
    - A process that shares its database with no other is always fresh and receives nothing.
    - Use it from one event loop.
    """

    def __init__(self, *, shared: bool, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._monotonic = monotonic
        self._heard_of = float("-inf")
        self._listeners: dict[str, list[Forget]] = {}
        self._watchers: dict[str, list[Forget]] = {}

    def listen(self, forget: Forget, *tables: str) -> None:
        """Call `forget` for each change of these tables by another process."""
        for table in tables:
            self._listeners.setdefault(table, []).append(forget)

    def watch(self, watcher: Forget, *tables: str) -> None:
        """Call `watcher` for each change of these tables by any process, including this one, after
        the listeners."""
        for table in tables:
            self._watchers.setdefault(table, []).append(watcher)

    def wrote(self, tables: tuple[str, ...], organization_id: OrganizationId | None) -> None:
        """This process changed rows of these tables and has updated its own caches."""
        for table in tables:
            for watcher in self._watchers.get(table, ()):
                watcher(organization_id)

    def fresh(self) -> bool:
        """Whether all changes older than a second are known."""
        return not self._shared or self._monotonic() - self._heard_of <= FRESH_S

    def beat(self) -> str:
        """A heartbeat to send now."""
        return repr(self._monotonic())

    def heard(self, beat: str) -> None:
        """A heartbeat of this process was received, and with it all earlier changes."""
        self._heard_of = max(self._heard_of, float(beat))

    def changed(self, table: str, organization_id: OrganizationId) -> None:
        """Another process changed a row of the table."""
        for forget in self._listeners.get(table, ()):
            forget(organization_id)
        self.wrote((table,), organization_id)

    def interrupted(self) -> None:
        """Changes may have been missed: drop all cached rows, and be stale until the next
        heartbeat."""
        self._heard_of = float("-inf")
        for told in (self._listeners, self._watchers):
            for forgetting in told.values():
                for forget in forgetting:
                    forget(None)
