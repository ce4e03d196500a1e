"""MCP servers, their tools and test results as text for people."""

from interfaces.cli.shapes import McpServer, McpStatus, McpTestOutcome, McpTool, McpTools, SkippedTool
from interfaces.cli.terminal import Terminal, duration, one_line

_DESCRIPTION_LIMIT = 100
_STDERR_LINES = 10


def show_server(terminal: Terminal, server: McpServer, status: McpStatus) -> None:
    """A server's settings and the state of its connections."""
    terminal.fields(
        {
            "slug": server.slug,
            "id": server.id,
            "kind": server.kind,
            "reached by": server.reached_by,
            "installed": _installed(status),
            "env": ", ".join(server.env),
            "headers": ", ".join(server.headers),
            "isolation": server.isolation,
            "elicitation": server.elicitation,
            "sampling": server.sampling,
            "roots": server.roots,
            "trusted": "yes" if server.trusted else "no",
            "enabled": "yes" if server.enabled else "no",
            "on connection loss": server.on_connection_loss,
            "calls at one time": "" if server.max_concurrency is None else str(server.max_concurrency),
            "rate limit": _rate_limit(server),
            "timeout": "" if server.timeout_s is None else f"{server.timeout_s:g} s",
            "state": f"{status.state} since {status.since}" if status.since else status.state,
            "protocol": status.protocol_version or "",
            "tools": "" if status.tool_count is None else str(status.tool_count),
            "last error": one_line(status.last_error or ""),
            "other processes": ", ".join(f"{process['name']} {process['state']}" for process in status.processes),
        }
    )


def _rate_limit(server: McpServer) -> str:
    limit = server.rate_limit
    return "" if limit is None else f"{limit['calls']:g} calls in {limit['per_s']:g} s"


def _installed(status: McpStatus) -> str:
    if status.install is not None:
        return f"{status.install.step}, {status.install.percent} %"
    return "" if status.installed_version is None else f"{status.installed_version} since {status.installed_at}"


def show_tools(terminal: Terminal, slug: str, tools: McpTools) -> None:
    """A server's tools, and those of them that could not be registered."""
    unseen = f"{slug} was never asked for its tools; `dragoman mcp tools {slug} --refresh` asks it."
    terminal.table(
        ("name", "called by models", "state", "description"),
        [
            (tool.name, tool.model_name, tool.state, one_line(tool.description, _DESCRIPTION_LIMIT))
            for tool in tools.data
        ],
        empty=unseen if tools.taken_at is None else f"{slug} offers no tools.",
    )
    _note_skipped(terminal, tools.skipped)
    waiting = sum(tool.is_quarantined for tool in tools.data)
    if waiting:
        terminal.note(f"{waiting} in quarantine; `dragoman mcp approve {slug}` shows what is new or has changed.")


def show_difference(terminal: Terminal, tool: McpTool) -> None:
    """What approving a tool would change."""
    terminal.line(f"{tool.name} ({tool.digest})")
    for line in tool.diff.splitlines():
        terminal.line(f"  {line}")


def show_outcome(terminal: Terminal, slug: str, outcome: McpTestOutcome) -> None:
    """Whether a server works, and if not why."""
    if outcome.ok:
        terminal.line(f"{slug} works.")
        terminal.fields(
            {
                "server": "" if outcome.server_info is None else outcome.server_info.name,
                "protocol": outcome.protocol_version or "",
                "tools": str(len(outcome.tools)),
                "took": duration(outcome.latency_ms),
            }
        )
        _note_skipped(terminal, outcome.skipped)
        return
    error = outcome.error
    terminal.line(f"{slug} does not work: {error.detail if error else 'no reason given'}")
    terminal.fields({"code": error.code if error else "", "took": duration(outcome.latency_ms)})
    last_words = error.stderr.rstrip().splitlines()[-_STDERR_LINES:] if error else []
    if last_words:
        terminal.line("The end of what it wrote to stderr:")
        for line in last_words:
            terminal.line(f"  {line}")


def _note_skipped(terminal: Terminal, skipped: list[SkippedTool]) -> None:
    for tool in skipped:
        terminal.note(f"Skipped {tool.name}: {tool.reason}")
