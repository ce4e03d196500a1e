"""Bodies of the MCP server routes, and their conversion to domain values."""

from typing import Annotated, ClassVar, cast

from pydantic import Field

from application.system.changes import Changes
from domain.errors import Violation, invalid
from domain.json_value import JsonObject, JsonValue
from domain.mcp.behavior import ConnectionLoss, ElicitationPolicy, OutputValidation, PassingPolicy
from domain.mcp.catalog import MAX_REASON
from domain.mcp.declared_tool import MAX_DECLARED_TOOLS, DeclaredTool
from domain.mcp.network import ServerNetwork
from domain.mcp.server import Credentials, Isolation, McpServerConfig, McpServerKind, default_isolation
from domain.secrets.secret import SecretValue
from interfaces.http.bodies import Body, Name, Patch, Strings
from interfaces.http.mcp_servers.auth import AuthBody, hidden_in
from interfaces.http.mcp_servers.tls import TlsBody
from interfaces.http.mcp_servers.views import DeclaredToolView, McpServerView
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
_DECLARED: JsonObject = {
    "name": "lookup",
    "description": "Looks up the reputation of an IP address.",
    "parameters": {"type": "object", "properties": {"ip": {"type": "string"}}, "required": ["ip"]},
}
_DECLARED_EXAMPLE: JsonObject = {
    "slug": "reputation",
    "kind": "http",
    "url": "https://connector.example.com/rpc",
    "declared_tools": [_DECLARED],
}

_DAY_S = 86_400
_MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""A reply is buffered in memory completely."""
_MAX_CONCURRENCY = 1_000

Kind = Annotated[McpServerKind, Field(strict=False)]
IsolationMode = Annotated[Isolation, Field(strict=False)]
ValidationMode = Annotated[OutputValidation, Field(strict=False)]
CredentialsMode = Annotated[Credentials, Field(strict=False)]
LossStrategy = Annotated[ConnectionLoss, Field(strict=False)]
ElicitationMode = Annotated[ElicitationPolicy, Field(strict=False)]
NetworkMode = Annotated[ServerNetwork, Field(strict=False)]
PassingMode = Annotated[PassingPolicy, Field(strict=False)]


class DeclaredToolBody(Body):
    """A tool of a server that answers calls only."""

    examples: ClassVar[tuple[JsonObject, ...]] = (_DECLARED,)

    shown_as: ClassVar[type] = DeclaredToolView

    name: str
    description: str
    parameters: dict[str, object]
    output_schema: dict[str, object] | None = None

    def to_domain(self) -> DeclaredTool:
        return DeclaredTool(**self.values())


DeclaredTools = Annotated[tuple[DeclaredToolBody, ...], Field(strict=False, max_length=MAX_DECLARED_TOOLS)]


class McpServerBody(Body):
    """An MCP server. Values of `env` (started servers) and `headers` (remote servers) are
    write-only, or references to named secrets (`{"secret": NAME}`). `args` must not contain
    secrets."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        _EXAMPLE,
        _PACKAGE_EXAMPLE,
        _REMOTE_EXAMPLE,
        _DECLARED_EXAMPLE,
    )

    shown_as: ClassVar[type] = McpServerView

    slug: str
    kind: Kind
    package: str | None = None
    version: str | None = None
    path: str | None = None
    command: str | None = None
    args: Strings = ()
    env: dict[str, WriteOnly] = Field(default_factory=dict)
    url: str | None = None
    headers: dict[str, WriteOnly] = Field(default_factory=dict)
    auth: AuthBody | None = None
    tls: TlsBody | None = None
    credentials: CredentialsMode = Credentials.ORGANIZATION
    tools: Strings | None = None
    declared_tools: DeclaredTools = ()
    network: NetworkMode = ServerNetwork.FULL
    network_hosts: Strings = ()
    trusted: bool = False
    isolation: IsolationMode | None = None
    on_connection_loss: LossStrategy = ConnectionLoss.MARK_UNHEALTHY
    output_validation: ValidationMode = OutputValidation.WARN
    elicitation: ElicitationMode = ElicitationPolicy.DECLINE
    sampling: PassingMode = PassingPolicy.DECLINE
    roots: PassingMode = PassingPolicy.DECLINE
    timeout_s: float = Field(default=30.0, gt=0, le=_DAY_S)
    idle_timeout_s: float = Field(default=300.0, gt=0, le=_DAY_S)
    max_response_bytes: int = Field(default=4 * 1024 * 1024, gt=0, le=_MAX_RESPONSE_BYTES)
    max_concurrency: int = Field(default=8, gt=0, le=_MAX_CONCURRENCY)
    rate_limit: RateLimitBody | None = None
    registry_entry: str | None = None
    enabled: bool = True
    team: Name | None = None

    def to_config(self) -> McpServerConfig:
        """The configuration. Raises INVALID `mcp_server_invalid`."""
        wrong = [
            Violation(path=f"{group}.{name}", message=f"{HIDDEN} stands for a stored value; send the value itself")
            for group, values in (("env", self.env), ("headers", self.headers))
            for name, value in values.items()
            if value == HIDDEN
        ]
        wrong += _hidden_auth(self.auth, self.tls)
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
        {"package", "version", "path", "command", "url", "auth", "tls", "tools", "rate_limit", "registry_entry", "team"}
    )

    env: dict[str, WriteOnly | None] | None = None
    headers: dict[str, WriteOnly | None] | None = None
    auth: AuthBody | None = Field(default=None, description="Replaced entirely, including its secrets.")
    tls: TlsBody | None = Field(default=None, description="Replaced entirely, including its private key.")

    def to_changes(self) -> Changes:
        """The fields present, without env and headers. Raises INVALID."""
        changes = self.changes(without=frozenset({"env", "headers"}))
        if wrong := _hidden_auth(self.auth, self.tls):
            raise invalid("mcp_server_invalid", "The MCP server is not valid.", *wrong)
        return changes

    def to_env_changes(self) -> dict[str, SecretValue | None]:
        return _without_hidden(self.env)

    def to_header_changes(self) -> dict[str, SecretValue | None]:
        return _without_hidden(self.headers)


class ApproveDefinitionBody(Body):
    """The `digest` of the reviewed definition."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"digest": f"sha256:{'0' * 64}"},)

    digest: str = Field(description="Digest of the definition, as the list of tools has it.")


class RejectDefinitionBody(Body):
    """The `digest` of the reviewed definition, and the `reason`, which people see."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"digest": f"sha256:{'0' * 64}", "reason": "It asks for the session token."},
    )

    digest: str | None = Field(default=None, description="Digest of the definition, as the list of tools has it.")
    reason: Annotated[str, Field(max_length=MAX_REASON)] | None = Field(
        default=None, description="Why; shown to people, not to models."
    )


class ImportBody(Body):
    """The servers of a desktop client's file, by name: each `{command, args, env}` or `{type,
    url, headers}`."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}},
    )

    entries: dict[str, object] = Field(alias="mcpServers", max_length=1_000, description="The servers, by name.")

    def to_entries(self) -> dict[str, JsonValue]:
        """The raw entries; the import parses them."""
        return cast("dict[str, JsonValue]", self.entries)


def _hidden_auth(auth: AuthBody | None, tls: TlsBody | None) -> list[Violation]:
    message = f"{HIDDEN} stands for a stored value; send the value itself"
    hidden = [] if auth is None else [*hidden_in(auth)]
    if tls is not None and tls.private_key == HIDDEN:
        hidden.append("tls.private_key")
    return [Violation(path=path, message=message) for path in hidden]


def _without_hidden(entries: dict[str, WriteOnly | None] | None) -> dict[str, SecretValue | None]:
    return {
        name: None if value is None else secret_value(value)
        for name, value in (entries or {}).items()
        if value != HIDDEN
    }
