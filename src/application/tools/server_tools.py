"""Builds the overview of one MCP server for runs: tools under model-facing names, and instructions
of trusted servers."""

from collections.abc import Iterable

from application.mcp.ports import McpConnections, ServerState
from application.tools.toolset import ServerOverview
from domain.mcp.behavior import ConnectionLoss
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.server import Credentials, Isolation, McpServer, McpServerKind
from domain.mcp.server_pin import ServerPin
from domain.tools.capabilities import ToolType
from domain.tools.names import model_facing_name
from domain.tools.tool import McpBinding, Tool

INSTRUCTIONS_LIMIT_BYTES = 2048
"""Limit of a trusted server's instructions in the system prompt (row A13)."""


def overview_of(server: McpServer, catalog: McpCatalog) -> ServerOverview:
    instructions = catalog.instructions if server.config.trusted else None
    pin = ServerPin.of(server)
    # The catalog may be of an earlier version of the server.
    offered = [tool for tool in catalog.usable if server.config.offers(tool.name)]
    return ServerOverview(
        slug=server.config.slug,
        tools=tuple(sorted((bound_tool(server, tool, pin=pin) for tool in offered), key=lambda tool: tool.name)),
        instructions=None if instructions is None else _capped(instructions),
        awaiting_approval=catalog.awaiting_approval,
        settled=catalog.server_version == server.version and not hides_lost_tools(server),
        hides_lost=hides_lost_tools(server),
    )


def hides_lost_tools(server: McpServer) -> bool:
    """Whether the tools are left out while the connection is lost."""
    return (server.config.on_connection_loss, server.config.isolation) == (ConnectionLoss.UNREGISTER, Isolation.SHARED)


def is_unregistered(server: McpServer, connections: McpConnections) -> bool:
    """Whether the tools are left out now. The last error remains while a lost server reconnects."""
    status = connections.status(server) if hides_lost_tools(server) else None
    return status is not None and status.state is not ServerState.CONNECTED and status.last_error is not None


def inline_overview(
    server: McpServer, definitions: Iterable[McpToolDefinition], instructions: str | None
) -> ServerOverview:
    """Overview of a server that belongs to one workflow run."""
    tools = (bound_tool(server, definition, is_inline=True) for definition in definitions)
    return ServerOverview(
        slug=server.config.slug,
        tools=tuple(sorted(tools, key=lambda tool: tool.name)),
        instructions=None if instructions is None else _capped(instructions),
    )


def bound_tool(
    server: McpServer, definition: McpToolDefinition, *, is_inline: bool = False, pin: ServerPin | None = None
) -> Tool:
    """The server's tool for runs, with the server itself if it is not registered. Hints of tools
    apply only if the server is trusted (MCP server/tools, annotations)."""
    return Tool(
        name=model_facing_name(server.config.slug, definition.name),
        type=ToolType.MCP_TOOL,
        description=definition.description,
        parameters=definition.input_schema,
        mcp=McpBinding(
            server_id=server.id,
            server_slug=server.config.slug,
            tool_name=definition.name,
            output_schema=definition.output_schema,
            timeout_s=server.config.timeout_s,
            definition=definition,
            inline=server if is_inline else None,
            pin=pin,
            asks=server.config.asks,
            own_accounts=server.config.credentials is Credentials.PERSON,
            continues=server.config.kind is McpServerKind.A2A,
        ),
        repeatable=server.config.trusted and (definition.read_only_hint or definition.idempotent_hint),
    )


def _capped(instructions: str) -> str:
    return instructions.encode("utf-8", "replace")[:INSTRUCTIONS_LIMIT_BYTES].decode("utf-8", "ignore")
