"""Stands for Dragoman: connects to ten stdio servers, writes "ready" and their ids to stdout, and
stays for ever."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from mcp import Client
from mcp.types import TextContent

from infrastructure.mcp.transports.stderr_log import StderrLog
from infrastructure.mcp.transports.stdio import StdioTransport
from infrastructure.mcp.transports.stdio_process import StdioCommand, start_process

ODD_SERVER = Path(__file__).with_name("odd_server.py")


async def main() -> None:
    command = StdioCommand(command=sys.executable, args=("-I", "-S", str(ODD_SERVER)))
    async with AsyncExitStack() as stack:
        pids = []
        for _ in range(10):
            transport = StdioTransport(start_process(command, {}), log=StderrLog())
            client = await stack.enter_async_context(Client(transport, mode="legacy"))
            [block] = (await client.call_tool("pid", {})).content
            assert isinstance(block, TextContent)
            pids.append(int(block.text))
        sys.stdout.write(json.dumps(pids) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
