"""List changes reported by servers, for the followers in this process and in all others."""

from application.mcp.news import Listed, ListKind
from domain.ids import McpServerId, OrganizationId
from infrastructure.mcp.wrappers.announced_connections import Announcements

LISTED = "mcp-listed"


class AnnouncedNews:
    """Forwards list changes. A lost announcement is made up for when a follower reads the list
    again."""

    def __init__(self, tell: Listed, *, announcements: Announcements) -> None:
        self._tell = tell
        self._announcements = announcements
        announcements.subscribe_prefix(LISTED, self._hear)

    def listed(
        self, organization_id: OrganizationId, server_id: McpServerId, scope_id: str | None, kind: ListKind
    ) -> None:
        """Forward a change that a server reported to this process."""
        self._tell(organization_id, server_id, scope_id, kind)
        self._announcements.wake(":".join((LISTED, organization_id, server_id, scope_id or "", kind.value)))

    def _hear(self, topic: str) -> None:
        _, organization_id, server_id, scope_id, kind = topic.split(":")
        self._tell(OrganizationId(organization_id), McpServerId(server_id), scope_id or None, ListKind(kind))
