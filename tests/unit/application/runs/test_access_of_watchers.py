"""WatchRun: what a watcher gets whose access changes meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.key_validity import KeyValidity, access_topic
from application.runs.watch_run import WatchRun
from application.system.wakeups import Subscription, Wakeups
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId
from domain.runs.run import RunStatus
from tests.doubles.scripted_model import Gate, ModelTurn
from tests.metering import a_meter
from tests.refusals import refused
from tests.unit.application.runs.doubles import OneEventAtATime, says
from tests.unit.application.runs.harness import ADMIN, RunHarness

pytestmark = pytest.mark.requirement("P2", "C6")

REFUSED = ServiceError("token_invalid", ErrorKind.UNAUTHENTICATED, "The user is not admitted.")


class Patient:
    """Waits for a wake-up, however long it takes."""

    def __init__(self, inner: Subscription, listening: asyncio.Event) -> None:
        self._inner, self._listening = inner, listening

    async def wait(self, timeout_s: float) -> bool:
        self._listening.set()
        return await self._inner.wait(3_600)


@pytest.fixture
def keys(mocker: MockerFixture) -> MockType:
    valid: MockType = mocker.create_autospec(KeyValidity, instance=True)
    valid.require.return_value = None
    return valid


@pytest.mark.parametrize("organization_id", [ADMIN.organization_id, None])
async def test_a_stream_that_says_nothing_ends_when_its_caller_is_admitted_no_more(
    mocker: MockerFixture, keys: MockType, organization_id: OrganizationId | None
) -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(text="Late", gate=gate)])
    run_id = await harness.start()
    listening = asyncio.Event()

    @asynccontextmanager
    async def subscribe(*topics: str) -> AsyncIterator[Subscription]:
        async with harness.wakeups.subscribe(*topics) as inner:
            yield Patient(inner, listening)

    wakeups = mocker.create_autospec(Wakeups, instance=True)
    wakeups.subscribe.side_effect = subscribe
    watch = WatchRun(runs=harness.runs, keys=keys, wakeups=wakeups, clock=harness.clock, meter=a_meter())

    async def followed() -> list[str]:
        return [event.type.value async for events in watch.follow(ADMIN, run_id) for event in events]

    following = asyncio.create_task(followed())
    async with asyncio.timeout(60):
        await listening.wait()
        keys.require.side_effect = REFUSED
        harness.wakeups.wake(access_topic(organization_id))
        with refused("token_invalid"):
            await following
    assert harness.run(run_id).status is RunStatus.QUEUED
    assert harness.wakeups.topic_count == 0


async def test_who_leaves_the_team_of_a_run_gets_no_further_page_of_its_events(keys: MockType) -> None:
    harness = RunHarness([says("Done.")])
    harness.change_agent(team="finance")
    run_id = await harness.play()
    assert harness.run(run_id).team == "finance"
    runs = OneEventAtATime(harness.state, harness.wakeups)
    watch = WatchRun(runs=runs, keys=keys, wakeups=harness.wakeups, clock=harness.clock, meter=a_meter())
    keys.require.return_value = frozenset({"finance"})
    async with aclosing(watch.follow(ADMIN, run_id)) as followed:
        assert [event.seq for event in await anext(followed)] == [1]
        keys.require.return_value = frozenset({"sales"})
        with refused("run_not_found"):
            await anext(followed)
