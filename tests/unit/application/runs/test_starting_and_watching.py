"""Starting runs and watching them: what is refused, what the same key gives, how waiting and
following end."""

import asyncio
from contextlib import aclosing
from decimal import Decimal

import pytest

from application.runs.ports import RunOutcome, events_topic, status_topic
from application.runs.watch_run import AWAY_PATIENCE_S, REREAD_S, WatchRun
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role as KeyRole
from domain.ids import ApiKeyId, OrganizationId, RunId, ThreadId
from domain.runs.events import RunEvent
from domain.runs.limits import LimitSettings
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.threads.message import Role
from tests.builders import OTHER_ORG, an_agent
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.scripted_model import Gate, ModelTurn
from tests.doubles.surroundings import FixedClock
from tests.metering import a_meter
from tests.unit.application.runs.doubles import OneEventAtATime, call, says
from tests.unit.application.runs.harness import ADMIN, EMAIL, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

VIEWER = Principal(organization_id=ADMIN.organization_id, key_id=ADMIN.key_id, role=KeyRole.VIEWER)
STRANGER = Principal(organization_id=OTHER_ORG, key_id=ApiKeyId("key_stranger"), role=KeyRole.ADMIN)


async def refused(harness: RunHarness, **how: object) -> ServiceError:
    """Why a run cannot be started; nothing is left behind."""
    with pytest.raises(ServiceError) as caught:
        await harness.start(**how)  # type: ignore[arg-type]  # arguments by name
    assert harness.state.runs == {}
    assert harness.queue.run_ids == []
    return caught.value


@pytest.mark.requirement("A1", "E1")
async def test_a_run_without_a_thread_gets_a_new_one_and_is_rung_for() -> None:
    harness = RunHarness()
    run_id = await harness.start(thread_id=None)
    run = harness.run(run_id)
    assert run.status is RunStatus.QUEUED
    assert harness.state.threads[run.thread_id].thread.organization_id == ADMIN.organization_id
    assert harness.queue.run_ids == [run_id]
    assert harness.types(run_id) == ["run.queued"]


async def test_an_agent_is_found_by_name_or_id() -> None:
    harness = RunHarness()
    by_name, by_id = await harness.start(agent="researcher"), await harness.start(agent=harness.agent.id)
    assert harness.run(by_name).agent_id == harness.run(by_id).agent_id


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("layer", ["run", "agent"])
async def test_a_cost_limit_that_cannot_be_enforced_is_refused(layer: str) -> None:
    limit = LimitSettings(max_cost_usd=Decimal(1))
    agent = an_agent(fallback_models=("free:model",), limits=limit if layer == "agent" else None)
    harness = RunHarness(agent=agent)
    fault = await refused(harness, limits=limit if layer == "run" else None)
    assert fault.code == "limits_invalid"
    assert [violation.path for violation in fault.violations] == ["limits.max_cost_usd"]
    assert "free:model" in fault.violations[0].message


async def test_what_cannot_be_started_is_refused_and_leaves_nothing() -> None:
    harness = RunHarness(agent=an_agent(fallback_models=("nowhere:m",)))
    assert (await refused(harness, agent="nobody")).code == "agent_not_found"
    assert (await refused(harness, agent="agt_00000000000000000000000009")).code == "agent_not_found"
    assert (await refused(harness, thread_id=ThreadId("thr_9"))).code == "thread_not_found"
    assert (await refused(harness, text=())).code == "input_empty"
    assert (await refused(harness, text=" \n")).code == "input_empty"
    assert (await refused(harness, model="other:model")).code == "model_not_allowed"
    unusable = await refused(harness, model="nowhere:m")
    assert (unusable.code, unusable.violations[0].path) == ("model_unavailable", "model")
    assert (await refused(harness, principal=VIEWER)).kind is ErrorKind.FORBIDDEN
    assert (await refused(harness, principal=STRANGER)).code == "agent_not_found"


async def test_a_disabled_agent_starts_nothing() -> None:
    harness = RunHarness(agent=an_agent(enabled=False))
    assert (await refused(harness)).code == "agent_disabled"


@pytest.mark.requirement("E5")
async def test_a_run_that_interrupts_another_is_executed_after_that_one_has_stopped() -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(gate=gate), says("New.")])
    old = await harness.start("old")
    executing = harness.worker.begin(old)
    await gate.reached.wait()
    new = await harness.start("new", strategy=MultitaskStrategy.INTERRUPT)
    await harness.worker.execute(new)
    assert harness.run(new).status is RunStatus.QUEUED
    await executing
    assert harness.run(old).status is RunStatus.CANCELLED
    assert harness.queue.run_ids[-1] == new
    await harness.worker.execute(new)
    assert harness.run(new).output == "New."
    assert_consistent(harness, old, new)


@pytest.mark.requirement("C6")
async def test_a_run_of_another_organization_cannot_be_found() -> None:
    harness = RunHarness()
    run_id = await harness.start()
    with pytest.raises(ServiceError) as caught:
        await harness.watch.wait(STRANGER, run_id)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    with pytest.raises(ServiceError):
        [event async for event in harness.watch.follow(STRANGER, run_id)]
    with pytest.raises(ServiceError):
        await harness.cancel(run_id, principal=STRANGER)
    with pytest.raises(ServiceError):
        await harness.watch.wait(ADMIN, RunId("run_nowhere"))


@pytest.mark.requirement("E1", "E6")
async def test_waiting_ends_when_the_run_does() -> None:
    harness = RunHarness([says("Done.")])
    run_id = await harness.start()
    waiting = asyncio.create_task(harness.watch.wait(VIEWER, run_id))
    await harness.worker.execute(run_id)
    assert (await waiting).run.output == "Done."
    assert (await harness.watch.wait(VIEWER, run_id)).run.output == "Done."


class CountedRuns(InMemoryRunStore):
    """Counts how often somebody looks at how a run stands."""

    looks = 0

    async def outcome(self, organization_id: OrganizationId, run_id: RunId) -> RunOutcome | None:
        self.looks += 1
        return await super().outcome(organization_id, run_id)


@pytest.mark.requirement("E1", "E6")
async def test_a_run_that_is_waited_for_from_before_its_start_is_looked_at_once() -> None:
    harness = RunHarness([says("Done.")])
    runs = CountedRuns(harness.state, harness.wakeups)
    watch = WatchRun(runs=runs, keys=harness.standing, wakeups=harness.wakeups, clock=harness.clock, meter=a_meter())
    run_id = harness.start_run().new_id()
    async with watch.listening(run_id) as bell:
        waiting = asyncio.create_task(watch.wait_for_new(VIEWER, run_id, bell))
        assert await harness.start(run_id=run_id) == run_id
        await harness.worker.execute(run_id)
        outcome = await waiting
    assert (outcome.run.output, [message.role for message in outcome.messages]) == (
        "Done.",
        [Role.USER, Role.ASSISTANT],
    )
    assert runs.looks == 1


@pytest.mark.requirement("D5", "E1")
async def test_waiting_and_following_end_when_the_run_waits_for_its_client() -> None:
    harness = RunHarness([ModelTurn(calls=(call("send_email", EMAIL), call("send_email", EMAIL))), says()])
    run_id = await harness.start()
    following = asyncio.create_task(_followed(harness, run_id))
    await harness.worker.execute(run_id)
    assert (await harness.watch.wait(ADMIN, run_id)).run.status is RunStatus.REQUIRES_ACTION
    assert (await following)[-1] == "run.requires_action"


@pytest.mark.requirement("E2")
async def test_following_a_run_that_waits_for_the_rest_of_its_results_ends_at_once() -> None:
    harness = RunHarness([ModelTurn(calls=(call("send_email", EMAIL), call("send_email", EMAIL)))])
    run_id = await harness.play()
    await harness.resume(run_id, {harness.run(run_id).pending[0].id: "sent"})
    async with asyncio.timeout(2):
        followed = await _followed(harness, run_id)
    assert followed[-2:] == ["run.requires_action", "tool.executed"]


async def _followed(harness: RunHarness, run_id: RunId, after_seq: int = 0) -> list[str]:
    return [
        event.type.value
        async for events in harness.watch.follow(ADMIN, run_id, after_seq=after_seq)
        for event in events
    ]


@pytest.mark.requirement("E2")
async def test_following_from_any_point_gives_the_rest_once_and_in_order() -> None:
    harness = RunHarness([says()])
    run_id = await harness.play()
    types = harness.types(run_id)
    for after in range(len(types) + 2):
        async with asyncio.timeout(2):
            assert await _followed(harness, run_id, after) == types[after:]


class RunsNowAndThen(InMemoryRunStore):
    """A store that is away every other time it is asked, and rings so that nobody rests."""

    def __init__(self, harness: RunHarness) -> None:
        super().__init__(harness.state, harness.wakeups)
        self._bells = harness.wakeups
        self.asked = 0

    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None:
        self._be_away(run_id)
        return await super().get(organization_id, run_id)

    async def outcome(self, organization_id: OrganizationId, run_id: RunId) -> RunOutcome | None:
        self._be_away(run_id)
        return await super().outcome(organization_id, run_id)

    async def events(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        self._be_away(run_id)
        return await super().events(organization_id, run_id, after_seq=after_seq, limit=limit)

    def _be_away(self, run_id: RunId) -> None:
        self.asked += 1
        if self.asked % 2 == 0:
            self._bells.wake(events_topic(run_id), status_topic(run_id))
            raise ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "Away.")


@pytest.mark.requirement("E1", "E2", "E6")
async def test_watchers_go_on_while_the_database_is_away_and_miss_nothing() -> None:
    harness = RunHarness([says("Done.")])
    run_id = await harness.play()
    runs = RunsNowAndThen(harness)
    watch = WatchRun(runs=runs, keys=harness.standing, wakeups=harness.wakeups, clock=harness.clock, meter=a_meter())
    async with asyncio.timeout(5):
        followed = [event.type.value async for events in watch.follow(ADMIN, run_id) for event in events]
        assert followed == harness.types(run_id)
        runs.asked = 1
        assert (await watch.wait(ADMIN, run_id)).run.output == "Done."


@pytest.mark.requirement("E6")
async def test_a_watcher_is_told_when_the_database_stays_away() -> None:
    harness = RunHarness([says("Done.")])
    run_id = await harness.play()
    runs = RunsNowAndThen(harness)

    class Impatient(FixedClock):
        def monotonic(self) -> float:
            self.advance(AWAY_PATIENCE_S)
            return super().monotonic()

    watch = WatchRun(runs=runs, keys=harness.standing, wakeups=harness.wakeups, clock=Impatient(), meter=a_meter())
    runs.asked = 1
    with pytest.raises(ServiceError, match="Away"):
        await watch.wait(ADMIN, run_id)


@pytest.mark.requirement("E1", "E2")
async def test_a_follower_that_leaves_harms_nothing_and_is_forgotten() -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(text="Well", gate=gate)])
    run_id = await harness.start()
    async with aclosing(harness.watch.follow(ADMIN, run_id)) as events:
        assert [event.type.value for event in await anext(events)] == ["run.queued"]
    executing = harness.worker.begin(run_id)
    await gate.reached.wait()
    gate.open.set()
    await executing
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.wakeups.topic_count == 0


@pytest.mark.requirement("E1", "E2")
async def test_a_follower_reads_on_after_a_page_that_large_messages_cut_short() -> None:
    harness = RunHarness([says("Done.")])
    run_id = await harness.play()
    runs = OneEventAtATime(harness.state, harness.wakeups)
    watch = WatchRun(runs=runs, keys=harness.standing, wakeups=harness.wakeups, clock=harness.clock, meter=a_meter())
    async with asyncio.timeout(REREAD_S):
        followed = [event.type.value async for events in watch.follow(ADMIN, run_id) for event in events]
    assert followed == harness.types(run_id)


class OtherEvents(InMemoryRunStore):
    """A store that finds no events the first times it is asked."""

    def __init__(self, harness: RunHarness, *, finds_none: int) -> None:
        super().__init__(harness.state, harness.wakeups)
        self._left = finds_none

    async def events(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        self._left -= 1
        found = await super().events(organization_id, run_id, after_seq=after_seq, limit=limit)
        return () if self._left >= 0 else found


@pytest.mark.requirement("E2", "K5")
@pytest.mark.parametrize("to_the_end", [False, True])
async def test_following_a_run_whose_events_went_with_their_month_ends(to_the_end: bool) -> None:
    harness = RunHarness([says("Done.")])
    run_id = await harness.play()
    runs = OtherEvents(harness, finds_none=2)
    watch = WatchRun(runs=runs, keys=harness.standing, wakeups=harness.wakeups, clock=harness.clock, meter=a_meter())
    async with asyncio.timeout(REREAD_S):
        assert [events async for events in watch.follow(ADMIN, run_id, to_the_end=to_the_end)] == []


@pytest.mark.requirement("E2")
async def test_a_run_that_ends_between_two_looks_of_a_follower_is_followed_to_its_end() -> None:
    harness = RunHarness([says("Done.")])
    run_id = await harness.play()
    runs = OtherEvents(harness, finds_none=1)
    watch = WatchRun(runs=runs, keys=harness.standing, wakeups=harness.wakeups, clock=harness.clock, meter=a_meter())
    async with asyncio.timeout(REREAD_S):
        followed = [event.type.value async for events in watch.follow(ADMIN, run_id) for event in events]
    assert followed == harness.types(run_id)


class CountedLooks(InMemoryRunStore):
    """A store that counts how often events are looked for."""

    looked = 0

    async def events(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        self.looked += 1
        return await super().events(organization_id, run_id, after_seq=after_seq, limit=limit)


@pytest.mark.requirement("E1", "E2", "E6")
async def test_many_followers_that_are_woken_together_look_together_and_miss_nothing() -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(text="Well", gate=gate)])
    run_id = await harness.start()
    runs = CountedLooks(harness.state, harness.wakeups)
    watch = WatchRun(runs=runs, keys=harness.standing, wakeups=harness.wakeups, clock=harness.clock, meter=a_meter())

    async def followed() -> list[str]:
        return [event.type.value async for events in watch.follow(ADMIN, run_id) for event in events]

    following = [asyncio.create_task(followed()) for _ in range(50)]
    executing = harness.worker.begin(run_id)
    await gate.reached.wait()
    following[0].cancel()  # takes nothing from the others
    gate.open.set()
    await executing
    async with asyncio.timeout(5):
        told = await asyncio.gather(*following[1:])
    assert told == [harness.types(run_id)] * 49
    assert runs.looked < 50, "each wake-up is one look at the events for all, not one each"


@pytest.mark.requirement("E1")
async def test_waiting_gives_the_run_as_it_is_when_the_time_is_up() -> None:
    harness = RunHarness()
    run_id = await harness.start()
    assert (await harness.watch.wait(ADMIN, run_id, timeout_s=0)).run.status is RunStatus.QUEUED
