"""MCP servers, their status, tools and test results as JSON. Values of env and headers never appear."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from domain.mcp.server import McpServer
from domain.threads.message_json import timestamp
from interfaces.http.mcp_servers.auth_views import AuthView, auth_view
from interfaces.http.rate_views import RateLimitView, rate_limit_view
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view


class McpServerView(TypedDict):
    """A registered server; `env` and `headers` show no values. `version` is its package's, `revision` counts its
    changes."""

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
    """How far an installation is."""

    step: str
    percent: int


class ProcessStatusView(TypedDict):
    """How a server stands in another process on the same database; `name` is its machine and number."""

    name: str
    state: str
    since: str
    last_error: str | None


class ServerStatusView(TypedDict):
    """Whether a server is installed and how its connections stand, over all processes on the database; `install` is null unless it
    is being installed."""

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
    """A tool as its server describes it; `model_name` is what models call it."""

    name: str
    model_name: str
    description: str
    parameters: Mapping[str, object]
    output_schema: Mapping[str, object] | None
    read_only_hint: bool
    idempotent_hint: bool
    destructive_hint: bool | None


class PinnedToolView(McpToolView):
    """A tool and whether it may be used: `state` is `approved`, or `quarantined` for one that is new or changed since it was
    approved. `diff` then shows what approving it would change, as a unified difference."""

    state: str
    digest: str
    diff: NotRequired[str]


class SkippedToolView(TypedDict):
    """A tool that could not be registered."""

    name: str
    reason: str


class McpServerToolsView(TypedDict):
    """What a server offers, as of `taken_at`; null if it was never listed. `next_cursor` is null on the last page; each
    page says what was `skipped`."""

    data: list[PinnedToolView]
    next_cursor: str | None
    skipped: list[SkippedToolView]
    taken_at: str | None
    protocol_version: str | None


class ServerInfoView(TypedDict):
    """What a server says about itself."""

    name: str


class TestFailureView(TypedDict):
    """Why a test failed; `stderr` is the end of what a started server printed there."""

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
    """What was printed when a server was installed, and the end of its error output."""

    text: str


class ImportedEntryView(TypedDict):
    """What became of an entry: `outcome` is `created` or `skipped`, `remarks` say why, or what to look after."""

    name: str
    slug: str
    outcome: str
    kind: str | None
    needs_install: bool
    remarks: list[str]


class ImportView(TypedDict):
    """What became of each entry, in the order of the file."""

    data: list[ImportedEntryView]


class McpServerPage(TypedDict):
    """A page of servers; `next_cursor` is null on the last one."""

    data: list[McpServerView]
    next_cursor: str | None


def server_view(server: McpServer) -> McpServerView:
    """A server as JSON."""
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
