"""An edited message of the chat that is not said: its fork is deleted, and why it is not said is
what is raised."""

import asyncio
import logging

import pytest
from pytest_mock import MockerFixture

from application.threads.delete_thread import DeleteThread
from domain.errors import not_found
from interfaces.console.routes.chat import deleted_unless_said
from tests.builders import THREAD
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")


@pytest.mark.parametrize("reason", [not_found("agent", "guide"), RuntimeError("no memory"), asyncio.CancelledError()])
async def test_the_fork_is_deleted_whatever_the_reason(mocker: MockerFixture, reason: BaseException) -> None:
    delete_thread = mocker.create_autospec(DeleteThread, instance=True)
    with pytest.raises(type(reason)) as raised:
        async with deleted_unless_said(delete_thread, a_principal(), THREAD):
            raise reason
    assert raised.value is reason
    [call] = delete_thread.execute.await_args_list
    assert call.args[0].thread_id == THREAD


async def test_a_fork_that_cannot_be_deleted_is_logged_and_does_not_hide_the_reason(
    mocker: MockerFixture, caplog: pytest.LogCaptureFixture
) -> None:
    delete_thread = mocker.create_autospec(DeleteThread, instance=True)
    delete_thread.execute.side_effect = RuntimeError("the database is gone")
    reason = not_found("agent", "guide")
    with caplog.at_level(logging.ERROR), pytest.raises(type(reason)) as raised:
        async with deleted_unless_said(delete_thread, a_principal(), THREAD):
            raise reason
    assert raised.value is reason
    assert "fork of a refused message not deleted" in caplog.text


async def test_a_fork_whose_message_is_said_stays(mocker: MockerFixture) -> None:
    delete_thread = mocker.create_autospec(DeleteThread, instance=True)
    async with deleted_unless_said(delete_thread, a_principal(), THREAD):
        pass
    delete_thread.execute.assert_not_awaited()
