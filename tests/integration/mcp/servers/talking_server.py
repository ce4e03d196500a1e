"""A server of the official SDK that logs while it works, and says what changes."""

from mcp.server.mcpserver import Context, MCPServer


def talking_server() -> MCPServer:
    """A new one."""
    server = MCPServer("talking")

    @server.tool()
    async def work(ctx: Context, say: str = "working") -> str:
        for level in ("debug", "info", "error"):
            await ctx.session.send_log_message(level, {"say": say}, logger="w", related_request_id=ctx.request_id)
        await ctx.session.send_log_message("error", "in general", logger="w")
        return "worked"

    @server.resource("test://notes")
    def notes() -> str:
        return "notes"

    @server.tool()
    async def touch(ctx: Context, uri: str) -> str:
        await ctx.notify_resource_updated(uri)
        return "touched"

    @server.tool()
    async def relist(ctx: Context) -> str:
        await ctx.notify_resources_changed()
        await ctx.notify_prompts_changed()
        return "others"

    return server


if __name__ == "__main__":
    talking_server().run()
