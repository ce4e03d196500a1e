"""Followers: who is told of changes by this process, and how those that make or hear of changes reach them."""

from collections.abc import Callable

from application.mcp.news import ListKind
from domain.gateway.session import GatewaySession
from domain.ids import McpServerId, OrganizationId

MAX_PENDING = 1_000
"""Updated resources that a follower may have waiting; one that lags behind further is let go."""


class Follower:
    """One that follows. What waits to be told is told once however often it happened. To be used from one event loop."""

    __slots__ = ("asks_again", "is_let_go", "is_open_unknown", "lists", "servers", "session", "updated", "wake")

    def __init__(self, session: GatewaySession, wake: Callable[[], None]) -> None:
        self.session = session
        self.wake = wake
        self.servers: dict[ListKind, frozenset[McpServerId]] = {}
        """Whose lists it sees."""
        self.is_open_unknown = False
        """Something was said about sessions, keys or clients."""
        self.asks_again = False
        """Something was said about agents, servers or policies."""
        self.lists: set[ListKind] = set()
        self.updated: dict[str, None] = {}
        self.is_let_go = False

    def resource_updated(self, uri: str) -> None:
        """A resource, under the client's name for it."""
        if uri not in self.updated and len(self.updated) >= MAX_PENDING:
            self.let_go()
        else:
            self.updated[uri] = None
            self.wake()

    def let_go(self) -> None:
        """Nothing more is told."""
        self.is_let_go = True
        self.wake()


class Followers:
    """All of one process."""

    def __init__(self) -> None:
        self._of: dict[OrganizationId, set[Follower]] = {}
        self._is_ending = False

    def __len__(self) -> int:
        return sum(len(followers) for followers in self._of.values())

    def add(self, follower: Follower) -> None:
        """It follows."""
        self._of.setdefault(follower.session.organization_id, set()).add(follower)
        if self._is_ending:
            follower.let_go()

    def end(self) -> None:
        """The process stops: all are let go, and whoever comes."""
        self._is_ending = True
        for follower in self._those(None):
            follower.let_go()

    def remove(self, follower: Follower) -> None:
        """It does not any more."""
        organization_id = follower.session.organization_id
        followers = self._of.get(organization_id, set())
        followers.discard(follower)
        if not followers:
            self._of.pop(organization_id, None)

    def sessions_changed(self, organization_id: OrganizationId | None) -> None:
        """Sessions, keys or clients of an organization changed, None: perhaps anybody's."""
        for follower in self._those(organization_id):
            follower.is_open_unknown = True
            follower.wake()

    def tools_changed(self, organization_id: OrganizationId | None) -> None:
        """Agents, servers, catalogs or policies of an organization changed, None: perhaps anybody's."""
        for follower in self._those(organization_id):
            follower.asks_again = True
            follower.wake()

    def listed(
        self, organization_id: OrganizationId, server_id: McpServerId, scope_id: str | None, kind: ListKind
    ) -> None:
        """A server said that a list of its changed, on a connection that belongs to a thread, run or session of this id, or to
        all of the organization."""
        for follower in self._those(organization_id):
            session = follower.session
            concerned = scope_id is None or scope_id in (session.id, session.run_id, session.thread_id)
            if concerned and server_id in follower.servers.get(kind, ()):
                follower.lists.add(kind)
                follower.wake()

    def _those(self, organization_id: OrganizationId | None) -> list[Follower]:
        if organization_id is not None:
            return list(self._of.get(organization_id, ()))
        return [follower for followers in self._of.values() for follower in followers]
