"""Subscribers of this process, and the calls that notify them."""

from collections.abc import Callable

from application.mcp.news import ListKind
from domain.gateway.session import GatewaySession
from domain.ids import McpServerId, OrganizationId

MAX_PENDING = 1_000
"""Limit of updated resources waiting for one subscriber; a slower subscriber is dropped."""


class Follower:
    """One subscription. Repeated changes are reported once. Use it from one event loop."""

    __slots__ = ("asks_again", "is_let_go", "is_open_unknown", "lists", "servers", "session", "updated", "wake")

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
        self.is_let_go = False

    def resource_updated(self, uri: str) -> None:
        """Report a resource under the client's name."""
        if uri not in self.updated and len(self.updated) >= MAX_PENDING:
            self.let_go()
        else:
            self.updated[uri] = None
            self.wake()

    def let_go(self) -> None:
        self.is_let_go = True
        self.wake()


class Followers:
    """All subscribers of one process."""

    def __init__(self) -> None:
        self._of: dict[OrganizationId, set[Follower]] = {}
        self._is_ending = False

    def __len__(self) -> int:
        return sum(len(followers) for followers in self._of.values())

    def add(self, follower: Follower) -> None:
        self._of.setdefault(follower.session.organization_id, set()).add(follower)
        if self._is_ending:
            follower.let_go()

    def end(self) -> None:
        """Drop all present and future subscribers: the process stops."""
        self._is_ending = True
        for follower in self._those(None):
            follower.let_go()

    def remove(self, follower: Follower) -> None:
        organization_id = follower.session.organization_id
        followers = self._of.get(organization_id, set())
        followers.discard(follower)
        if not followers:
            self._of.pop(organization_id, None)

    def sessions_changed(self, organization_id: OrganizationId | None) -> None:
        """Sessions, keys or clients of an organization changed. None: perhaps of any organization."""
        for follower in self._those(organization_id):
            follower.is_open_unknown = True
            follower.wake()

    def tools_changed(self, organization_id: OrganizationId | None) -> None:
        """Agents, servers, catalogs or policies of an organization changed. None: perhaps of any organization."""
        for follower in self._those(organization_id):
            follower.asks_again = True
            follower.wake()

    def listed(
        self, organization_id: OrganizationId, server_id: McpServerId, scope_id: str | None, kind: ListKind
    ) -> None:
        """A server reported a changed list. `scope_id` is the thread, run or session of the
        connection; None: the whole organization."""
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
