"""TellMissingGrants: servers that a person must authorize, told once each time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.ports import ServerState, ServerStatus
from application.mcp.tell_missing_grants import MissingGrantNotices, TellMissingGrants
from domain.ids import McpServerId
from domain.mcp.auth import AuthorizationCodeAuth
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from tests.builders import START, a_server, after, numbered

pytestmark = pytest.mark.requirement("U6")
OTHER_SERVER = McpServerId(numbered("mcp", 2))


@pytest.fixture
def notices(mocker: MockerFixture) -> MockType:
    made: MockType = mocker.create_autospec(MissingGrantNotices, instance=True)
    return made


@pytest.fixture
def tell(notices: MockType) -> TellMissingGrants:
    return TellMissingGrants(notices=notices)


def authorized_by_a_person(*, version: int = 1) -> McpServer:
    config = McpServerConfig(
        slug="tickets", kind=McpServerKind.HTTP, url="https://tickets.example.com/mcp", auth=AuthorizationCodeAuth()
    )
    return a_server(version=version, config=config)


def refused(since: datetime = START) -> ServerStatus:
    return ServerStatus(state=ServerState.NEEDS_AUTH, since=since)


async def test_a_server_that_refuses_for_want_of_a_grant_is_told_with_its_moment(
    tell: TellMissingGrants, notices: MockType
) -> None:
    server = authorized_by_a_person()
    tell.changed(server, refused())
    for _ in range(2):
        await tell.execute()
    notices.add.assert_awaited_once_with(server, at=START)


async def test_the_same_trouble_is_told_once_and_a_later_one_again(tell: TellMissingGrants, notices: MockType) -> None:
    server = authorized_by_a_person()
    for status in (refused(), refused(), refused(after(60))):
        tell.changed(server, status)
        await tell.execute()
    tell.changed(authorized_by_a_person(version=2), refused(after(60)))
    await tell.execute()
    assert [call.kwargs["at"] for call in notices.add.await_args_list] == [START, after(60), after(60)]


@pytest.mark.parametrize("state", [state for state in ServerState if state is not ServerState.NEEDS_AUTH])
async def test_other_states_and_servers_that_nobody_authorizes_are_not_told(
    tell: TellMissingGrants, notices: MockType, state: ServerState
) -> None:
    tell.changed(authorized_by_a_person(), ServerStatus(state=state, since=START))
    tell.changed(a_server(), refused())
    await tell.execute()
    notices.add.assert_not_called()


async def test_a_server_whose_notice_cannot_be_stored_holds_up_no_other(
    tell: TellMissingGrants, notices: MockType
) -> None:
    broken, other = authorized_by_a_person(), replace(authorized_by_a_person(), id=OTHER_SERVER)
    for server in (broken, other):
        tell.changed(server, refused())
    notices.add.side_effect = [RuntimeError("away"), None, None]
    with pytest.raises(ExceptionGroup):
        await tell.execute()
    await tell.execute()
    assert [call.args[0] for call in notices.add.await_args_list] == [broken, other, broken]


@pytest.fixture
async def kept(tell: TellMissingGrants) -> AsyncIterator[None]:
    task = asyncio.create_task(tell.keep())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_what_cannot_be_stored_is_tried_again(tell: TellMissingGrants, notices: MockType, kept: None) -> None:
    is_stored = asyncio.Event()

    async def add(server: McpServer, *, at: datetime) -> None:
        if notices.add.await_count == 1:
            tell.changed(server, refused(at))  # news, so that the next attempt comes at once
            raise RuntimeError("away")
        is_stored.set()

    notices.add.side_effect = add
    tell.changed(authorized_by_a_person(), refused())
    await asyncio.wait_for(is_stored.wait(), 60)
