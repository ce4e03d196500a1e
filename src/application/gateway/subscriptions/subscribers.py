"""Subscribers of this process, and the calls that notify them."""

from collections.abc import Callable

from application.mcp.news import ListKind
from domain.gateway.session import GatewaySession
from domain.ids import McpServerId, OrganizationId

MAX_PENDING = 1_000
"""Limit of updated resources waiting for one subscriber; a slower subscriber is dropped."""


class Subscriber:
    """One subscription. Repeated changes are reported once. Use it from one event loop."""

    __slots__ = ("asks_again", "is_dropped", "is_open_unknown", "lists", "servers", "session", "updated", "wake")

    def __init__(self, session: GatewaySession, wake: Callable[[], None]) -> None:
        self.session = session
        self.wake = wake
        self.servers: dict[ListKind, frozenset[McpServerId]] = {}
        """Servers whose lists the session sees."""
        self.is_open_unknown = False
        """A session, key or client may have changed."""
        self.asks_again = False
        """An agent, server or policy may have changed."""
        self.lists: set[ListKind] = set()
        self.updated: dict[str, None] = {}
        self.is_dropped = False

    def resource_updated(self, uri: str) -> None:
        """Report a resource under the client's name."""
        if uri not in self.updated and len(self.updated) >= MAX_PENDING:
            self.drop()
        else:
            self.updated[uri] = None
            self.wake()

    def drop(self) -> None:
        self.is_dropped = True
        self.wake()


class Subscribers:
    """All subscribers of one process."""

    def __init__(self) -> None:
        self._of: dict[OrganizationId, set[Subscriber]] = {}
        self._is_ending = False

    def __len__(self) -> int:
        return sum(len(subscribers) for subscribers in self._of.values())

    def add(self, subscriber: Subscriber) -> None:
        self._of.setdefault(subscriber.session.organization_id, set()).add(subscriber)
        if self._is_ending:
            subscriber.drop()

    def end(self) -> None:
        """Drop all present and future subscribers: the process stops."""
        self._is_ending = True
        for subscriber in self._those(None):
            subscriber.drop()

    def remove(self, subscriber: Subscriber) -> None:
        organization_id = subscriber.session.organization_id
        subscribers = self._of.get(organization_id, set())
        subscribers.discard(subscriber)
        if not subscribers:
            self._of.pop(organization_id, None)

    def sessions_changed(self, organization_id: OrganizationId | None) -> None:
        """Sessions, keys or clients of an organization changed. None: perhaps of any
        organization."""
        for subscriber in self._those(organization_id):
            subscriber.is_open_unknown = True
            subscriber.wake()

    def tools_changed(self, organization_id: OrganizationId | None) -> None:
        """Agents, servers, catalogs or policies of an organization changed. None: perhaps of any
        organization."""
        for subscriber in self._those(organization_id):
            subscriber.asks_again = True
            subscriber.wake()

    def listed(
        self, organization_id: OrganizationId, server_id: McpServerId, scope_id: str | None, kind: ListKind
    ) -> None:
        """A server reported a changed list. `scope_id` is the thread, run or session of the
        connection; None: the whole organization."""
        for subscriber in self._those(organization_id):
            session = subscriber.session
            concerned = scope_id is None or scope_id in (session.id, session.run_id, session.thread_id)
            if concerned and server_id in subscriber.servers.get(kind, ()):
                subscriber.lists.add(kind)
                subscriber.wake()

    def _those(self, organization_id: OrganizationId | None) -> list[Subscriber]:
        if organization_id is not None:
            return list(self._of.get(organization_id, ()))
        return [subscriber for subscribers in self._of.values() for subscriber in subscribers]
