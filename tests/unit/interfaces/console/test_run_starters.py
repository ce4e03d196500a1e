"""Names of who started runs."""

import asyncio
from unittest.mock import ANY

import pytest
from pytest_mock import MockerFixture

from application.identity.ports import IdentityStore, UserStore
from application.schedules.queries import GetSchedule
from domain.errors import not_found
from interfaces.console.run_starters import RunStarters
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")


async def test_each_name_is_read_once_and_no_more_than_eight_at_once(mocker: MockerFixture) -> None:
    identities = mocker.create_autospec(IdentityStore, instance=True)
    users = mocker.create_autospec(UserStore, instance=True)
    get_schedule = mocker.create_autospec(GetSchedule, instance=True)
    get_schedule.execute.side_effect = not_found("schedule", "1")
    reading: set[str] = set()
    most = 0

    async def nobody(_: str, key_id: str) -> None:
        nonlocal most
        reading.add(key_id)
        most = max(most, len(reading))
        for _step in range(3):
            await asyncio.sleep(0)
        reading.remove(key_id)

    identities.key.side_effect = nobody
    users.get.return_value = None
    starters = RunStarters(identities=identities, users=users, get_schedule=get_schedule)
    keys = [f"key_{number}" for number in range(20)]
    found = await starters.names(a_principal(), ["usr_1", None, *keys, *keys, "schedule:1"])
    assert found == {"usr_1": "usr_1", **{key: key for key in keys}, "schedule:1": "a deleted schedule"}
    assert (identities.key.await_count, most) == (20, 8)
    users.get.assert_awaited_once_with(ANY, "usr_1")
