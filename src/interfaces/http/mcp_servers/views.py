"""MCP servers, their status, tools and test results as JSON. Values of env and headers never appear."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from domain.mcp.server import McpServer
from domain.threads.message_json import timestamp
from interfaces.http.mcp_servers.auth_views import AuthView, auth_view
from interfaces.http.rate_views import RateLimitView, rate_limit_view
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view


class McpServerView(TypedDict):
    """A registered server; `env` and `headers` show no values. `version` is that of its package;
    `revision` counts its changes."""

    id: str
    slug: str
    kind: str
    package: str | None
    version: str | None
    path: str | None
    command: str | None
    args: list[str]
    env: dict[str, WriteOnlyView]
    url: str | None
    headers: dict[str, WriteOnlyView]
    auth: AuthView | None
    trusted: bool
    isolation: str
    on_connection_loss: str
    output_validation: str
    elicitation: str
    sampling: str
    roots: str
    timeout_s: float
    idle_timeout_s: float
    max_response_bytes: int
    max_concurrency: int
    rate_limit: RateLimitView | None
    enabled: bool
    revision: int
    created_at: str
    updated_at: str


class InstallProgressView(TypedDict):
    """Progress of an installation."""

    step: str
    percent: int


class ProcessStatusView(TypedDict):
    """State of a server in another process on the same database; `name` is its machine and
    number."""

    name: str
    state: str
    since: str
    last_error: str | None


class ServerStatusView(TypedDict):
    """Installation and connections of a server, over all processes on the database. `install` is
    null unless an installation is in progress."""

    state: str
    since: str
    last_error: str | None
    protocol_version: str | None
    tool_count: int | None
    installed_version: str | None
    installed_at: str | None
    install: InstallProgressView | None
    processes: list[ProcessStatusView]


class McpToolView(TypedDict):
    """A tool as its server describes it; `model_name` is its name for models."""

    name: str
    model_name: str
    description: str
    parameters: Mapping[str, object]
    output_schema: Mapping[str, object] | None
    read_only_hint: bool
    idempotent_hint: bool
    destructive_hint: bool | None


class PinnedToolView(McpToolView):
    """A tool and its approval: `state` is `approved`, or `quarantined` if it is new or changed
    since its approval. Then `diff` shows the change as a unified diff."""

    state: str
    digest: str
    diff: NotRequired[str]


class SkippedToolView(TypedDict):
    """A tool that could not be registered."""

    name: str
    reason: str


class McpServerToolsView(TypedDict):
    """Tools of a server as of `taken_at`, null if never listed. `next_cursor` is null on the
    last page. Each page lists what was `skipped`."""

    data: list[PinnedToolView]
    next_cursor: str | None
    skipped: list[SkippedToolView]
    taken_at: str | None
    protocol_version: str | None


class ServerInfoView(TypedDict):
    """The server's description of itself."""

    name: str


class TestFailureView(TypedDict):
    """Why a test failed; `stderr` is the end of a started server's error output."""

    code: str
    detail: str
    stderr: NotRequired[str]


class TestResultView(TypedDict):
    """The outcome of a test."""

    ok: bool
    protocol_version: str | None
    server_info: ServerInfoView | None
    tools: list[McpToolView]
    skipped: list[SkippedToolView]
    latency_ms: int
    error: TestFailureView | None


class ServerLogsView(TypedDict):
    """Output of the installation, and the end of the server's error output."""

    text: str


class ImportedEntryView(TypedDict):
    """The result of one entry: `outcome` is `created` or `skipped`; `remarks` give reasons or
    required actions."""

    name: str
    slug: str
    outcome: str
    kind: str | None
    needs_install: bool
    remarks: list[str]


class ImportView(TypedDict):
    """The results, in the order of the file."""

    data: list[ImportedEntryView]


class McpServerPage(TypedDict):
    """A page of servers; `next_cursor` is null on the last one."""

    data: list[McpServerView]
    next_cursor: str | None


def server_view(server: McpServer) -> McpServerView:
    config = server.config
    return {
        "id": server.id,
        "slug": config.slug,
        "kind": config.kind.value,
        "package": config.package,
        "version": config.version,
        "path": config.path,
        "command": config.command,
        "args": list(config.args),
        "env": {name: write_only_view(value) for name, value in config.env.items()},
        "url": config.url,
        "headers": {name: write_only_view(value) for name, value in config.headers.items()},
        "auth": auth_view(config.auth),
        "trusted": config.trusted,
        "isolation": config.isolation.value,
        "on_connection_loss": config.on_connection_loss.value,
        "output_validation": config.output_validation.value,
        "elicitation": config.elicitation.value,
        "sampling": config.sampling.value,
        "roots": config.roots.value,
        "timeout_s": config.timeout_s,
        "idle_timeout_s": config.idle_timeout_s,
        "max_response_bytes": config.max_response_bytes,
        "max_concurrency": config.max_concurrency,
        "rate_limit": rate_limit_view(config.rate_limit),
        "enabled": config.enabled,
        "revision": server.version,
        "created_at": timestamp(server.created_at),
        "updated_at": timestamp(server.updated_at),
    }
