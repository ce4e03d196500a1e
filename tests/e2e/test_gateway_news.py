"""What official clients of both generations are told by the gateway without asking."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import PromptsListChanged, ResourceUpdated, ServerEvent, ToolsListChanged
from mcp_types import (
    LoggingMessageNotificationParams,
    ResourceUpdatedNotification,
    ToolListChangedNotification,
)

from tests.e2e.service import Json, Service, a_turn, serving

TALKING = Path(__file__).parents[1] / "integration" / "mcp" / "servers" / "talking_server.py"
NOTES = "mcp+talking:test://notes"
pytestmark = [
    pytest.mark.requirement("F5"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


def opened(service: Service, **settings: object) -> Json:
    """A session over an agent with a server that logs, and says what changes."""
    service.server("talking", sys.executable, str(TALKING), **settings)
    service.agent("helper", service.script("helper", a_turn("Hello.")), mcp_servers=["talking"], tools=[])
    return service.call("POST", "/gateway-sessions", {"agent_id": "helper"})


@asynccontextmanager
async def connected(session: Json, **settings: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {session['token']}"}, timeout=httpx2.Timeout(30, read=300)
        ) as http,
        Client(streamable_http_client(session["url"], http_client=http), **settings) as client,
    ):
        yield client


async def until(condition: Callable[[], object], again: Callable[[], Any] | None = None) -> None:
    """Waits for what the service says; `again` is what makes it say so."""
    async with asyncio.timeout(60):
        while not condition():
            if again is not None:
                await again()
            await asyncio.sleep(0.05)


async def noted(events: AsyncIterator[ServerEvent], heard: list[ServerEvent]) -> None:
    """Keeps what comes, until the end."""
    async for event in events:
        heard.append(event)  # noqa: PERF401 (it is read meanwhile)


def changed(service: Service, **settings: object) -> None:
    service.call("PATCH", "/agents/helper", settings)


async def test_a_legacy_client_hears_of_changed_tools_updated_resources_and_logs(tmp_path: Path) -> None:
    told: list[object] = []
    logs: list[LoggingMessageNotificationParams] = []

    async def hear(message: object) -> None:
        told.append(message)

    async def log(params: LoggingMessageNotificationParams) -> None:
        logs.append(params)

    def of_kind(kind: type) -> list[Any]:
        return [message for message in told if isinstance(message, kind)]

    with serving(tmp_path / "home") as service:
        session = opened(service)
        async with connected(session, mode="legacy", message_handler=hear, logging_callback=log) as client:
            assert len((await client.list_tools()).tools) == 3
            await client.call_tool("mcp__talking__work", {})
            assert logs == []
            await client.set_logging_level("info")  # type: ignore[deprecated]
            await client.call_tool("mcp__talking__work", {"say": "hello"})
            await until(lambda: len(logs) >= 2)
            assert [(one.level, one.data) for one in logs][:2] == [
                ("info", {"say": "hello"}),
                ("error", {"say": "hello"}),
            ]

            await client.subscribe_resource(NOTES)  # type: ignore[deprecated]

            async def touch() -> None:
                await client.call_tool("mcp__talking__touch", {"uri": "test://notes"})

            await until(lambda: of_kind(ResourceUpdatedNotification), touch)
            assert {one.params.uri for one in of_kind(ResourceUpdatedNotification)} == {NOTES}

            changed(service, tool_policies={"mcp__talking__work": {"decision": "deny"}})
            await until(lambda: of_kind(ToolListChangedNotification))
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                "mcp__talking__relist",
                "mcp__talking__touch",
            ]


async def test_a_modern_client_hears_of_what_it_listens_for(tmp_path: Path) -> None:
    logs: list[LoggingMessageNotificationParams] = []

    async def log(params: LoggingMessageNotificationParams) -> None:
        logs.append(params)

    with serving(tmp_path / "home") as service:
        session = opened(service)
        async with connected(session, log_level="error", logging_callback=log) as client:
            await client.call_tool("mcp__talking__work", {"say": "hello"})
            await until(lambda: logs)
            assert [one.data for one in logs][:1] == [{"say": "hello"}]
            assert {one.level for one in logs} == {"error"}
            heard: list[ServerEvent] = []
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resource_subscriptions=[NOTES, "mcp+nobody:x"]
            ) as subscription:
                assert subscription.honored.resource_subscriptions == [NOTES]

                async def touch() -> None:
                    await client.call_tool("mcp__talking__touch", {"uri": "test://notes"})

                async def relist() -> None:
                    await client.call_tool("mcp__talking__relist", {})

                reading = asyncio.create_task(noted(subscription, heard))
                await until(lambda: ResourceUpdated(NOTES) in heard, touch)
                # What the server itself says of its prompts comes from the connection that the
                # session has for itself.
                await until(lambda: PromptsListChanged() in heard, relist)
                changed(service, tool_policies={"mcp__talking__work": {"decision": "deny"}})
                await until(lambda: ToolsListChanged() in heard)
                service.client.delete(f"/gateway-sessions/{session['id']}").raise_for_status()
                # The end comes as the protocol has it, not as a break.
                async with asyncio.timeout(60):
                    await reading
