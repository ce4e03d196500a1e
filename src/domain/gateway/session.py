"""Gateway sessions: what one external client may reach through the gateway, and until when."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.ids import AgentId, ApiKeyId, GatewaySessionId, OrganizationId, RunId, ThreadId, UserId
from domain.rate_limit import RateLimit
from domain.tools.wired import WiredNodes

SESSION_TOKEN_PREFIX = "dgs_"


class ToolNames(StrEnum):
    """How a session names MCP tools: with the names that models see, or, for a session with exactly
    one server, with that server's names."""

    NAMESPACED = "namespaced"
    ORIGINAL = "original"


class ToolSearch(StrEnum):
    """Whether a client is listed the meta tools instead of MCP tools: by the threshold, or by its
    own choice."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySession:
    """A session that gives its bearer an agent's toolset.

    - `thread_id` holds the files and the quarantine of its calls: the run's thread, otherwise a
      thread created for the session.
    - With `run_id` the session has that run's tools and ends with the run.
    - With `wired` the session has the tool nodes of a workflow run, under the policies of the agent
      that they are wired to, and ends with the workflow run.
    - `created_by` is the actor of its calls.
    - A session without a token is the implicit one of an API key and an agent; it lasts a day.
    - `rate_limit` is the key's limit, which all of the key's sessions share, and `key_of` the user
      who made the key.
    - `team` is that of the thread, as it was read.
    - With `client_id` a person granted the session to an OAuth client. Its token is renewed, and
      expires at `token_expires_at`, before the session does.
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
    key_of: UserId | None = None
    team: str | None = None
    client_id: str | None = None
    client_name: str | None = None
    token_expires_at: datetime | None = None

    @property
    def ends_with_another(self) -> bool:
        """Whether the session ends with a run or a workflow run."""
        return self.run_id is not None or self.wired is not None

    def is_open(self, at: datetime) -> bool:
        return self.revoked_at is None and at < self.expires_at

    def takes_token(self, at: datetime) -> bool:
        """Whether the session is open for its token."""
        return self.is_open(at) and (self.token_expires_at is None or at < self.token_expires_at)
