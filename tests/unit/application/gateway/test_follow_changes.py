"""Following changes: when nothing is told any more."""

import asyncio
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.gateway.check_subscription import CheckSubscription
from application.gateway.client_handshakes import ClientHandshakes
from application.gateway.content_sources import ContentSources
from application.gateway.follow_changes import FollowChanges, FollowChangesCommand, Following, FollowingEnded
from application.gateway.followers import MAX_PENDING, Followers
from application.gateway.toolbox import GatewayToolbox
from application.runs.ports import status_topic
from domain.gateway.session import GatewaySession
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import RUN, START, after
from tests.contract.test_gateway import a_session
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.surroundings import FixedClock


class Parts:
    """`FollowChanges`, of whose session nothing is known but whether it is open."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.is_open = True
        self.wakeups, self.followers = InProcessWakeups(), Followers()
        self.follow = FollowChanges(
            followers=self.followers,
            toolbox=mocker.create_autospec(GatewayToolbox, instance=True),
            sources=mocker.create_autospec(ContentSources, instance=True),
            check=mocker.create_autospec(CheckSubscription, instance=True),
            handshakes=mocker.create_autospec(ClientHandshakes, instance=True),
            resources=InMemoryMcpConnections(),
            wakeups=self.wakeups,
            clock=FixedClock(),
        )

    def command(self, session: GatewaySession) -> FollowChangesCommand:
        async def is_open() -> bool:
            return self.is_open

        return FollowChangesCommand(session=session, is_open=is_open, kinds=frozenset())


@pytest.fixture
def parts(mocker: MockerFixture) -> Parts:
    return Parts(mocker)


async def until_ended(following: Following) -> None:
    async with asyncio.timeout(10):
        while True:
            await following.next(30)


@pytest.mark.requirement("F5", "F6")
async def test_who_follows_a_session_of_a_run_is_let_go_when_that_ends(parts: Parts) -> None:
    async with parts.follow.execute(parts.command(replace(a_session(), run_id=RUN))) as following:
        ending = asyncio.create_task(until_ended(following))
        await asyncio.sleep(0)
        parts.wakeups.wake(status_topic(RUN))
        await asyncio.sleep(0)
        assert not ending.done()
        parts.is_open = False
        parts.wakeups.wake(status_topic(RUN))
        with pytest.raises(FollowingEnded):
            await ending
    assert len(parts.followers) == 0


async def test_who_follows_an_expired_session_is_let_go(parts: Parts) -> None:
    expiring = replace(a_session(), expires_at=after(0))
    assert expiring.expires_at == START
    async with parts.follow.execute(parts.command(expiring)) as following:
        with pytest.raises(FollowingEnded):
            await following.next(30)


async def test_all_are_let_go_when_the_process_stops_and_whoever_comes_then(parts: Parts) -> None:
    async with parts.follow.execute(parts.command(a_session())) as following:
        parts.followers.end()
        with pytest.raises(FollowingEnded):
            await following.next(30)
    async with parts.follow.execute(parts.command(a_session())) as late:
        with pytest.raises(FollowingEnded):
            await late.next(30)


async def test_who_lags_behind_further_than_anybody_may_is_let_go(parts: Parts) -> None:
    async with parts.follow.execute(parts.command(a_session())) as following:
        for number in range(MAX_PENDING):
            following.follower.resource_updated(f"file:///{number}")
            following.follower.resource_updated("file:///0")
        assert len((await following.next(30)).updated) == MAX_PENDING
        for number in range(MAX_PENDING + 1):
            following.follower.resource_updated(f"file:///{number}")
        with pytest.raises(FollowingEnded):
            await following.next(30)
