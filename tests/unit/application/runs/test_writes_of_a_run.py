"""Writes that are slow, fail, are fenced off or race with a stop: the run stays consistent, the
worker alive."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.ports import McpProgress, McpReply
from application.runs.execution.event_buffer import COALESCING_S
from application.runs.ports import LeaseLost, RunJournal, StepOutcome
from domain.errors import ErrorKind, ServiceError
from domain.runs.events import NewEvent, RunEventType
from domain.runs.lease import Lease
from domain.runs.run import RunStatus
from domain.runs.step import Step
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import Gate, ModelTurn
from tests.unit.application.runs.doubles import HeldServer, asks, says
from tests.unit.application.runs.harness import ADMIN, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

SETTLING_THE_FIRST = 2
"""The commit after the one that stores the reply with its calls."""


async def nothing() -> None:
    """Neither before nor after a commit."""


def a_journal(
    mocker: MockerFixture,
    harness: RunHarness,
    *,
    before_commit: Callable[[], Awaitable[None]] = nothing,
    after_commit: Callable[[], Awaitable[None]] = nothing,
) -> MockType:
    """The harness's journal with something going on around each commit; it never asks to cancel."""

    async def commit(lease: Lease, step: Step) -> StepOutcome:
        await before_commit()
        outcome = await harness.journal.commit(lease, step)
        await after_commit()
        return outcome

    journal: MockType = mocker.create_autospec(RunJournal, instance=True)
    journal.commit.side_effect = commit
    journal.append.side_effect = harness.journal.append
    journal.cancel_requested_by.return_value = None
    return journal


async def test_a_stop_that_comes_as_the_turn_fails_the_run_changes_nothing(mocker: MockerFixture) -> None:
    broken = InMemoryMcpServer(tools={"t": text_reply("broken", is_error=True)})
    harness = RunHarness([asks("mcp__s__t")] * 3, servers={"s": broken})

    async def stop_once_failed() -> None:
        if harness.run(run_id).status is RunStatus.FAILED:
            worker.active_runs.stop_all()

    worker = harness.new_worker(journal=a_journal(mocker, harness, after_commit=stop_once_failed))
    await harness.warm_up()
    run_id = await harness.start()
    await worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.FAILED
    assert [scope.run_id for scope in harness.connections.released] == [run_id]
    assert [finished.id for finished in harness.tracer.finished] == [run_id]
    assert_consistent(harness, run_id)


async def test_losing_the_lease_in_the_middle_of_several_calls_ends_them_all(mocker: MockerFixture) -> None:
    remote = HeldServer()

    async def lose() -> None:
        if journal.commit.await_count == 2:
            await remote.gate.reached.wait()
            raise LeaseLost(run_id)

    harness = RunHarness([asks("mcp__s__quick", "mcp__s__held")], servers=remote.servers())
    journal = a_journal(mocker, harness, before_commit=lose)
    await harness.warm_up()
    run_id = await harness.start()
    await harness.new_worker(journal=journal).execute(run_id)
    assert [sent.tool_name for sent in harness.connections.cancelled] == ["held"]
    assert journal.commit.await_count == 2


@pytest.mark.requirement("E2", "E4")
@pytest.mark.parametrize("failing", [1, 2], ids=["the reply", "one of several results"])
async def test_a_run_whose_database_is_away_is_left_as_it_is_and_goes_on_later(
    mocker: MockerFixture, failing: int
) -> None:
    async def fail_from_then_on() -> None:
        if journal.commit.await_count >= failing:
            raise ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "The database is away.")

    remote = InMemoryMcpServer(tools={"quick": text_reply("quick")})
    harness = RunHarness([asks("mcp__s__quick", "mcp__s__quick"), says("Done.")], servers={"s": remote})
    journal = a_journal(mocker, harness, before_commit=fail_from_then_on)
    await harness.warm_up()
    run_id = await harness.start()
    await harness.new_worker(journal=journal).execute(run_id)
    assert harness.run(run_id).status is RunStatus.IN_PROGRESS
    assert harness.run(run_id).error is None
    assert await harness.recover() == 1
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert_consistent(harness, run_id)


async def test_a_step_that_cannot_be_stored_fails_the_run_and_leaves_it_consistent(mocker: MockerFixture) -> None:
    async def fail_second() -> None:
        if journal.commit.await_count == 2:
            raise ConnectionError("the database is away for a moment")

    harness = RunHarness([asks("mcp__s__quick", "mcp__s__quick")], servers=HeldServer().servers())
    journal = a_journal(mocker, harness, before_commit=fail_second)
    await harness.warm_up()
    run_id = await harness.start()
    await harness.new_worker(journal=journal).execute(run_id)
    run = harness.run(run_id)
    assert run.error is not None
    assert (run.status, run.error.code) == (RunStatus.FAILED, "internal_error")
    assert_consistent(harness, run_id)


async def test_a_write_that_has_begun_is_finished_though_its_worker_is_cancelled(mocker: MockerFixture) -> None:
    gate = Gate()
    harness = RunHarness([says("Kept.")])
    run_id = await harness.start()
    journal = a_journal(mocker, harness, before_commit=gate.pass_through)
    executing = harness.new_worker(journal=journal).begin(run_id)
    await gate.reached.wait()
    executing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await executing
    gate.open.set()
    assert (await harness.watch.wait(ADMIN, run_id)).run.output == "Kept."
    assert_consistent(harness, run_id)


async def test_a_stop_that_cannot_be_stored_takes_nothing_else_down(mocker: MockerFixture) -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(gate=gate)])
    journal = mocker.create_autospec(RunJournal, instance=True)
    journal.cancel_requested_by.return_value = "system"
    journal.commit.side_effect = ConnectionError("the database is away")
    run_id = await harness.start()
    executing = harness.new_worker(journal=journal).begin(run_id)
    await gate.reached.wait()
    await harness.cancel(run_id)
    await executing
    assert harness.run(run_id).status is RunStatus.IN_PROGRESS
    assert [scope.run_id for scope in harness.connections.released] == [run_id]


async def test_a_write_of_deltas_that_failed_once_does_not_keep_the_failure_from_being_stored(
    mocker: MockerFixture,
) -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(text="Hello", gate=gate)])
    journal = mocker.create_autospec(RunJournal, instance=True)
    failed = asyncio.Event()

    async def append(*_: object) -> None:
        failed.set()
        raise ConnectionError("the database is away for a moment")

    journal.append.side_effect = append
    journal.commit.side_effect = harness.journal.commit
    journal.cancel_requested_by.return_value = None
    run_id = await harness.start()
    executing = harness.new_worker(journal=journal).begin(run_id)
    await gate.reached.wait()
    await failed.wait()
    gate.open.set()
    await executing
    run = harness.run(run_id)
    assert run.error is not None
    assert (run.status, run.error.code) == (RunStatus.FAILED, "internal_error")
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E2", "E3")
async def test_nothing_else_of_a_run_is_written_while_a_step_is_being_stored(mocker: MockerFixture) -> None:
    """Else the step's number could be another write's, and a commit that was lost on the way pass
    for stored."""
    told, over, appended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def telling(invocation: Invocation) -> McpReply:
        await told.wait()
        await invocation.report_progress(McpProgress(progress=1, total=2, message="half"))
        await over.wait()
        return text_reply("told")

    async def take_long() -> None:
        if journal.commit.await_count == SETTLING_THE_FIRST:
            told.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(4 * COALESCING_S):
                    await appended.wait()
            during.append(appended.is_set())

    async def append(lease: Lease, events: tuple[NewEvent, ...]) -> None:
        await harness.journal.append(lease, events)
        appended.set()

    during: list[bool] = []
    tools = {"quick": InMemoryTool(answer=text_reply("quick")), "telling": InMemoryTool(answer=telling)}
    harness = RunHarness(
        [asks("mcp__s__quick", "mcp__s__telling"), says("Done.")], servers={"s": InMemoryMcpServer(tools=tools)}
    )
    journal = a_journal(mocker, harness, before_commit=take_long)
    journal.append.side_effect = append
    await harness.warm_up()
    run_id = await harness.start()
    executing = harness.new_worker(journal=journal).begin(run_id)
    await appended.wait()
    over.set()
    await executing
    assert during == [False]
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A11", "E2")
async def test_text_whose_reply_cannot_be_stored_is_taken_back_before_the_run_fails(mocker: MockerFixture) -> None:
    gate, published = Gate(), asyncio.Event()
    harness = RunHarness([ModelTurn(text="Nobody will keep this.", gate=gate)])

    async def append(lease: Lease, events: tuple[NewEvent, ...]) -> None:
        await harness.journal.append(lease, events)
        published.set()

    async def fail_first() -> None:
        if journal.commit.await_count == 1:
            raise ConnectionError("the database is away for a moment")

    journal = a_journal(mocker, harness, before_commit=fail_first)
    journal.append.side_effect = append
    run_id = await harness.start()
    executing = harness.new_worker(journal=journal).begin(run_id)
    await published.wait()
    gate.open.set()
    await executing
    run = harness.run(run_id)
    assert run.error is not None
    assert (run.status, run.error.code) == (RunStatus.FAILED, "internal_error")
    events = harness.events(run_id)
    [begun] = [event.data["message_id"] for event in events if event.type is RunEventType.MESSAGE_DELTA]
    [taken_back] = [event for event in events if event.type is RunEventType.MESSAGE_DISCARDED]
    assert taken_back.data == {"message_id": begun, "reason": "internal_error"}
    assert_consistent(harness, run_id)
