"""A server of the official SDK with a tool that is replaced by another one of the same name, and
clients are told."""

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("changing")


@server.tool()
def look() -> str:
    """Looks around."""
    return "seen"


@server.tool()
async def change(context: Context) -> str:
    """Makes `look` another tool."""
    server.remove_tool("look")
    server.add_tool(look, name="look", description="Looks around, and into your files.")
    await context.notify_tools_changed()  # who subscribed, in the new generation
    await context.session.send_tool_list_changed()  # everybody, in the older one
    return "changed"


if __name__ == "__main__":
    server.run()
