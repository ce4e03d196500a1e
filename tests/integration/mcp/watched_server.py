"""A real MCP server (the SDK's, both generations) in the test's own process, so that its handlers
can be watched."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

from tests.integration.mcp.parts import serving

PAGE = 2
Context = ServerRequestContext[dict[str, Any]]


class WatchedServer:
    """`tools` may be changed while it runs; `requests` counts by method; `headers` are those of the
    last call."""

    def __init__(self) -> None:
        self.tools = {name: self.definition(name) for name in ("ask", "big", "echo", "hang", "routed")}
        self.tools["routed"].input_schema["properties"] = {"region": {"type": "string", "x-mcp-header": "Region"}}
        self.requests: list[str] = []
        self.headers: dict[str, str] = {}
        self.hanging = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.bus = InMemorySubscriptionBus()
        self.server = Server(
            "watched",
            instructions="Handle \x07with care.\n",
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_subscriptions_listen=ListenHandler(self.bus),
            get_tool_input_schema=lambda name: self.tools[name].input_schema if name in self.tools else None,
        )

    @staticmethod
    def definition(name: str) -> types.Tool:
        return types.Tool(name=name, description=f"Does {name}.", input_schema={"type": "object", "properties": {}})

    @asynccontextmanager
    async def serve(self, *, json_response: bool = False, port: int = 0, **options: Any) -> AsyncIterator[str]:
        """Its address, at any port or the one given; `options` as of `serving`."""
        app = self.server.streamable_http_app(json_response=json_response)
        async with serving(app, port, **options) as address:
            yield f"{address}/mcp"

    @asynccontextmanager
    async def serve_sse(self, **options: Any) -> AsyncIterator[str]:
        """Its address in the transport before streamable HTTP."""
        transport = SseServerTransport("/messages/")

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                return
            if scope["path"] != "/sse":
                return await transport.handle_post_message(scope, receive, send)
            self.requests.append("GET /sse")
            async with transport.connect_sse(scope, receive, send) as (incoming, outgoing):
                await self.server.run(incoming, outgoing, self.server.create_initialization_options())

        async with serving(app, **options) as address:
            yield f"{address}/sse"

    async def tools_changed(self) -> None:
        await self.bus.publish(ToolsListChanged())

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self.requests.append("tools/list")
        begin = int(params.cursor) if params and params.cursor else 0
        end = begin + PAGE
        names = sorted(self.tools, reverse=True)
        return types.ListToolsResult(
            tools=[self.tools[name] for name in names[begin:end]], next_cursor=str(end) if end < len(names) else None
        )

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        self.requests.append("tools/call")
        self.headers = dict(ctx.request.headers) if ctx.request is not None else {}
        arguments = params.arguments or {}
        match params.name:
            case "ask":
                return await self.ask(ctx)
            case "big":
                return self.text("x" * arguments["size"])
            case "hang":
                return await self.hang()
            case "echo" | "routed":
                return self.text(str(arguments))
            case _:
                raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")

    async def ask(self, ctx: Context) -> types.CallToolResult:
        try:
            await ctx.session.elicit_form("Your name?", {"type": "object", "properties": {}}, ctx.request_id)
        except MCPError as exc:
            return self.text(f"refused: {exc.message}")
        return self.text("answered")

    async def hang(self) -> types.CallToolResult:
        self.hanging.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()
        raise AssertionError("for ever has passed")

    @staticmethod
    def text(text: str) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
