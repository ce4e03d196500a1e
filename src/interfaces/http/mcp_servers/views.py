"""MCP servers, their status, tools and test results as JSON. Values of env and headers never appear."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict, cast

from application.mcp.check_mcp_server import McpCheckResult
from application.mcp.import_mcp_servers import ImportedEntry
from application.mcp.ports import ServerStatus
from application.mcp.queries import McpServerTools
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.pinning import DefinitionState, PinnedTool, pinned_tools
from domain.mcp.server import McpServer
from domain.threads.message_json import timestamp
from domain.tools.names import model_facing_name
from interfaces.http.mcp_servers.auth_views import AuthView, auth_view
from interfaces.http.page_views import cut
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


def status_view(status: ServerStatus) -> ServerStatusView:
    """A status as JSON."""
    install = status.install
    return {
        "state": status.state.value,
        "since": timestamp(status.since),
        "last_error": status.last_error,
        "protocol_version": status.protocol_version,
        "tool_count": status.tool_count,
        "installed_version": status.installed_version,
        "installed_at": None if status.installed_at is None else timestamp(status.installed_at),
        "install": None if install is None else {"step": install.step, "percent": install.percent},
        "processes": [
            {
                "name": process.name,
                "state": process.state.value,
                "since": timestamp(process.since),
                "last_error": process.last_error,
            }
            for process in status.processes
        ],
    }


def import_view(entries: tuple[ImportedEntry, ...]) -> ImportView:
    """The outcome of an import as JSON."""
    return {
        "data": [
            {
                "name": entry.name,
                "slug": entry.slug,
                "outcome": entry.outcome.value,
                "kind": None if entry.server is None else entry.server.config.kind.value,
                "needs_install": entry.server is not None and entry.server.lacks_installation,
                "remarks": list(entry.remarks),
            }
            for entry in entries
        ]
    }


def tools_view(tools: McpServerTools, *, limit: int | None = None, cursor: str | None = None) -> McpServerToolsView:
    """A server's catalog as JSON, or a page of it. Raises INVALID `cursor_invalid`."""
    catalog = tools.catalog
    page = cut(() if catalog is None else pinned_tools(catalog), limit, cursor)
    if catalog is None:
        return {"data": [], "next_cursor": None, "skipped": [], "taken_at": None, "protocol_version": None}
    slug = tools.server.config.slug
    return {
        "data": [pinned_tool_view(slug, tool) for tool in page["data"]],
        "next_cursor": page["next_cursor"],
        "skipped": _skipped(catalog),
        "taken_at": timestamp(catalog.taken_at),
        "protocol_version": catalog.protocol_version,
    }


def outcome_view(result: McpCheckResult) -> TestResultView:
    """The outcome of a test as JSON."""
    catalog = result.catalog
    error: TestFailureView | None = None
    if result.error is not None:
        error = {"code": result.error.code.value, "detail": result.error.detail}
        if result.error.stderr:
            error["stderr"] = result.error.stderr
    return {
        "ok": result.error is None,
        "protocol_version": catalog.protocol_version if catalog else None,
        "server_info": {"name": catalog.server_name} if catalog else None,
        "tools": _tools(result.slug, catalog) if catalog else [],
        "skipped": _skipped(catalog) if catalog else [],
        "latency_ms": result.latency_ms,
        "error": error,
    }


def pinned_tool_view(slug: str, tool: PinnedTool) -> PinnedToolView:
    """A tool with its state as JSON."""
    view: dict[str, object] = {
        **_tool(slug, tool.definition),
        "state": tool.state.value,
        "digest": tool.definition.digest,
    }
    if tool.state is DefinitionState.QUARANTINED:
        view["diff"] = tool.diff
    return cast(PinnedToolView, view)


def _tools(slug: str, catalog: McpCatalog) -> list[McpToolView]:
    return [_tool(slug, tool) for tool in catalog.tools]


def _tool(slug: str, tool: McpToolDefinition) -> McpToolView:
    return {
        "name": tool.name,
        "model_name": model_facing_name(slug, tool.name),
        "description": tool.description,
        "parameters": tool.input_schema,
        "output_schema": tool.output_schema,
        "read_only_hint": tool.read_only_hint,
        "idempotent_hint": tool.idempotent_hint,
        "destructive_hint": tool.destructive_hint,
    }


def _skipped(catalog: McpCatalog) -> list[SkippedToolView]:
    return [{"name": tool.name, "reason": tool.reason} for tool in catalog.skipped]
