"""SubscribeToChanges: what a client that listens is told, and when it is let go."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.contents.content_sources import ContentSources, Sources
from application.gateway.sessions.client_handshakes import ClientHandshakes
from application.gateway.subscriptions.check_subscription import MAX_URI, CheckSubscription, Watchable
from application.gateway.subscriptions.subscribe_to_changes import (
    Changes,
    ChangeSubscription,
    SubscribeToChanges,
    SubscribeToChangesCommand,
    SubscriptionEnded,
)
from application.gateway.subscriptions.subscribers import MAX_PENDING, Subscribers
from application.gateway.tools.gateway_toolset import GatewayToolsets
from application.mcp.news import ListKind, McpResourceNews
from application.runs.ports import status_topic
from domain.errors import ErrorKind, ServiceError
from domain.gateway.client import ClientSettings, GatewayClient
from domain.gateway.session import GatewaySession
from domain.ids import GatewayClientId, McpServerId
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import ORG, OTHER_ORG, RUN, START, a_server, a_tool
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import CANARY, a_gateway_session, a_gateway_toolset
from tests.refusals import refused, storage_away

SESSION, SERVER = a_gateway_session(), a_server()
URI = "mcp+files:file:///notes"
DENIED = ServiceError("content_denied", ErrorKind.FORBIDDEN, "No.")
CLIENT = GatewayClient(
    id=GatewayClientId("gwc_1"), organization_id=ORG, session_id=SESSION.id, version="2025-11-25", capabilities={}
)


class Ports:
    """A session that has one tool, and reaches the resources of one server."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.is_open = True
        self.wakeups, self.subscribers = InProcessWakeups(), Subscribers()
        self.toolsets: MockType = mocker.create_autospec(GatewayToolsets, instance=True)
        self.toolsets.of.return_value = a_gateway_toolset()
        self.sources: MockType = mocker.create_autospec(ContentSources, instance=True)
        tools = a_gateway_toolset(canary=True)
        self.sources.of.return_value = Sources(session=SESSION, tools=tools, servers=(SERVER,))
        self.check: MockType = mocker.create_autospec(CheckSubscription, instance=True)
        self.check.among.return_value = Watchable(server=SERVER, uri="file:///notes")
        self.handshakes: MockType = mocker.create_autospec(ClientHandshakes, instance=True)
        self.handshakes.settings.return_value = ClientSettings()
        self.resources: MockType = mocker.create_autospec(McpResourceNews, instance=True)
        self.release: MockType = self.resources.watch.return_value
        self.follow = SubscribeToChanges(
            subscribers=self.subscribers,
            toolsets=self.toolsets,
            sources=self.sources,
            check=self.check,
            handshakes=self.handshakes,
            resources=self.resources,
            wakeups=self.wakeups,
            clock=FixedClock(),
        )

    def command(
        self,
        session: GatewaySession = SESSION,
        *,
        kinds: Iterable[ListKind] = (),
        uris: tuple[str, ...] = (),
        client: GatewayClient | None = None,
    ) -> SubscribeToChangesCommand:
        async def is_open() -> bool:
            return self.is_open

        return SubscribeToChangesCommand(
            session=session, is_open=is_open, kinds=frozenset(kinds), uris=uris, client=client
        )

    def server_tells(self, own_uri: str) -> None:
        """The server says that a resource which is watched was updated."""
        self.resources.watch.call_args.args[3](own_uri)


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def until_ended(following: ChangeSubscription) -> None:
    async with asyncio.timeout(10):
        while True:
            await following.next(30)


# --- lists ---


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("now", "changes"),
    [
        (a_gateway_toolset(), Changes()),
        (a_gateway_toolset(a_tool("mcp__files__read")), Changes(lists=(ListKind.TOOLS,))),
        (a_gateway_toolset(a_tool(description="Shouts it.")), Changes(lists=(ListKind.TOOLS,))),
    ],
    ids=["written but equal", "another tool", "another description"],
)
async def test_tools_have_changed_if_they_are_others_to_this_session(
    ports: Ports, now: object, changes: Changes
) -> None:
    async with ports.follow.execute(ports.command(kinds=[ListKind.TOOLS])) as following:
        ports.toolsets.of.return_value = now
        ports.subscribers.tools_changed(ORG)

        assert await following.next(30) == changes


async def test_changes_of_another_organization_are_not_looked_at(ports: Ports) -> None:
    async with ports.follow.execute(ports.command(kinds=[ListKind.TOOLS])):
        ports.subscribers.tools_changed(OTHER_ORG)

    ports.toolsets.of.assert_awaited_once()


@pytest.mark.requirement("C2", "F5")
async def test_a_server_that_lists_anew_is_told_of_to_those_alone_whom_policy_lets_see_it(ports: Ports) -> None:
    async with ports.follow.execute(ports.command(kinds=[ListKind.RESOURCES])) as following:
        ports.subscribers.listed(ORG, McpServerId("mcp_hidden"), None, ListKind.RESOURCES)
        ports.subscribers.listed(ORG, SERVER.id, None, ListKind.PROMPTS)
        ports.subscribers.listed(ORG, SERVER.id, "run_of_another", ListKind.RESOURCES)
        assert following.subscriber.lists == set()

        ports.subscribers.listed(ORG, SERVER.id, None, ListKind.RESOURCES)
        ports.subscribers.listed(ORG, SERVER.id, SESSION.id, ListKind.RESOURCES)
        assert await following.next(30) == Changes(lists=(ListKind.RESOURCES,))
        following.wake()
        assert await following.next(30) == Changes()


@pytest.mark.requirement("C1")
async def test_the_tools_of_an_agent_that_is_disabled_have_changed(ports: Ports) -> None:
    async with ports.follow.execute(ports.command(kinds=[ListKind.TOOLS])) as following:
        ports.toolsets.of.side_effect = ServiceError("agent_disabled", ErrorKind.FORBIDDEN, "The agent is disabled.")
        ports.subscribers.tools_changed(ORG)

        assert await following.next(30) == Changes(lists=(ListKind.TOOLS,))


# --- resources ---


@pytest.mark.requirement("F5")
async def test_a_resource_is_watched_at_its_server_while_somebody_listens(ports: Ports) -> None:
    async with ports.follow.execute(ports.command(uris=(URI,))) as following:
        assert following.honored == (URI,)
        assert ports.resources.watch.call_args.args[2] == "file:///notes"
        ports.release.assert_not_called()

    ports.release.assert_called_once_with()


@pytest.mark.requirement("F5")
async def test_an_update_is_told_once_however_often_it_happened(ports: Ports) -> None:
    async with ports.follow.execute(ports.command(uris=(URI,))) as following:
        ports.server_tells("file:///notes")
        ports.server_tells("file:///notes")

        assert await following.next(30) == Changes(updated=(URI,))


@pytest.mark.requirement("C2", "F5")
async def test_a_resource_that_may_not_be_read_is_not_watched(ports: Ports) -> None:
    ports.check.among.side_effect = DENIED

    async with ports.follow.execute(ports.command(uris=(URI,))) as following:
        assert following.honored == ()

    ports.resources.watch.assert_not_called()


@pytest.mark.requirement("C1", "C2")
async def test_a_resource_that_may_not_be_read_any_more_is_watched_no_longer(ports: Ports) -> None:
    async with ports.follow.execute(ports.command(uris=(URI,))) as following:
        ports.check.among.side_effect = DENIED
        ports.subscribers.tools_changed(ORG)
        await following.next(30)

        ports.release.assert_called_once_with()


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("named", [f"file:///{CANARY}", "file:///" + "x" * MAX_URI], ids=["canary token", "too long"])
async def test_names_of_servers_that_may_not_be_told_are_not_told(ports: Ports, named: str) -> None:
    async with ports.follow.execute(ports.command(uris=(URI,))) as following:
        ports.server_tells(named)
        following.wake()

        assert await following.next(30) == Changes()


async def test_a_client_that_subscribes_while_it_listens_is_told(ports: Ports) -> None:
    async with ports.follow.execute(ports.command(client=CLIENT)) as following:
        ports.resources.watch.assert_not_called()
        ports.handshakes.settings.return_value = ClientSettings(subscriptions=(URI,))
        ports.subscribers.sessions_changed(ORG)
        await following.next(30)

        ports.resources.watch.assert_called_once()


# --- the end ---


@pytest.mark.requirement("F5", "F6")
async def test_who_follows_a_session_of_a_run_is_let_go_when_that_ends(ports: Ports) -> None:
    async with ports.follow.execute(ports.command(replace(SESSION, run_id=RUN))) as following:
        ending = asyncio.create_task(until_ended(following))
        await asyncio.sleep(0)
        ports.wakeups.wake(status_topic(RUN))
        await asyncio.sleep(0)
        assert not ending.done()
        ports.is_open = False
        ports.wakeups.wake(status_topic(RUN))
        with pytest.raises(SubscriptionEnded):
            await ending
    assert len(ports.subscribers) == 0


@pytest.mark.requirement("F5")
async def test_who_follows_a_session_that_was_ended_is_let_go(ports: Ports) -> None:
    async with ports.follow.execute(ports.command()) as following:
        ports.is_open = False
        ports.subscribers.sessions_changed(ORG)
        with pytest.raises(SubscriptionEnded):
            await following.next(30)


@pytest.mark.requirement("F5")
async def test_a_client_that_has_ended_is_let_go(ports: Ports) -> None:
    async with ports.follow.execute(ports.command(client=CLIENT)) as following:
        ports.handshakes.settings.return_value = ClientSettings(ended_at=START)
        ports.subscribers.sessions_changed(ORG)
        with pytest.raises(SubscriptionEnded):
            await following.next(30)


async def test_who_follows_an_expired_session_is_let_go(ports: Ports) -> None:
    async with ports.follow.execute(ports.command(a_gateway_session(expires_at=START))) as following:
        with pytest.raises(SubscriptionEnded):
            await following.next(30)


async def test_all_are_let_go_when_the_process_stops_and_whoever_comes_then(ports: Ports) -> None:
    async with ports.follow.execute(ports.command()) as following:
        ports.subscribers.end()
        with pytest.raises(SubscriptionEnded):
            await following.next(30)
    async with ports.follow.execute(ports.command()) as late:
        with pytest.raises(SubscriptionEnded):
            await late.next(30)


async def test_who_lags_behind_further_than_anybody_may_is_let_go(ports: Ports) -> None:
    async with ports.follow.execute(ports.command()) as following:
        for number in range(MAX_PENDING):
            following.subscriber.resource_updated(f"file:///{number}")
            following.subscriber.resource_updated("file:///0")
        assert len((await following.next(30)).updated) == MAX_PENDING
        for number in range(MAX_PENDING + 1):
            following.subscriber.resource_updated(f"file:///{number}")
        with pytest.raises(SubscriptionEnded):
            await following.next(30)


async def test_who_cannot_be_told_while_storage_is_away_does_not_follow(ports: Ports) -> None:
    ports.toolsets.of.side_effect = storage_away()

    with refused("storage_unavailable"):
        async with ports.follow.execute(ports.command(kinds=[ListKind.TOOLS], uris=(URI,))):
            pass

    assert len(ports.subscribers) == 0
    ports.resources.watch.assert_not_called()
