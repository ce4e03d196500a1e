"""An agent's tools through the gateway, with the official MCP SDK (`mcp` 2): open a session, list
its tools, call one.

DRAGOMAN_API_KEY=… python examples/gateway_client.py AGENT TOOL '{"argument": "value"}'
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def session(url: str, key: str, agent: str) -> dict[str, str]:
    """A gateway session of an agent: `{id, token, url, …}`. The token is shown this once."""
    async with httpx2.AsyncClient(base_url=f"{url}/v1", headers={"Authorization": f"Bearer {key}"}, timeout=60) as api:
        opened = await api.post("/gateway-sessions", json={"agent_id": agent, "ttl_s": 600})
        opened.raise_for_status()
        found: dict[str, str] = opened.json()
        return found


async def main(agent: str, tool: str, arguments: str) -> None:
    url = os.environ.get("DRAGOMAN_URL", "http://127.0.0.1:8321")
    opened = await session(url, os.environ["DRAGOMAN_API_KEY"], agent)
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {opened['token']}"}, timeout=60) as http,
        Client(streamable_http_client(opened["url"], http_client=http)) as client,
    ):
        print("tools:", ", ".join(sorted(one.name for one in (await client.list_tools()).tools)))
        answer = await client.call_tool(tool, json.loads(arguments))
        print("refused:" if answer.is_error else "answer:", *(part.model_dump_json() for part in answer.content))


asyncio.run(main(*sys.argv[1:]))
