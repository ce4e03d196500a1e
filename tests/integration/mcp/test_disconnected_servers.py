"""Servers that were disconnected stay so, whatever they say and however they end."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from application.mcp.ports import McpFailure
from domain.mcp.server import Isolation
from tests.integration.mcp.parts import IN_RUN, ISOLATED_PYTHON, a_call, descendants, plain_server, started, until
from tests.integration.mcp.test_supervision import supervision

FLOODING = str(Path(__file__).parents[2] / "e2e" / "servers" / "flooding_server.py")


@pytest.mark.requirement("S2")
async def test_a_server_that_announces_changes_without_end_stays_disconnected() -> None:
    server = started(*ISOLATED_PYTHON, FLOODING, "changes", "stdio", isolation=Isolation.SHARED)
    async with supervision() as harness:
        await harness.connections.discover(server, IN_RUN, timeout_s=60)
        await until(relisting)
        await harness.connections.forget(server.organization_id, server.id)
        await until(lambda: harness.inside.connection_count == 0)
        assert not relisting()


@pytest.mark.requirement("S2")
async def test_a_disconnected_server_that_dies_in_its_last_call_is_not_started_again() -> None:
    server = plain_server(isolation=Isolation.SHARED)
    before = descendants()
    async with supervision() as harness:
        call = asyncio.create_task(harness.connections.call_tool(server, IN_RUN, a_call("hang")))
        await until(lambda: "hanging" in harness.inside.logs(server))
        await harness.connections.forget(server.organization_id, server.id)
        for pid in descendants() - before:
            with suppress(ProcessLookupError):  # a server ends with its launcher
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(McpFailure):
            await call
        await until(lambda: harness.inside.connection_count == 0)
        assert harness.connections.servers_reconnecting == 0


def relisting() -> list[str]:
    """Tasks that list tools again because a server announced changes."""
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "mcp-tools-changed"]
