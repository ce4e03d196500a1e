"""A run that ends its workers beside runs that wait: every other run completes, over every
backend."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import McpConnections
from application.runs.execution.active_runs import ActiveRuns, LeaseSettings
from application.runs.execution.agent_loop import AgentLoop
from application.runs.execution.execute_run import ExecuteRun, ExecuteRunCommand
from application.runs.execution.run_memory import RunMemory
from application.runs.execution.run_session import RunSession
from application.runs.ports import AccountConsents, RunQueue
from application.runs.trace_ended_run import TraceEndedRun
from application.system.memory_budget import MemoryBudget
from application.tracing.ports import Tracer
from domain.ids import RunId, WorkerId
from domain.runs.claiming import Suspected
from domain.runs.run import MAX_LEASE_EXPIRATIONS, SUSPECT_AFTER, RunStatus
from domain.runs.step import Step
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import (
    ORG,
    OTHER_WORKER,
    START,
    WORKER,
    a_run_id,
    a_settled_call,
    a_thread,
    a_thread_id,
    a_tool_call,
)
from tests.builders import after as after_start
from tests.contract.run_steps import LEASE_S, claim, reply_step, run_number, settle_step, start, stored
from tests.contract.stores import Stores
from tests.doubles.surroundings import FixedClock, SequentialIds

KILLER = a_run_id(1)
INNOCENTS = tuple(a_run_id(number) for number in range(2, 12))
Act = Callable[[RunSession], None]


class Lives:
    """One worker after the other on the same database. Each ends with all of its runs when it
    executes KILLER, or always; otherwise the model answers the runs that wait for it."""

    def __init__(
        self, stores: Stores, mocker: MockerFixture, *, killer_calls: bool = False, ends_always: bool = False
    ) -> None:
        self.stores = stores
        self.clock = FixedClock(after_start(100))
        self.lives = 0
        self.together: list[int] = []
        self._killer_calls = killer_calls
        self._ends_always = ends_always
        self._mocker = mocker

    async def live(self) -> bool:
        """One worker, from its start to its end. False if it found nothing to execute."""
        self.lives += 1
        worker_id = WorkerId(f"wrk_{self.lives}")
        at = self.clock.now()
        found = await self.stores.leases.recoverable(at=at, limit=100, sole_owner=True)
        first_steps: asyncio.Queue[RunId] = asyncio.Queue()
        executing: set[RunId] = set()
        model_answers = asyncio.Event()

        async def loop(session: RunSession) -> None:
            run = session.run
            if run.id == KILLER and self._killer_calls and not session.open_calls:
                call = a_tool_call(0, run_id=run.id)
                await session.advance(lambda: reply_step(session.run, call))
            executing.add(run.id)
            first_steps.put_nowait(run.id)
            await model_answers.wait()
            ended = run.ended(RunStatus.COMPLETED, at=START, output="Done.")
            await session.advance(lambda: Step(run=ended))

        executor = self._executor(worker_id, loop)

        async def handle(run_id: RunId) -> None:
            await executor.execute(ExecuteRunCommand(run_id=run_id))
            first_steps.put_nowait(run_id)

        tasks = [asyncio.create_task(handle(run_id)) for run_id in found]
        async with asyncio.timeout(60):
            for _ in tasks:
                await first_steps.get()
        self.together.append(len(executing))
        if self._ends_always or KILLER in executing:
            for task in tasks:  # as the end of the process: nothing is written
                task.cancel()
        model_answers.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.clock.advance(LEASE_S * 3)
        return bool(found)

    def _executor(self, worker_id: WorkerId, loop: object) -> ExecuteRun:
        mock = self._mocker.create_autospec
        agent_loop = mock(AgentLoop, instance=True)
        agent_loop.run.side_effect = loop
        active = ActiveRuns(
            leases=self.stores.leases, clock=self.clock, worker_id=worker_id, settings=LeaseSettings(lease_s=LEASE_S)
        )
        return ExecuteRun(
            leases=self.stores.leases,
            journal=self.stores.journal,
            queue=mock(RunQueue, instance=True),
            wakeups=InProcessWakeups(),
            loop=agent_loop,
            active_runs=active,
            memory=RunMemory(MemoryBudget(2**30)),
            connections=mock(McpConnections, instance=True),
            tracer=mock(Tracer, instance=True),
            trace_ended=mock(TraceEndedRun, instance=True),
            consents=mock(AccountConsents, instance=True),
            clock=self.clock,
            ids=SequentialIds(),
            log_context=lambda **_: nullcontext(),
        )


async def eleven_runs(stores: Stores) -> None:
    for number in range(1, 12):
        if number > 1:
            await stores.threads.add(a_thread(a_thread_id(number)))
        await start(stores, run_number(number, thread_id=a_thread_id(number)))


@pytest.mark.requirement("E4", "E7")
@pytest.mark.parametrize("killer_calls", [False, True], ids=["before-its-reply", "in-a-call"])
async def test_a_run_that_ends_every_worker_takes_none_of_ten_that_wait_with_it(
    run_stores: Stores, mocker: MockerFixture, killer_calls: bool
) -> None:
    await eleven_runs(run_stores)
    lives = Lives(run_stores, mocker, killer_calls=killer_calls)

    while await lives.live():
        assert lives.lives < 60, "some run neither completes nor is given up"

    killer = await stored(run_stores, KILLER)
    assert killer.error is not None
    assert (killer.status, killer.error.code) == (RunStatus.FAILED, "too_many_attempts")
    innocents = [await stored(run_stores, run_id) for run_id in INNOCENTS]
    assert [run.status for run in innocents] == [RunStatus.COMPLETED] * len(INNOCENTS)
    assert lives.together[0] == 11
    assert lives.together.count(1) >= MAX_LEASE_EXPIRATIONS - SUSPECT_AFTER, "suspects are executed alone"


@pytest.mark.requirement("E4")
async def test_workers_that_end_for_another_reason_count_against_all_runs_alike(
    run_stores: Stores, mocker: MockerFixture
) -> None:
    await eleven_runs(run_stores)
    lives = Lives(run_stores, mocker, ends_always=True)

    for _ in range(SUSPECT_AFTER + 17):
        assert await lives.live()

    lapses = sorted([(await stored(run_stores, run_id)).lapses for run_id in (KILLER, *INNOCENTS)])
    assert lapses == [SUSPECT_AFTER + 1] * 6 + [SUSPECT_AFTER + 2] * 5


@pytest.mark.requirement("E4")
async def test_a_lost_worker_counts_against_the_run_that_was_executing_a_call(run_stores: Stores) -> None:
    await eleven_runs(run_stores)
    waits, calls = await claim(run_stores, a_run_id(2)), await claim(run_stores, KILLER)
    other = await claim(run_stores, a_run_id(3), worker_id=OTHER_WORKER)
    await run_stores.journal.commit(calls.lease, reply_step(calls.run, a_tool_call(0)))
    await run_stores.leases.recoverable(at=after_start(100), limit=100)

    lapses = {run.id: (await stored(run_stores, run.id)).lapses for run in (waits.run, calls.run, other.run)}
    assert lapses == {waits.run.id: 0, KILLER: 1, other.run.id: 1}


@pytest.mark.requirement("E4")
async def test_a_settled_call_is_no_longer_being_executed(run_stores: Stores) -> None:
    await eleven_runs(run_stores)
    waits, called = await claim(run_stores, a_run_id(2)), await claim(run_stores, KILLER)
    call = a_tool_call(0)
    await run_stores.journal.commit(called.lease, reply_step(called.run, call))
    await run_stores.journal.commit(called.lease, settle_step(called.run, a_settled_call(call)))
    await run_stores.leases.recoverable(at=after_start(100), limit=100)

    assert [(await stored(run_stores, run_id)).lapses for run_id in (KILLER, waits.run.id)] == [1, 1]


@pytest.mark.requirement("E4")
async def test_a_suspected_run_is_claimed_only_by_a_worker_that_takes_suspects(run_stores: Stores) -> None:
    await eleven_runs(run_stores)
    for number in range(SUSPECT_AFTER):
        await claim(run_stores, KILLER, at=after_start(number * 100))
        await run_stores.leases.recoverable(at=after_start(number * 100 + 50), limit=100)
    found = await run_stores.leases.recoverable(at=after_start(900), limit=100)
    assert found[-1] == KILLER, "runs with fewer lost workers come first"
    run = await stored(run_stores, KILLER)
    refused = await run_stores.leases.claim(
        KILLER, WORKER, lease_s=LEASE_S, at=after_start(1_000), takes_suspects=False
    )
    assert refused == Suspected(run=run)
    assert await stored(run_stores, KILLER) == run
    assert await run_stores.runs.events(ORG, KILLER, after_seq=run.last_seq, limit=10) == ()
    assert (await claim(run_stores, KILLER, at=after_start(1_001))).run.status is RunStatus.IN_PROGRESS
