"""Gateway sessions: what one outside client may reach through the gateway, and until when."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.ids import AgentId, ApiKeyId, GatewaySessionId, OrganizationId, RunId, ThreadId
from domain.rate_limit import RateLimit
from domain.tools.wired import WiredNodes

SESSION_TOKEN_PREFIX = "dgs_"


class ToolNames(StrEnum):
    """How a session names MCP tools: as models see them, or as their server does (of sessions over exactly one server)."""

    NAMESPACED = "namespaced"
    ORIGINAL = "original"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySession:
    """The toolbox of an agent, opened to whoever holds the session's token.

    `thread_id` is where files and quarantine of its calls belong: the run's thread, else one of the session's own. With a
    `run_id` the session has that run's tools, and ends with it; with `wired` those of tool nodes of a workflow run, under the
    policies of the agent that they are wired to, and ends with that. `created_by` is whose calls they are. A session without a
    token is the one that an API key itself has with an agent for a day. `rate_limit` is that key's own, to which all its
    sessions are held together.
    """

    id: GatewaySessionId
    organization_id: OrganizationId
    agent_id: AgentId
    thread_id: ThreadId
    names: ToolNames
    created_by: ApiKeyId
    created_at: datetime
    expires_at: datetime
    run_id: RunId | None = None
    wired: WiredNodes | None = None
    token_hash: str | None = None
    revoked_at: datetime | None = None
    rate_limit: RateLimit | None = None

    @property
    def ends_with_another(self) -> bool:
        """Whether a run, or a workflow run, takes it along when it ends."""
        return self.run_id is not None or self.wired is not None

    def is_open(self, at: datetime) -> bool:
        """Whether its token still opens anything."""
        return self.revoked_at is None and at < self.expires_at
