"""What this process hears of rows that others change, and whether it would have heard of it by now: what caches of rows ask
before they answer. ADR 0015. Fed by `PostgresWakeups`."""

import time
from collections.abc import Callable

from domain.ids import OrganizationId

FRESH_S = 1.0
"""For how long a heartbeat that came back vouches for what was heard before it."""

Forget = Callable[[OrganizationId | None], None]
"""Told whose rows of a table were changed; None: it may be anybody's."""


class RowFeed:
    """Changes of rows by table and organization.

    Where the database is `shared`, kept rows may be used only while the feed is fresh: this process hears changes in the
    order of their commits, and a heartbeat that it sent itself after whatever it heard of later. So what was committed
    before the heartbeat was sent is known when it is heard, and nothing that is kept is older than FRESH_S. A process that
    has its database alone is always fresh, and hears nothing. To be used from one event loop.
    """

    def __init__(self, *, shared: bool, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._monotonic = monotonic
        self._heard_of = float("-inf")
        self._listeners: dict[str, list[Forget]] = {}
        self._watchers: dict[str, list[Forget]] = {}

    def listen(self, forget: Forget, *tables: str) -> None:
        """Call `forget` for each change of these tables, as soon as it is heard."""
        for table in tables:
            self._listeners.setdefault(table, []).append(forget)

    def watch(self, watcher: Forget, *tables: str) -> None:
        """Call `watcher` for each change of these tables whoever makes it, this process too; after those who `listen`."""
        for table in tables:
            self._watchers.setdefault(table, []).append(watcher)

    def wrote(self, tables: tuple[str, ...], organization_id: OrganizationId | None) -> None:
        """This process changed rows of these tables, and keeps nothing from before."""
        for table in tables:
            for watcher in self._watchers.get(table, ()):
                watcher(organization_id)

    def fresh(self) -> bool:
        """Whether all changes but those of the last second are known here."""
        return not self._shared or self._monotonic() - self._heard_of <= FRESH_S

    def beat(self) -> str:
        """A heartbeat to send now."""
        return repr(self._monotonic())

    def heard(self, beat: str) -> None:
        """A heartbeat of this process came back, and all changes before it."""
        self._heard_of = max(self._heard_of, float(beat))

    def changed(self, table: str, organization_id: OrganizationId) -> None:
        """Somebody changed a row of the table."""
        for forget in self._listeners.get(table, ()):
            forget(organization_id)
        self.wrote((table,), organization_id)

    def interrupted(self) -> None:
        """Changes may have been missed: all that is kept is forgotten, and nothing vouched for until the next heartbeat."""
        self._heard_of = float("-inf")
        for told in (self._listeners, self._watchers):
            for forgetting in told.values():
                for forget in forgetting:
                    forget(None)
