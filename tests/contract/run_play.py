"""Random acts of clients, workers and time on runs, stale leases too; invariants after each."""

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

import pytest

from application.runs.ports import ClaimedRun, EndedAtClaim, LeaseLost, RunFilter
from domain.errors import ServiceError
from domain.ids import RunId, ThreadId, ToolCallId
from domain.runs.closing import cancelled_step, closing_step
from domain.runs.events import NewEvent, RunEventType
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import MAX_LEASE_EXPIRATIONS, MultitaskStrategy, Run, RunStatus
from domain.runs.step import Step
from domain.threads.message import Message
from domain.tools.result import ToolResult
from tests.builders import (
    KEY,
    ORG,
    WORKER,
    a_displayable_call,
    a_new_run,
    a_settled_call,
    a_thread,
    a_thread_id,
    a_tool_call,
    after,
    an_agent,
    an_audit_event,
)
from tests.contract.paging import all_of
from tests.contract.run_changes import cancel, messages_of, resume
from tests.contract.run_steps import (
    answer_step,
    finish_step,
    reply_step,
    run_number,
    settle_step,
    stored,
    suspend_step,
)
from tests.contract.stores import Stores

LEASE_S = 6.0
MAX_RUNS = 5
THREADS = (a_thread_id(1), a_thread_id(2))


class Act(StrEnum):
    """What may happen next. Numbers of an act choose among what there is: runs, leases, sizes."""

    START = "start"
    CLAIM = "claim"
    ADVANCE = "advance"
    FINISH = "finish"
    APPEND = "append"
    RENEW = "renew"
    HAND_BACK = "hand_back"
    LAPSE = "lapse"
    CANCEL = "cancel"
    RESUME = "resume"


@dataclass(slots=True)
class Holding:
    """A worker that claimed a run, and what it knows of it."""

    claimed: ClaimedRun
    run: Run
    open_calls: dict[str, ToolCall]
    valid: bool = True
    lease_until: float = 0.0


@dataclass(slots=True)
class Play:
    """One play over fresh stores."""

    stores: Stores
    now: float = 0.0
    started: int = 0
    holdings: list[Holding] = field(default_factory=list)
    asked_to_stop: set[RunId] = field(default_factory=set)
    rolled_back: set[RunId] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)

    async def begin(self) -> None:
        """An agent and two threads, on one of which a run is in progress."""
        await self.stores.agents.add(an_agent(), an_audit_event())
        for thread_id in THREADS:
            await self.stores.threads.add(a_thread(thread_id))
        await self._start(0, 0)
        await self._act_on_a_run(Act.CLAIM, 0, 0)

    async def perform(self, act: Act, first: int, second: int) -> None:
        """One act, and what must hold after it."""
        self.now += 1
        match act:
            case Act.START:
                await self._start(first, second)
            case Act.LAPSE:
                self.now += first * 2
                await self._recover(limit=100)
            case Act.CLAIM | Act.CANCEL | Act.RESUME:
                await self._act_on_a_run(act, first, second)
            case _:
                holding = self._some_holding(first)
                for _ in range(1 + second % 3 if act is Act.ADVANCE else 1):
                    await self._act_on_a_lease(act, holding, second)
        await self._check_now()

    def _some_holding(self, number: int) -> Holding:
        """Mostly one that counts, sometimes any."""
        valid = [holding for holding in self.holdings if holding.valid]
        candidates = valid if valid and number < 4 else self.holdings
        return candidates[number % len(candidates)]

    async def end(self) -> None:
        """Let everything come to an end: whatever happened before, no run is stuck. Then look at
        all that is stored."""
        for _ in range(4 * MAX_RUNS):
            self.now += LEASE_S * 2
            for run in await self._runs():
                if run.status is RunStatus.REQUIRES_ACTION:
                    await self._cancel(run)
            ready = await self._recover(limit=100)
            for run_id in ready:
                await self._claim(await stored(self.stores, run_id))
            for holding in [holding for holding in self.holdings if holding.valid]:
                await self._act_on_a_lease(Act.FINISH, holding, 0)
            if not ready and all(run.status.is_terminal for run in await self._runs()):
                break
        for run in await self._runs():
            assert run.status.is_terminal, f"{run.id} is stuck in {run.status}"
            await assert_ended_whole(self.stores, run)
        for thread_id in THREADS:
            listed = await all_of(partial(self.stores.threads.messages, ORG, thread_id))
            assert not {message.run_id for message in listed} & self.rolled_back
            kept = [run for run in await self._runs(thread_id) if run.id not in self.rolled_back]
            own = [message for run in kept for message in await messages_of(self.stores.runs, ORG, run.id)]
            assert sorted(message.id for message in listed) == sorted(message.id for message in own)

    # --- acts of clients ---

    async def _start(self, first: int, second: int) -> None:
        if self.started == MAX_RUNS:
            return
        strategy = list(MultitaskStrategy)[first % 4]
        thread_id = THREADS[0] if second < 5 else THREADS[1]
        before = await self._runs(thread_id)
        self.started += 1
        number = self.started
        run = replace(run_number(number, thread_id=thread_id), created_at=after(self.now))
        new = a_new_run(run, strategy=strategy)
        if strategy is MultitaskStrategy.REJECT and any(map(stays_unfinished, before)):
            with pytest.raises(ServiceError, check=lambda error: error.code == "thread_busy"):
                await self.stores.runs.start(new)
            assert await self._runs(thread_id) == before
            return
        started = await self.stores.runs.start(new)
        assert started.run.status is RunStatus.QUEUED
        if strategy is MultitaskStrategy.ROLLBACK:
            self.rolled_back.update(other.id for other in before if stays_unfinished(other))
        if strategy is not MultitaskStrategy.ENQUEUE:
            others = [other for other in await self._runs(thread_id) if other.id != run.id]
            assert all(other.status.is_terminal or other.cancel_requested_by for other in others)

    async def _act_on_a_run(self, act: Act, first: int, second: int) -> None:
        runs = sorted(await self._runs(), key=lambda run: run.id)
        # Acts fall where they can do something; where they cannot, the suites are precise.
        fitting = {
            Act.CLAIM: [run for run in runs if run.status is RunStatus.QUEUED],
            Act.CANCEL: [run for run in runs if not run.status.is_terminal],
        }.get(act, [run for run in runs if run.status is RunStatus.REQUIRES_ACTION])
        candidates = fitting or runs
        if not candidates:
            return
        run = candidates[first % len(candidates)]
        match act:
            case Act.CLAIM:
                await self._claim(run)
            case Act.CANCEL:
                await self._cancel(run)
            case _:
                await self._resume(run, second)

    async def _cancel(self, run: Run) -> None:
        outcome = await cancel(self.stores.runs, ORG, run.id, actor=KEY, at=after(self.now))
        assert outcome is not None
        if run.status is RunStatus.IN_PROGRESS:
            assert outcome.run == replace(run, cancel_requested_by=KEY)
            self.asked_to_stop.add(run.id)
        elif run.status.is_terminal:
            assert outcome.run == run
        else:
            assert outcome.run.status is RunStatus.CANCELLED
            self.seen["cancelled at once"] += 1

    async def _resume(self, run: Run, count: int) -> None:
        if run.status is not RunStatus.REQUIRES_ACTION:
            return
        calls = {call.id: call for call in await self.stores.runs.tool_calls(ORG, run.id)}
        some = run.pending[: 1 + count % len(run.pending)]
        settled = tuple(a_settled_call(calls[use.id], at=after(self.now)) for use in some)
        resumed = await resume(self.stores.runs, ORG, run.id, settled, actor=KEY, at=after(self.now))
        assert resumed.pending == run.pending[len(some) :]
        assert resumed.status is (RunStatus.REQUIRES_ACTION if resumed.pending else RunStatus.QUEUED)
        self.seen["resumed"] += 1

    # --- acts of workers, and of time ---

    async def _claim(self, run: Run) -> None:
        runs = await self._runs(run.thread_id)
        queue = sorted(
            (other for other in runs if other.status is RunStatus.QUEUED),
            key=lambda other: (other.attempt == 0, other.created_at, other.id),
        )
        free = not any(other.status.is_active for other in runs)
        expected = free and bool(queue) and queue[0].id == run.id and not ends_at_claim(run)
        claimed = await self.stores.leases.claim(run.id, WORKER, lease_s=LEASE_S, at=after(self.now))
        assert isinstance(claimed, ClaimedRun) is expected
        if isinstance(claimed, EndedAtClaim):
            assert claimed.run == await stored(self.stores, run.id)
            assert claimed.run.status is (RunStatus.CANCELLED if run.cancel_requested_by else RunStatus.FAILED)
            self.seen["ended at the claim"] += 1
        if not isinstance(claimed, ClaimedRun):
            return
        assert claimed.run.attempt == run.attempt + 1
        assert claimed.transcript == await all_of(partial(self.stores.threads.messages, ORG, run.thread_id))
        open_ids = {call.id for call in claimed.open_calls}
        assert_answered_once(claimed.transcript, unanswered=open_ids)
        self.seen["claimed again" if run.attempt else "claimed"] += 1
        self.holdings.append(
            Holding(
                claimed=claimed,
                run=claimed.run,
                open_calls={call.id: call for call in claimed.open_calls},
                lease_until=self.now + LEASE_S,
            )
        )

    async def _recover(self, *, limit: int) -> tuple[RunId, ...]:
        ready = await self.stores.leases.recoverable(at=after(self.now), limit=limit)
        for holding in self.holdings:
            if holding.valid and holding.lease_until <= self.now:
                holding.valid = False
                assert holding.run.id in ready
                self.seen["lapsed"] += 1
        return ready

    async def _act_on_a_lease(self, act: Act, holding: Holding, number: int) -> None:
        lease, journal = holding.claimed.lease, self.stores.journal
        match act:
            case Act.RENEW:
                lost = await self.stores.leases.renew(WORKER, (lease,), lease_s=LEASE_S, at=after(self.now))
                assert lost == (frozenset() if holding.valid else {lease.run_id})
                holding.lease_until = self.now + LEASE_S
            case Act.HAND_BACK:
                handed = await self.stores.leases.hand_back(lease, active_s=self.now, at=after(self.now))
                assert handed is holding.valid
                holding.valid = False
            case Act.APPEND:
                delta = NewEvent(
                    type=RunEventType.MESSAGE_DELTA, at=after(self.now), data={"message_id": "msg_1", "text": "…"}
                )
                await self._write(holding, None, (delta,) * (1 + number % 3))
            case _:
                stop = await journal.cancel_requested_by(lease) is not None
                assert stop or holding.valid
                step = self._next_step(act, holding, number, stop=stop)
                await self._write(holding, step, ())

    async def _write(self, holding: Holding, step: Step | None, events: tuple[NewEvent, ...]) -> None:
        lease, journal = holding.claimed.lease, self.stores.journal
        before = None if holding.valid else await self._everything(lease.run_id)
        lost = False
        try:
            if step is None:
                await journal.append(lease, events)
            else:
                await journal.commit(lease, step)
        except LeaseLost:
            lost = True
        assert lost is not holding.valid
        if lost:
            assert await self._everything(lease.run_id) == before, "a stale epoch changes nothing"
            self.seen["stale write"] += 1
        elif step is not None:
            self._learn(holding, step)

    def _next_step(self, act: Act, holding: Holding, number: int, *, stop: bool) -> Step:
        """What a worker does next, going by what it knows."""
        at = after(self.now)
        # One that ended its lease itself and goes on by mistake does so from where it began.
        run = holding.run if holding.run.status is RunStatus.IN_PROGRESS else holding.claimed.run
        calls = tuple(sorted(holding.open_calls.values(), key=lambda call: call.index))
        attentive = number % 3 == 0  # a worker hears of the request some time, not at once
        if stop and holding.valid and attentive:
            return cancelled_step(run, calls, at=at, actor="system")
        if act is Act.FINISH and calls:
            ended = run.ended(RunStatus.COMPLETED, at=at)
            return closing_step(ended, calls, result=ToolResult.unknown("The outcome is not known."), at=at)
        if act is Act.FINISH:
            return finish_step(run, at=at)
        for call in calls:
            if call.state is ToolCallState.RECORDED:
                return settle_step(run, a_settled_call(call, at=at))
        awaiting = [call for call in calls if call.state is ToolCallState.AWAITING_CLIENT]
        if awaiting:
            return suspend_step(run, *awaiting, at=at)
        if calls:
            return answer_step(run, *calls, at=at)
        turn = run.usage.turns + 1
        build = [a_tool_call, a_displayable_call]
        new = [build[(number >> index) % 2](index, run_id=run.id, turn=turn) for index in range(1 + number % 3)]
        return reply_step(run, *new, at=at)

    def _learn(self, holding: Holding, step: Step) -> None:
        holding.run = step.run
        for call in step.recorded:
            holding.open_calls[call.id] = call
        for call in step.settled:
            holding.open_calls[call.id] = call
        for message in step.messages:
            for result in message.tool_results:
                del holding.open_calls[result.tool_id]
        if step.run.status is not RunStatus.IN_PROGRESS:
            holding.valid = False
            self.seen[step.run.status.value] += 1

    # --- what must hold ---

    async def _check_now(self) -> None:
        runs = await self._runs()
        for thread_id in THREADS:
            active = [run.id for run in runs if run.thread_id == thread_id and run.status.is_active]
            assert len(active) <= 1, f"{active} are active on one thread"
        held = {holding.run.id for holding in self.holdings if holding.valid}
        assert {run.id for run in runs if run.status is RunStatus.IN_PROGRESS} == held
        for run in runs:
            waits = run.status is RunStatus.REQUIRES_ACTION
            if run.id in self.asked_to_stop and not run.status.is_terminal:
                assert run.cancel_requested_by, f"the request to stop {run.id} is forgotten"
            assert bool(run.pending) is waits
            assert not (waits and run.cancel_requested_by), f"{run.id} waits although it was asked to stop"
            # All waits are for displayed calls, which the message of a queued run would settle.
            behind = [other.id for other in runs if other.thread_id == run.thread_id and not other.status.is_terminal]
            assert not waits or behind == [run.id], f"{run.id} waits before {behind}"

    async def _runs(self, thread_id: ThreadId | None = None) -> tuple[Run, ...]:
        return await all_of(partial(self.stores.runs.page, ORG, RunFilter(thread_id=thread_id)))

    async def _everything(self, run_id: RunId) -> tuple[object, ...]:
        return (
            await self.stores.runs.get(ORG, run_id),
            await self.stores.runs.events(ORG, run_id, after_seq=0, limit=1000),
            await messages_of(self.stores.runs, ORG, run_id),
            await self.stores.runs.tool_calls(ORG, run_id),
        )


async def assert_ended_whole(stores: Stores, run: Run) -> None:
    """Gapless events that end with the run's end, every call settled and answered once, every
    message announced."""
    events = await stores.runs.events(ORG, run.id, after_seq=0, limit=1000)
    assert [event.seq for event in events] == list(range(1, run.last_seq + 1))
    endings = [event for event in events if event.type.value == f"run.{run.status}"]
    assert endings == [events[-1]]
    calls = await stores.runs.tool_calls(ORG, run.id)
    assert all(call.state is ToolCallState.SETTLED for call in calls)
    messages = await messages_of(stores.runs, ORG, run.id)
    assert_answered_once(messages, unanswered=set())
    assert [use.id for message in messages for use in message.tool_uses] == [call.id for call in calls]
    announced = [event.data["message"] for event in events if event.type is RunEventType.MESSAGE_COMPLETED]
    assert [message["id"] for message in announced if isinstance(message, dict)] == [message.id for message in messages]


def ends_at_claim(run: Run) -> bool:
    """It was asked to stop, or given up after too many lost workers."""
    return run.cancel_requested_by is not None or run.lapses >= MAX_LEASE_EXPIRATIONS


def stays_unfinished(run: Run) -> bool:
    """All waits are for displayed calls, which the thread's next message settles."""
    return not run.status.is_terminal and run.status is not RunStatus.REQUIRES_ACTION


def assert_answered_once(messages: tuple[Message, ...], *, unanswered: set[ToolCallId]) -> None:
    """Every tool use has exactly one result, after it, except for those that are still open."""
    answers: Counter[str] = Counter()
    asked: set[str] = set()
    for message in messages:
        for result in message.tool_results:
            assert result.tool_id in asked, f"{result.tool_id} is answered before it was asked for"
            answers[result.tool_id] += 1
        asked.update(use.id for use in message.tool_uses)
    assert {use: answers[use] for use in asked} == {use: int(use not in unanswered) for use in asked}
