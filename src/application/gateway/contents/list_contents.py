"""ListGatewayContents: the resources, resource templates or prompts that a session's client may
use."""

from application.gateway.contents.content_names import ContentKind
from application.gateway.contents.content_sources import ContentSources
from domain.gateway.session import GatewaySession
from domain.json_value import JsonObject


class ListGatewayContents:
    """Rules:
    - Servers are asked in parallel at each request, each with a deadline.
    - An entry that holds a canary token is left out.
    """

    def __init__(self, *, sources: ContentSources) -> None:
        self._sources = sources

    async def execute(self, session: GatewaySession, kind: ContentKind) -> tuple[JsonObject, ...]:
        """The servers' entries under the client's names. Raises FORBIDDEN `agent_disabled`,
        `agent_not_found`."""
        sources = await self._sources.of(session, kind)
        listed = await self._sources.listed(sources, kind)
        guard = sources.tools.guard
        return tuple(entry for entry in listed if guard.arguments(entry) is None)
