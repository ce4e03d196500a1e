"""MCP servers as an organization registers them: how each is reached and how its connections behave."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.errors import Violation, invalid
from domain.ids import McpServerId, OrganizationId
from domain.tools.names import is_legal_slug


class McpServerKind(StrEnum):
    """How a server is run or reached; values are part of the public contract."""

    NPM = "npm"
    PYTHON = "python"
    CUSTOM = "custom"
    SSE = "sse"
    HTTP = "http"

    @property
    def is_remote(self) -> bool:
        """Reached by URL rather than started here."""
        return self in (McpServerKind.SSE, McpServerKind.HTTP)


class Isolation(StrEnum):
    """Who shares a connection: everyone of the organization, the runs of one thread, or one run alone."""

    SHARED = "shared"
    THREAD = "thread"
    RUN = "run"


class OutputValidation(StrEnum):
    """What happens to `structuredContent` that does not fit the tool's `outputSchema`."""

    OFF = "off"
    WARN = "warn"
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerConfig:
    """A server's settings. `env` and `headers` hold secrets: they are encrypted at rest and never shown.

    `args` never hold secrets. `timeout_s` bounds each call, `idle_timeout_s` how long an unused connection is kept,
    `max_response_bytes` one reply on the wire.
    """

    slug: str
    kind: McpServerKind
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    url: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    trusted: bool = False
    isolation: Isolation = Isolation.RUN
    output_validation: OutputValidation = OutputValidation.WARN
    timeout_s: float = 30.0
    idle_timeout_s: float = 300.0
    max_response_bytes: int = 4 * 1024 * 1024
    max_concurrency: int = 8
    enabled: bool = True

    def __post_init__(self) -> None:
        wrong = []
        if not is_legal_slug(self.slug):
            wrong.append(Violation(path="slug", message="must match [a-z0-9][a-z0-9-]{0,31}"))
        if self.kind.is_remote:
            if not self.url or not self.url.startswith(("http://", "https://")):
                wrong.append(Violation(path="url", message=f"a server of kind {self.kind} needs an http or https URL"))
            wrong += [
                Violation(path=name, message=f"does not apply to a server of kind {self.kind}")
                for name, value in (("command", self.command), ("args", self.args), ("env", self.env))
                if value
            ]
        elif self.kind is McpServerKind.CUSTOM:
            if not self.command:
                wrong.append(Violation(path="command", message="a custom server needs a command"))
            wrong += [
                Violation(path=name, message="applies to servers of kind sse and http only")
                for name, value in (("url", self.url), ("headers", self.headers))
                if value
            ]
        for name, number in (
            ("timeout_s", self.timeout_s),
            ("idle_timeout_s", self.idle_timeout_s),
            ("max_response_bytes", self.max_response_bytes),
            ("max_concurrency", self.max_concurrency),
        ):
            if number <= 0:
                wrong.append(Violation(path=name, message="must be greater than 0"))
        if wrong:
            raise invalid("mcp_server_invalid", "The MCP server is not valid.", *wrong)


def default_isolation(kind: McpServerKind) -> Isolation:
    """Remote servers are shared by the organization, started ones belong to one run."""
    return Isolation.SHARED if kind.is_remote else Isolation.RUN


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A registered server. `version` counts its changes; connections of an older version are not reused."""

    id: McpServerId
    organization_id: OrganizationId
    version: int
    config: McpServerConfig
    created_at: datetime
    updated_at: datetime
