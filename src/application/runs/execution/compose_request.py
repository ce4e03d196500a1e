"""Composes the model's request from instructions, servers, tools and messages.

The system prompt and the tool definitions are identical for every turn of a run, so that
providers' prompt caches hit. The overview of servers is stored with the run at its start.
"""

from application.tools.toolset import ServerOverview, Toolset
from domain.agents.agent import AgentConfig
from domain.tools.meta_tools import CALL_TOOL, SEARCH_TOOLS

_DESCRIPTION_LIMIT = 120
_NAMED_TOOLS = 5
_LISTED = "These servers provide tools to you:"
_SEARCHED = (
    f"These servers provide more tools than can be listed. Find what you need with {SEARCH_TOOLS}, then call it with "
    f"{CALL_TOOL}."
)


def servers_overview(toolset: Toolset) -> str:
    """Markdown with each server, its tools with a line each (a few of them if tools are searched
    for), unavailable servers, and the delimited instructions of trusted servers. Empty without
    servers."""
    if not toolset.servers:
        return ""
    lines = ["# MCP servers", "", _SEARCHED if toolset.is_searched else _LISTED, ""]
    for server in toolset.servers:
        lines += _server_lines(server, in_full=not toolset.is_searched)
    return "\n".join(lines).rstrip()


def system_prompt(config: AgentConfig, overview: str) -> str:
    """The agent's instructions, then the overview."""
    return "\n\n".join(part for part in (config.instructions.strip(), overview) if part)


def with_instructions(system: str, given: str | None) -> str:
    """The prompt, then the instructions of the run's client under their heading."""
    if not given:
        return system
    return "\n\n".join(part for part in (system, f"# Instructions of the client\n\n{given}") if part)


def _server_lines(server: ServerOverview, *, in_full: bool) -> list[str]:
    lines = [f"## {server.slug}"]
    if server.unavailable is not None:
        lines.append(f"Unavailable in this run: {server.unavailable}")
    if in_full:
        lines += [f"- {tool.name}: {_one_line(tool.description)}" for tool in server.tools]
    elif server.tools:
        few = ", ".join(tool.name for tool in server.tools[:_NAMED_TOOLS])
        lines.append(
            f"{len(server.tools)} tools, such as {few}" if len(server.tools) > _NAMED_TOOLS else f"Tools: {few}"
        )
    if server.awaiting_approval:
        lines.append(f"Unavailable: {server.awaiting_approval} more, awaiting approval by an administrator")
    if server.instructions:
        lines += [
            f'<server_instructions server="{server.slug}">',
            server.instructions.replace("</", "<\\/"),  # server text must not close the delimiter
            "</server_instructions>",
        ]
    return [*lines, ""]


def _one_line(description: str) -> str:
    first = description.strip().split("\n", 1)[0].strip()
    return first if len(first) <= _DESCRIPTION_LIMIT else first[: _DESCRIPTION_LIMIT - 1] + "…"
