"""A client that leaves while its call is under way: of the older generation the call goes on, of
the newer it is cancelled."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from application.mcp.ports import McpReply
from domain.ids import GatewaySessionId
from domain.tools.result import ToolOutcome
from tests.builders import ORG
from tests.doubles.mcp_connections import InMemoryTool, Invocation, text_reply
from tests.integration.http.gateway_caller import ECHO, HOST, LEGACY, a_modern_request, an_agent, opened
from tests.integration.http.service import Conversation, Service


class HeldTool:
    """Answers once it may."""

    def __init__(self) -> None:
        self.began, self.may_end = asyncio.Event(), asyncio.Event()

    async def __call__(self, invocation: Invocation) -> McpReply:
        self.began.set()
        await self.may_end.wait()
        return text_reply("late")


@pytest.mark.requirement("A12", "F5")
@pytest.mark.parametrize(("is_modern", "outcome"), [(False, ToolOutcome.SUCCEEDED), (True, ToolOutcome.UNKNOWN)])
async def test_a_call_whose_client_left_is_kept_with_what_became_of_it(
    service: Service, *, is_modern: bool, outcome: ToolOutcome
) -> None:
    held = HeldTool()
    service.connections.servers["files"].tools = {"echo": InMemoryTool(answer=held)}
    await an_agent(service)
    caller = await opened(service)
    call: dict[str, object] = {"name": ECHO, "arguments": {}}
    message: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers: dict[str, str | None] = {"mcp-protocol-version": LEGACY}
    if is_modern:
        message, headers = a_modern_request("tools/call", call)

    async def body() -> AsyncGenerator[bytes, None]:
        yield json.dumps(message).encode()

    said = {name: value for name, value in headers.items() if value is not None}
    conversation = Conversation(
        service.app,
        "POST",
        "/mcp",
        headers={"host": HOST, "content-type": "application/json", "accept": "application/json", **said},
        token=caller.token or "",
        body=body(),
    )
    holding = asyncio.create_task(conversation.hold())
    async with asyncio.timeout(60):
        await held.began.wait()
        conversation.left.set()
        if is_modern:
            await holding
        held.may_end.set()
        await holding
        settled = None
        while settled is None:
            await asyncio.sleep(0)
            ((_, settled),) = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    assert settled.result.outcome is outcome
    assert len(service.connections.cancelled) == is_modern
