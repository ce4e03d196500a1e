"""Status, tools, tests and imports of MCP servers as JSON."""

from typing import cast

import msgspec
from litestar.serialization import encode_json

from application.mcp.check_mcp_server import McpCheckResult
from application.mcp.import_mcp_servers import ImportedEntry
from application.mcp.ports import ServerStatus
from application.mcp.queries import McpServerTools
from application.system.turns import in_turns
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.pinning import DefinitionState, PinnedTool, as_pinned
from domain.threads.message_json import timestamp
from domain.tools.names import model_facing_name
from interfaces.http.mcp_servers.views import (
    ImportView,
    McpServerToolsView,
    McpToolView,
    PinnedToolView,
    ServerStatusView,
    SkippedToolView,
    TestFailureView,
    TestResultView,
)
from interfaces.http.page_views import cut


def status_view(status: ServerStatus) -> ServerStatusView:
    install = status.install
    return {
        "state": status.state,
        "since": timestamp(status.since),
        "last_error": status.last_error,
        "protocol_version": status.protocol_version or None,
        "tool_count": status.tool_count,
        "installed_version": status.installed_version,
        "installed_at": None if status.installed_at is None else timestamp(status.installed_at),
        "install": None if install is None else {"step": install.step, "percent": install.percent},
        "processes": [
            {
                "name": process.name,
                "state": process.state,
                "since": timestamp(process.since),
                "last_error": process.last_error,
            }
            for process in status.processes
        ],
    }


def import_view(entries: tuple[ImportedEntry, ...]) -> ImportView:
    return {
        "data": [
            {
                "name": entry.name,
                "slug": entry.slug,
                "outcome": entry.outcome,
                "kind": None if entry.server is None else entry.server.config.kind,
                "needs_install": entry.server is not None and entry.server.lacks_installation,
                "remarks": list(entry.remarks),
            }
            for entry in entries
        ]
    }


async def tools_view(
    tools: McpServerTools, *, limit: int | None = None, cursor: str | None = None
) -> McpServerToolsView:
    """A server's catalog, or a page of it. Raises INVALID `cursor_invalid`."""
    catalog = tools.catalog
    page = cut(() if catalog is None else catalog.tools, limit, cursor)
    if catalog is None:
        return {"data": [], "next_cursor": None, "skipped": [], "taken_at": None, "protocol_version": None}
    slug = tools.server.config.slug
    return {
        "data": [_encoded(slug, as_pinned(catalog, tool)) async for tool in in_turns(page["data"])],
        "next_cursor": page["next_cursor"],
        "skipped": _skipped(catalog),
        "taken_at": timestamp(catalog.taken_at),
        "protocol_version": catalog.protocol_version or None,
    }


def _encoded(slug: str, tool: PinnedTool) -> PinnedToolView:
    """The view as JSON, which the response has unchanged: encoding 10,000 at once holds the event
    loop."""
    return cast(PinnedToolView, msgspec.Raw(encode_json(pinned_tool_view(slug, tool))))


def outcome_view(result: McpCheckResult) -> TestResultView:
    catalog = result.catalog
    error: TestFailureView | None = None
    if result.error is not None:
        error = {"code": result.error.code, "detail": result.error.detail}
        if result.error.stderr:
            error["stderr"] = result.error.stderr
    return {
        "ok": result.error is None,
        "declared": result.declared,
        "protocol_version": (catalog.protocol_version or None) if catalog else None,
        "server_info": {"name": catalog.server_name} if catalog else None,
        "tools": _tools(result.slug, catalog) if catalog else [],
        "skipped": _skipped(catalog) if catalog else [],
        "latency_ms": result.latency_ms,
        "error": error,
    }


def pinned_tool_view(slug: str, tool: PinnedTool) -> PinnedToolView:
    view: dict[str, object] = {
        **_tool(slug, tool.definition),
        "state": tool.state.value,
        "digest": tool.definition.digest,
    }
    if tool.state is not DefinitionState.APPROVED:
        view["diff"] = tool.diff
    if tool.rejection is not None:
        rejection = tool.rejection
        view["rejection"] = {"by": rejection.by, "at": timestamp(rejection.at), "reason": rejection.reason}
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
