"""MCP servers, their tools and test results as text for people."""

import shlex

from interfaces.cli.terminal import Terminal, duration, one_line
from interfaces.http.mcp_servers.views import (
    McpServerToolsView,
    McpServerView,
    PinnedToolView,
    ServerStatusView,
    SkippedToolView,
    TestResultView,
)

_DESCRIPTION_LIMIT = 100
_STDERR_LINES = 10
_NEEDS_OLDER_SDK = "AttributeError: 'Server' object has no attribute"
"""A method of the Python SDK before version 2."""


def show_server(
    terminal: Terminal, server: McpServerView, status: ServerStatusView, *, newer: str | None = None
) -> None:
    terminal.fields(
        {
            "slug": server["slug"],
            "id": server["id"],
            "kind": server["kind"],
            "source": reached_by(server),
            "installed": _installed(status),
            "registry entry": server["registry_entry"] or "",
            "newer version": newer or "",
            "env": ", ".join(server["env"]),
            "headers": ", ".join(server["headers"]),
            "only tools": "" if server["tools"] is None else ", ".join(server["tools"]) or "none",
            "declared tools": ", ".join(tool["name"] for tool in server["declared_tools"]),
            "network": " ".join((server["network"], *server["network_hosts"])),
            "client certificate": _certificate(server),
            "credentials": server["credentials"],
            "isolation": server["isolation"],
            "elicitation": server["elicitation"],
            "sampling": server["sampling"],
            "roots": server["roots"],
            "trusted": "yes" if server["trusted"] else "no",
            "enabled": "yes" if server["enabled"] else "no",
            "on connection loss": server["on_connection_loss"],
            "concurrent calls": str(server["max_concurrency"]),
            "rate limit": _rate_limit(server),
            "timeout": f"{server['timeout_s']:g} s",
            "state": f"{status['state']} since {status['since']}" if status["since"] else status["state"],
            "protocol": status["protocol_version"] or "",
            "tools": "" if status["tool_count"] is None else str(status["tool_count"]),
            "last error": one_line(status["last_error"] or ""),
            "other processes": ", ".join(f"{process['name']} {process['state']}" for process in status["processes"]),
        }
    )


def reached_by(server: McpServerView) -> str:
    """Its URL, or what it is installed from and its command, with the arguments."""
    if server["url"] is not None:
        return server["url"]
    source = server["package"] or server["path"]
    start = shlex.join(part for part in (server["command"], *server["args"]) if part is not None)
    return " ".join(part for part in (source, server["version"], start) if part)


def is_quarantined(tool: PinnedToolView) -> bool:
    """Whether it waits for approval."""
    return tool["state"] == "quarantined"


def _certificate(server: McpServerView) -> str:
    tls = server["tls"]
    if tls is None or tls["expires_at"] is None:
        return ""
    return f"{tls['subject']}, expires {tls['expires_at']}"


def _rate_limit(server: McpServerView) -> str:
    limit = server["rate_limit"]
    return "" if limit is None else f"{limit['calls']:g} calls in {limit['per_s']:g} s"


def _installed(status: ServerStatusView) -> str:
    if status["install"] is not None:
        return f"{status['install']['step']}, {status['install']['percent']} %"
    return (
        "" if status["installed_version"] is None else f"{status['installed_version']} since {status['installed_at']}"
    )


def show_tools(terminal: Terminal, slug: str, tools: McpServerToolsView) -> None:
    """A server's tools, and those that could not be registered."""
    unseen = f"{slug} was never listed; `dragoman mcp tools {slug} --refresh` asks it."
    terminal.table(
        ("name", "called by models", "state", "description"),
        [
            (tool["name"], tool["model_name"], tool["state"], one_line(tool["description"], _DESCRIPTION_LIMIT))
            for tool in tools["data"]
        ],
        empty=unseen if tools["taken_at"] is None else f"{slug} offers no tools.",
    )
    _note_skipped(terminal, tools["skipped"])
    waiting = sum(is_quarantined(tool) for tool in tools["data"])
    if waiting:
        terminal.note(f"{waiting} in quarantine; `dragoman mcp approve {slug}` shows what is new or has changed.")


def show_difference(terminal: Terminal, tool: PinnedToolView) -> None:
    """The changes of an approval."""
    terminal.line(f"{tool['name']} ({tool['digest']})")
    for line in tool.get("diff", "").splitlines():
        terminal.line(f"  {line}")


def show_outcome(terminal: Terminal, slug: str, outcome: TestResultView) -> None:
    """The result of a test, with the reason of a failure."""
    if outcome["declared"] and outcome["ok"]:
        count = len(outcome["tools"])
        terminal.line(f"{slug} is not tested: it answers calls only. Usable of its declared tools: {count}.")
        _note_skipped(terminal, outcome["skipped"])
        terminal.note(
            f"Try a tool in a run: dragoman run TEXT --agent AGENT. What fails is in `dragoman mcp logs {slug}`."
        )
        return
    if outcome["ok"]:
        terminal.line(f"{slug} works.")
        terminal.fields(
            {
                "server": "" if outcome["server_info"] is None else outcome["server_info"]["name"],
                "protocol": outcome["protocol_version"] or "",
                "tools": str(len(outcome["tools"])),
                "took": duration(outcome["latency_ms"]),
            }
        )
        _note_skipped(terminal, outcome["skipped"])
        return
    error = outcome["error"]
    terminal.line(f"{slug} does not work: {error['detail'] if error else 'no reason given'}")
    terminal.fields({"code": error["code"] if error else "", "took": duration(outcome["latency_ms"])})
    last_words = error.get("stderr", "").rstrip().splitlines()[-_STDERR_LINES:] if error else []
    if last_words:
        terminal.line("The end of what it wrote to stderr:")
        for line in last_words:
            terminal.line(f"  {line}")
    terminal.note(
        f"`dragoman mcp logs {slug}` shows more; `dragoman mcp update {slug} FIELD=VALUE` changes its settings."
    )
    if any(_NEEDS_OLDER_SDK in line for line in last_words):
        terminal.note('The server was written for an older MCP SDK. Register it with "mcp<2" beside its package.')


def _note_skipped(terminal: Terminal, skipped: list[SkippedToolView]) -> None:
    for tool in skipped:
        terminal.note(f"Skipped {tool['name']}: {tool['reason']}")
