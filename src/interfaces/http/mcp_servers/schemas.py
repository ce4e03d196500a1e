"""Bodies of the MCP server routes, and their conversion to domain values."""

from typing import Annotated, ClassVar, cast

from pydantic import Field

from application.system.changes import Changes
from domain.errors import Violation, invalid
from domain.json_value import JsonObject, JsonValue
from domain.mcp.server import (
    ConnectionLoss,
    ElicitationPolicy,
    Isolation,
    McpServerConfig,
    McpServerKind,
    OutputValidation,
    PassingPolicy,
    default_isolation,
)
from domain.secrets.secret import SecretValue
from interfaces.http.bodies import Body, Patch, Strings
from interfaces.http.mcp_servers.auth import AuthBody, hidden_in
from interfaces.http.rates import RateLimitBody
from interfaces.http.secrets.reference_views import HIDDEN
from interfaces.http.secrets.references import WriteOnly, secret_value

_EXAMPLE: JsonObject = {"slug": "git", "kind": "custom", "command": "mcp-server-git", "args": ["--repository", "."]}
_REMOTE_EXAMPLE: JsonObject = {
    "slug": "tickets",
    "kind": "http",
    "url": "https://mcp.example.com/mcp",
    "headers": {"Authorization": "Bearer …"},
}
_PACKAGE_EXAMPLE: JsonObject = {
    "slug": "memory",
    "kind": "npm",
    "package": "@modelcontextprotocol/server-memory",
    "version": "2026.8.31",
}

_DAY_S = 86_400
_MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""A reply is buffered in memory completely."""
_MAX_CONCURRENCY = 1_000

Kind = Annotated[McpServerKind, Field(strict=False)]
IsolationMode = Annotated[Isolation, Field(strict=False)]
ValidationMode = Annotated[OutputValidation, Field(strict=False)]
LossStrategy = Annotated[ConnectionLoss, Field(strict=False)]
ElicitationMode = Annotated[ElicitationPolicy, Field(strict=False)]
PassingMode = Annotated[PassingPolicy, Field(strict=False)]


class McpServerBody(Body):
    """An MCP server. Values of `env` (started servers) and `headers` (remote servers) are
    write-only, or references to named secrets (`{"secret": NAME}`). `args` must not contain
    secrets."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        _EXAMPLE,
        _PACKAGE_EXAMPLE,
        _REMOTE_EXAMPLE,
    )

    slug: str = Field(description="Unique in the organization: [a-z0-9][a-z0-9-]{0,31}.")
    kind: Kind
    package: str | None = Field(
        default=None,
        description="For kinds npm and python: a name, or the absolute path of a .tgz, wheel or sdist. For kind "
        "python, further requirements may follow after spaces: `mcp-server-sqlite mcp<2`.",
    )
    version: str | None = Field(
        default=None, description="Version of the package. Default: the newest at installation."
    )
    path: str | None = Field(
        default=None, description="Executable or directory that installation of a custom server copies."
    )
    command: str | None = Field(
        default=None,
        description="Command of a custom server, run in place, or from the copy if `path` is set. For kinds npm "
        "and python: one of the package's commands, if it has several.",
    )
    args: Strings = ()
    env: dict[str, WriteOnly] = Field(default_factory=dict, description="Write-only.")
    url: str | None = Field(default=None, description="For kinds http and sse.")
    headers: dict[str, WriteOnly] = Field(default_factory=dict, description="Write-only.")
    auth: AuthBody | None = Field(default=None, description="For kinds http and sse.")
    trusted: bool = Field(default=False, description="Whether its hints and instructions are trusted.")
    isolation: IsolationMode | None = Field(
        default=None, description="Scope of a connection. Default: `shared` for remote servers, `run` for others."
    )
    on_connection_loss: LossStrategy = Field(
        default=ConnectionLoss.MARK_UNHEALTHY,
        description="While the shared connection is lost: keep its tools, or omit them from new runs.",
    )
    output_validation: ValidationMode = OutputValidation.WARN
    elicitation: ElicitationMode = Field(
        default=ElicitationPolicy.DECLINE,
        description="When it requests input during a call: decline, or pass the request to the run or the gateway's client.",
    )
    sampling: PassingMode = Field(
        default=PassingPolicy.DECLINE,
        description="When it requests a model completion during a call: decline, or pass it to the gateway's client.",
    )
    roots: PassingMode = Field(
        default=PassingPolicy.DECLINE,
        description="When it requests the client's roots: decline, or pass the request to the gateway's client.",
    )
    timeout_s: float = Field(default=30.0, gt=0, le=_DAY_S, description="Timeout of each call.")
    idle_timeout_s: float = Field(
        default=300.0, gt=0, le=_DAY_S, description="Idle time after which an unused connection closes."
    )
    max_response_bytes: int = Field(default=4 * 1024 * 1024, gt=0, le=_MAX_RESPONSE_BYTES)
    max_concurrency: int = Field(default=8, gt=0, le=_MAX_CONCURRENCY, description="Most concurrent calls; more wait.")
    rate_limit: RateLimitBody | None = Field(default=None, description="Further calls wait, until their deadline.")
    enabled: bool = True

    def to_config(self) -> McpServerConfig:
        """The configuration. Raises INVALID `mcp_server_invalid`."""
        wrong = [
            Violation(path=f"{group}.{name}", message=f"{HIDDEN} stands for a stored value; send the value itself")
            for group, values in (("env", self.env), ("headers", self.headers))
            for name, value in values.items()
            if value == HIDDEN
        ]
        wrong += _hidden_auth(self.auth)
        if wrong:
            raise invalid("mcp_server_invalid", "The MCP server is not valid.", *wrong)
        return McpServerConfig(**{**self.values(), "isolation": self.isolation or default_isolation(self.kind)})


class TestMcpServerBody(McpServerBody):
    """A server to test without saving it; the slug is ignored."""

    __test__: ClassVar[bool] = False

    examples: ClassVar[tuple[JsonObject, ...]] = (
        _EXAMPLE,
        _REMOTE_EXAMPLE,
    )

    slug: str = "test"


class UpdateMcpServerBody(Patch, of=McpServerBody):
    """Changes to an MCP server. Absent fields stay. `env` and `headers` are merged entry by
    entry: null removes one, `[hidden]` leaves it unchanged."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"env": {"TOKEN": "…"}, "timeout_s": 60},)
    nullable: ClassVar[frozenset[str]] = frozenset(
        {"package", "version", "path", "command", "url", "auth", "rate_limit"}
    )

    env: dict[str, WriteOnly | None] | None = None
    headers: dict[str, WriteOnly | None] | None = None
    auth: AuthBody | None = Field(default=None, description="Replaced entirely, including its secrets.")

    def to_changes(self) -> Changes:
        """The fields present, without env and headers. Raises INVALID."""
        changes = self.changes(without=frozenset({"env", "headers"}))
        if wrong := _hidden_auth(self.auth):
            raise invalid("mcp_server_invalid", "The MCP server is not valid.", *wrong)
        return changes

    def to_env_changes(self) -> dict[str, SecretValue | None]:
        return _without_hidden(self.env)

    def to_header_changes(self) -> dict[str, SecretValue | None]:
        return _without_hidden(self.headers)


class ApproveDefinitionBody(Body):
    """The `digest` of the reviewed definition."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"digest": f"sha256:{'0' * 64}"},)

    digest: str


class ImportBody(Body):
    """The servers of a desktop client's file, by name: each `{command, args, env}` or `{type,
    url, headers}`."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}},
    )

    entries: dict[str, object] = Field(alias="mcpServers", max_length=1_000)

    def to_entries(self) -> dict[str, JsonValue]:
        """The raw entries; the import parses them."""
        return cast("dict[str, JsonValue]", self.entries)


def _hidden_auth(auth: AuthBody | None) -> list[Violation]:
    message = f"{HIDDEN} stands for a stored value; send the value itself"
    return [Violation(path=path, message=message) for path in (() if auth is None else hidden_in(auth))]


def _without_hidden(entries: dict[str, WriteOnly | None] | None) -> dict[str, SecretValue | None]:
    return {
        name: None if value is None else secret_value(value)
        for name, value in (entries or {}).items()
        if value != HIDDEN
    }
