"""Tool names in a workflow: each name is unique per agent."""

from collections.abc import Iterator, Mapping

from domain.tools.capabilities import ToolType
from domain.tools.names import AGENT_PREFIX, agent_tool_name, model_facing_name
from domain.workflows.faults import Fault, FaultCode
from domain.workflows.graph import AgentNodeConfig, HttpRequestConfig, McpServerNodeConfig, NativeToolConfig
from domain.workflows.plan import PlannedNode
from domain.workflows.wiring import Wiring

RESERVED_NAMES = frozenset({*(kind.value for kind in ToolType), "search_tools", "call_tool"})
"""Names of Dragoman's own tools, so that rules about these never affect others."""


def tool_name_faults(nodes: Mapping[str, PlannedNode], wiring: Wiring) -> Iterator[Fault]:
    """Faults for reserved names, and for several tools with one name at one agent."""
    for node in nodes.values():
        if isinstance(node.config, HttpRequestConfig) and node.config.tool is not None:
            name = node.config.tool.name
            if name in RESERVED_NAMES or name.startswith(AGENT_PREFIX):
                what = f"{AGENT_PREFIX}…" if name.startswith(AGENT_PREFIX) else name
                message = f"{what!r} is the name of a built-in tool of Dragoman."
                path = "config.tool.name"
                yield Fault(code=FaultCode.TOOL_NAME_CLASH, message=message, node_ids=(node.id,), path=path)
    for agent_id, sources in wiring.tools.items():
        owners_of: dict[str, list[str]] = {}
        for source in sources:
            for name in _names(nodes[source]):
                owners_of.setdefault(name, []).append(source)
        for name, owners in owners_of.items():
            rivals = list(dict.fromkeys((*owners, *_whole_servers(name, owners_of))))
            if len(rivals) > 1:
                message = f"At {agent_id!r} several tools have the name {name!r}: {', '.join(rivals)}."
                yield Fault(code=FaultCode.TOOL_NAME_CLASH, message=message, node_ids=(*rivals, agent_id))


def _whole_servers(name: str, owners_of: Mapping[str, list[str]]) -> list[str]:
    """Nodes that provide every tool of a server, including this one."""
    server, separator, _ = name.removeprefix("mcp__").partition("__")
    return owners_of.get(f"mcp__{server}__*", []) if separator and name.startswith("mcp__") else []


def _names(node: PlannedNode) -> tuple[str, ...]:
    """The names of the node's tools, as far as they are known. Names of MCP tools begin with the
    server's slug."""
    match node.config:
        case HttpRequestConfig(tool=tool) if tool is not None and tool.name:
            return (tool.name,)
        case AgentNodeConfig(agent=agent) if agent:
            return (agent_tool_name(agent),)
        case NativeToolConfig(tool=native):
            return (native.value,)
        case McpServerNodeConfig(server=server, tools=None) if server:
            return (f"mcp__{server}__*",)
        case McpServerNodeConfig(server=server, tools=tools) if server and tools is not None:
            return tuple(model_facing_name(server, tool) for tool in tools)
        case _:
            return ()
