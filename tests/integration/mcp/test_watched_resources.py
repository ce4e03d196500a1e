"""Resources of real servers that are watched: asked for once, told to all that watch, and asked for
again on a new connection."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from application.mcp.news import ListKind
from application.mcp.ports import McpFailure
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import Isolation, McpServer
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.connections.resource_watches import ResourceWatches
from infrastructure.mcp.wrappers.announced_news import AnnouncedNews
from tests.builders import ORG, RUN, SERVER, numbered
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.doubles.state import InMemoryState
from tests.integration.mcp.parts import (
    IN_RUN,
    ISOLATED_PYTHON,
    SERVERS,
    a_call,
    remote,
    sdk_connections,
    serving,
    started,
    text_of,
    until,
)
from tests.integration.mcp.servers.talking_server import talking_server

OTHER = McpServerId(numbered("mcp", 2))
pytestmark = pytest.mark.requirement("F5")


def resource_server(**settings: Any) -> McpServer:
    return started(*ISOLATED_PYTHON, str(SERVERS / "resource_server.py"), **settings)


@asynccontextmanager
async def watching(sdk: SdkMcpConnections) -> AsyncIterator[ResourceWatches]:
    watches = ResourceWatches(
        sdk,
        person_secrets=InMemoryPersonSecretStore(InMemoryState()),
        row_notifications=RowNotifications(shared=False),
        fraction=lambda: 0.01,
    )
    try:
        yield watches
    finally:
        await watches.close()


async def subscribed(sdk: SdkMcpConnections, server: McpServer) -> tuple[list[str], int]:
    """What the server says is subscribed to, and how often that was asked for."""
    names, asked = json.loads(text_of(await sdk.call_tool(server, IN_RUN, a_call("subscribed"))))
    return names, asked


async def test_an_older_server_is_asked_once_for_all_that_watch_and_told_when_nobody_does() -> None:
    server = resource_server()
    mine: list[str] = []
    theirs: list[str] = []
    async with sdk_connections() as sdk, watching(sdk) as watches:
        releases = [watches.watch(server, IN_RUN, "file:///a", told) for told in (mine.append, theirs.append)]
        releases.append(watches.watch(server, IN_RUN, "file:///b", theirs.append))
        await until(lambda: sdk.connection_count == 1)
        while (await subscribed(sdk, server))[0] != ["file:///a", "file:///b"]:
            pass
        assert (await subscribed(sdk, server))[1] == 2
        await sdk.call_tool(server, IN_RUN, a_call("touch", uri="file:///a"))
        await until(lambda: mine and theirs)
        assert (mine, theirs) == (["file:///a"], ["file:///a"])

        releases[0]()
        releases[0]()
        assert (await subscribed(sdk, server))[0] == ["file:///a", "file:///b"]
        releases[1]()
        while (await subscribed(sdk, server))[0] != ["file:///b"]:
            pass
        releases[2]()
        while (await subscribed(sdk, server))[0]:
            pass
        await until(lambda: watches.count == 0)


async def test_what_is_watched_is_watched_again_after_the_connection_was_lost() -> None:
    server = resource_server()
    told: list[str] = []
    async with sdk_connections() as sdk, watching(sdk) as watches:
        release = watches.watch(server, IN_RUN, "file:///a", told.append)
        while not (await subscribed(sdk, server))[0]:
            pass
        with pytest.raises(McpFailure):
            await sdk.call_tool(server, IN_RUN, a_call("leave"))
        # Something may have been missed meanwhile, which is told as an update.
        await until(lambda: told == ["file:///a"])
        assert (await subscribed(sdk, server)) == (["file:///a"], 1)
        await sdk.call_tool(server, IN_RUN, a_call("touch", uri="file:///a"))
        await until(lambda: told == ["file:///a"] * 2)
        release()


async def test_a_newer_server_is_listened_to_for_what_is_wanted_now() -> None:
    first: list[str] = []
    second: list[str] = []
    async with serving(talking_server().streamable_http_app()) as url, sdk_connections() as sdk:
        server = remote(f"{url}/mcp")
        async with watching(sdk) as watches:
            release = watches.watch(server, IN_RUN, "test://notes", first.append)

            async def touched(uri: str, told: list[str]) -> None:
                while not told:
                    await sdk.call_tool(server, IN_RUN, a_call("touch", uri=uri))

            await touched("test://notes", first)
            other = watches.watch(server, IN_RUN, "test://other", second.append)
            await touched("test://other", second)
            assert set(first) == {"test://notes"}
            release()
            first.clear()
            second.clear()
            await touched("test://other", second)
            assert first == []
            other()
            await until(lambda: watches.count == 0)


async def test_watching_ends_with_what_the_connection_was_for() -> None:
    server = resource_server()
    async with sdk_connections() as sdk, watching(sdk) as watches:
        release = watches.watch(server, IN_RUN, "file:///a", print)
        while not (await subscribed(sdk, server))[0]:
            pass
        release()
        await sdk.release(IN_RUN)
        await until(lambda: sdk.connection_count == 0 and watches.count == 0)


async def test_lists_that_change_are_told_with_whose_connection_it_was() -> None:
    told: list[tuple[OrganizationId, McpServerId, str | None, ListKind]] = []
    async with (
        serving(talking_server().streamable_http_app()) as url,
        sdk_connections(on_listed=lambda *news: told.append(news)) as sdk,
    ):
        await sdk.call_tool(resource_server(), IN_RUN, a_call("relist"))
        await until(lambda: told)
        assert told == [(ORG, SERVER, RUN, ListKind.RESOURCES)]
        told.clear()
        shared = remote(f"{url}/mcp", id=OTHER, isolation=Isolation.SHARED)
        while len(told) < 2:
            await sdk.call_tool(shared, IN_RUN, a_call("relist"))
    assert set(told) == {(ORG, OTHER, None, ListKind.RESOURCES), (ORG, OTHER, None, ListKind.PROMPTS)}


def test_what_one_process_hears_of_a_server_is_told_in_every_other() -> None:
    class Wires:
        """Announcements that all processes but the sender hear."""

        def __init__(self) -> None:
            self.ears: list[tuple[str, Any]] = []

        def wake(self, *topics: str) -> None:
            for topic in topics:
                for word, hear in self.ears[1:]:
                    assert topic.startswith(word)
                    hear(topic)

        def subscribe_prefix(self, word: str, hear: Any) -> None:
            self.ears.append((word, hear))

    here: list[object] = []
    there: list[object] = []
    wires = Wires()
    news = AnnouncedNews(lambda *said: here.append(said), announcements=wires)
    AnnouncedNews(lambda *said: there.append(said), announcements=wires)
    news.listed(ORG, SERVER, None, ListKind.PROMPTS)
    news.listed(ORG, SERVER, RUN, ListKind.RESOURCES)
    assert here == there == [(ORG, SERVER, None, ListKind.PROMPTS), (ORG, SERVER, RUN, ListKind.RESOURCES)]
