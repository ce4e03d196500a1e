"""The acts of a story about runs: what clients, workers and time do, what each must come to, and
what must hold after it."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

import pytest

from application.runs.new_run import KEY_LIFETIME
from application.runs.ports import RunFilter
from application.runs.resume_run import ClientToolResult, ResumeRunCommand
from application.runs.start_run import StartRunCommand
from application.threads.append_message import AppendMessageCommand
from domain.approvals.decision import CallDecision
from domain.errors import ServiceError
from domain.ids import RunId, ThreadId
from domain.runs.closing import lacks_display_only, waits_for_display_only
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.threads.message import Role, TextContent, ToolUse
from tests.builders import ORG, START
from tests.contract.paging import all_of
from tests.contract.run_harness import APPROVAL_TTL_S, THREADS, StoredRunHarness, Working, input_of
from tests.contract.run_play import assert_ended_whole, ends_at_claim
from tests.unit.application.runs.harness import ADMIN

MAX_RUNS = 8


class RunActs:
    """One story. Numbers choose among what there is, so that no act fails to apply. `seen` counts
    what happened."""

    def __init__(self, harness: StoredRunHarness) -> None:
        self.harness = harness
        self.stores = harness.stores
        self.started = 0
        self.rolled_back: dict[RunId, str] = {}
        self.sendings_allowed: Counter[str] = Counter()
        self.used_keys: dict[str, tuple[str, RunId, datetime]] = {}
        self.appended: Counter[ThreadId] = Counter()
        self.seen: Counter[str] = Counter()

    async def start(
        self, thread: ThreadId, strategy: MultitaskStrategy, plan: tuple[int, ...], key: str | None, body: str
    ) -> None:
        if self.started == MAX_RUNS:
            return
        self.harness.clock.advance(0.1)
        now = self.harness.clock.now()
        before = await self._runs(thread)
        unfinished = [run for run in before if not run.status.is_terminal]
        waiting = [run for run in unfinished if await self._waits(run, waits_for_display_only)]
        going_on = [run for run in unfinished if await self._waits(run, lacks_display_only) and run not in waiting]
        staying = [run for run in unfinished if run not in waiting]
        said = input_of(self.started + 1, plan)
        command = StartRunCommand(
            principal=ADMIN,
            agent=self.harness.agent.id,
            input=(TextContent(text=said),),
            thread_id=thread,
            strategy=strategy,
            idempotency_key=key,
            body_digest=body,
        )
        used = None if key is None else self.used_keys.get(key)
        if used is not None and now - used[2] < KEY_LIFETIME:
            await self._repeat(command, used)
            assert await self._runs(thread) == before
            return
        if strategy is MultitaskStrategy.REJECT and staying:
            with pytest.raises(ServiceError, check=lambda error: error.code == "thread_busy"):
                await self.harness.start_run().execute(command)
            assert await self._runs(thread) == before
            return
        self.started += 1
        started = await self.harness.start_run().execute(command)
        assert (started.run.status, started.created) == (RunStatus.QUEUED, True)
        if key is not None:
            self.used_keys[key] = (body, started.run.id, now)
        for run in waiting:
            assert (await self._run(run.id)).status is RunStatus.COMPLETED
            self.seen["completed by the next message"] += 1
        if strategy is MultitaskStrategy.ENQUEUE:
            for run in going_on:
                assert (await self._run(run.id)).status is RunStatus.QUEUED
                self.seen["went on at the next message"] += 1
        if strategy is MultitaskStrategy.ROLLBACK:
            self.rolled_back.update((run.id, _said(run)) for run in staying)
        if strategy in (MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK):
            assert set(started.interrupted) == {run.id for run in staying}
            await self._stops_are_heard()
        self.seen[f"started: {strategy.value}"] += 1

    async def _repeat(self, command: StartRunCommand, used: tuple[str, RunId, datetime]) -> None:
        """The same key within a day: the same run for the same body, nothing for another."""
        body, run_id, _ = used
        if command.body_digest == body:
            again = await self.harness.start_run().execute(command)
            assert (again.run.id, again.created) == (run_id, False)
            self.seen["the same key"] += 1
            return
        with pytest.raises(ServiceError, check=lambda error: error.code == "idempotency_key_reused"):
            await self.harness.start_run().execute(command)

    async def cancel(self, number: int) -> None:
        runs = [run for run in await self._runs() if not run.status.is_terminal]
        if number >= len(runs):  # mostly: a story that is cancelled is a short one
            return
        run = runs[number]
        after = await self.harness.cancel(run.id)
        if run.status is RunStatus.IN_PROGRESS:
            assert after.cancel_requested_by is not None
            await self._stops_are_heard()
        else:
            assert after.status is RunStatus.CANCELLED
        self.seen["cancelled"] += 1

    async def give_results(self, number: int, count: int) -> None:
        pending = [(run, use) for run, use in await self._pending() if use.approval is None]
        if not pending:
            return
        run = pending[number % len(pending)][0]
        own = [use for other, use in pending if other.id == run.id][: 1 + count % 2]
        results = tuple(ClientToolResult(tool_call_id=use.id, result="shown") for use in own)
        await self.harness.resume_run.execute(ResumeRunCommand(principal=ADMIN, run_id=run.id, tool_results=results))
        with pytest.raises(ServiceError):  # once each
            await self.harness.resume_run.execute(
                ResumeRunCommand(principal=ADMIN, run_id=run.id, tool_results=results)
            )
        self.seen["given results"] += 1

    async def decide(self, number: int, *, approve: bool) -> None:
        pending = [(run, use) for run, use in await self._pending() if use.approval is not None]
        if not pending:
            return
        run, use = pending[number % len(pending)]
        decision = CallDecision(tool_call_id=use.id, approve=approve)
        command = ResumeRunCommand(principal=ADMIN, run_id=run.id, approvals=(decision,))
        if use.approval is not None and use.approval.expires_at <= self.harness.clock.now():
            with pytest.raises(ServiceError, check=lambda error: error.code == "approval_expired"):
                await self.harness.resume_run.execute(command)
            return
        await self.harness.resume_run.execute(command)
        self.sendings_allowed[use.id] += approve
        again = use.approval is not None and use.approval.outcome_unknown
        self.seen[f"{'approved' if approve else 'denied'}{' again' if again else ''}"] += 1
        with pytest.raises(ServiceError):  # once
            await self.harness.resume_run.execute(command)

    async def append(self, thread: ThreadId) -> None:
        busy = any(not run.status.is_terminal for run in await self._runs(thread))
        command = AppendMessageCommand(
            principal=ADMIN, thread_id=thread, role=Role.ASSISTANT, content=(TextContent(text="By the way."),)
        )
        if busy:
            with pytest.raises(ServiceError, check=lambda error: error.code == "thread_busy"):
                await self.harness.append_message.execute(command)
            return
        await self.harness.append_message.execute(command)
        self.appended[thread] += 1

    async def ring(self, number: int) -> None:
        runs = [run for run in await self._runs() if run.status is RunStatus.QUEUED]
        if not runs:
            return
        await self._ring_for(runs[number % len(runs)])

    async def _ring_for(self, run: Run) -> Working:
        taken = await self._is_next(run) and not ends_at_claim(run)
        working = await self.harness.ring(run.id)
        assert ((await self._run(run.id)).attempt == run.attempt + 1) is taken, "the order of the queue"
        self.seen["claimed" if taken else "not to be had"] += 1
        return working

    async def take_up(self, steps: int) -> None:
        for run in await self._runs():
            current = await self._run(run.id)
            if current.status is RunStatus.QUEUED and await self._is_next(current):
                working = await self._ring_for(current)
                for _ in range(steps):
                    await working.let_on()

    async def work(self, number: int, steps: int) -> None:
        alive = self._alive()
        if not alive:
            return
        working = alive[number % len(alive)]
        for _ in range(steps):
            await working.let_on()
        self.seen["stale writes"] += working.journal.stale_writes

    async def revive(self, number: int, steps: int) -> None:
        alive = self._alive()
        if not alive:
            return
        frozen = alive[number % len(alive)]
        await self.lose_leases(spared=7)
        await self.take_up(steps)
        for _ in range(steps):
            await frozen.let_on()
        self.seen["stale writes"] += frozen.journal.stale_writes

    async def kill(self, number: int) -> None:
        alive = self._alive()
        if alive:
            await alive[number % len(alive)].kill()
            self.seen["killed"] += 1

    async def drain(self, number: int) -> None:
        alive = self._alive()
        if alive:
            alive[number % len(alive)].worker.active_runs.drain()

    async def lose_leases(self, spared: int) -> None:
        alive = self._alive()
        for _ in range(2):
            self.harness.clock.advance(8)
            if alive and spared < 4:
                await alive[spared % len(alive)].worker.active_runs.renew()
        await self.harness.recover(sole_owner=False)

    async def sweep(self) -> None:
        await self.harness.recover(sole_owner=False)

    async def expire_approvals(self) -> None:
        await self.let_time_pass(APPROVAL_TTL_S)

    async def let_time_pass(self, seconds: float) -> None:
        """Workers that live do not lose their leases by it."""
        self.harness.clock.advance(seconds)
        for working in self._alive():
            await working.worker.active_runs.renew()
        self.seen["expired"] += await self.harness.fire_timers.execute()

    async def _stops_are_heard(self) -> None:
        asked = {run.id for run in await self._runs() if run.cancel_requested_by and not run.status.is_terminal}
        for working in self._alive():
            if working.run_id in asked:
                await working.hear()

    # --- checks ---

    async def check(self) -> None:
        assert not self.harness.seen.faults
        runs = await self._runs()
        claimable = await self.stores.leases.recoverable(at=START - timedelta(days=1), limit=100)
        for thread in THREADS:
            own = [run for run in runs if run.thread_id == thread]
            active = [run.id for run in own if run.status.is_active]
            assert len(active) <= 1, f"{active} are active on one thread"
            queued = [run.id for run in own if run.status is RunStatus.QUEUED]
            found = [run_id for run_id in queued if run_id in claimable]
            assert len(found) == int(bool(queued) and not active), f"of {queued} behind {active}, {found} can be had"
        for run in runs:
            assert bool(run.pending) is (run.status is RunStatus.REQUIRES_ACTION)
            if run.status is RunStatus.REQUIRES_ACTION:
                assert run.cancel_requested_by is None
                behind = [other for other in runs if other.thread_id == run.thread_id and not other.status.is_terminal]
                if len(behind) > 1:
                    calls = await self._open_calls(run)
                    assert not lacks_display_only(calls), f"{run.id} waits for a message that is there"
        await self._check_sends(runs)
        for run_id, said in self.harness.seen.prompts:
            for gone, text in self.rolled_back.items():
                assert gone == run_id or text not in said, f"{run_id} is told of {gone}, which was rolled back"

    async def _check_sends(self, runs: tuple[Run, ...]) -> None:
        """No call is sent more often than it may be, and none without the approval it needs."""
        sends = self.harness.seen.sends
        for run in runs:
            for call in await self.stores.runs.tool_calls(ORG, run.id):
                allowed = {
                    "mcp__s__write": 1,
                    "mcp__s__guard": 1 + self.sendings_allowed[call.id],
                    "mcp__s__ask": min(1, self.sendings_allowed[call.id]),
                }.get(call.name)
                assert allowed is None or sends[call.id] <= allowed, f"{call.id} was sent {sends[call.id]} times"

    async def end(self) -> None:
        for working in self._alive():
            await working.kill()
        for _ in range(8 * MAX_RUNS):
            self.harness.clock.advance(20)
            await self.harness.recover(sole_owner=False)
            runs = await self._runs()
            for run in runs:
                if run.status is RunStatus.REQUIRES_ACTION:
                    await self.harness.cancel(run.id)
                elif run.status is RunStatus.QUEUED:
                    await (await self.harness.ring(run.id)).finish()
            if all(run.status.is_terminal for run in runs):
                break
        await self.check()
        for run in await self._runs():
            assert run.status.is_terminal, f"{run.id} is stuck in {run.status}"
            await assert_ended_whole(self.stores, run)
        for thread in THREADS:
            listed = await all_of(partial(self.stores.threads.messages, ORG, thread))
            assert not {message.run_id for message in listed} & self.rolled_back.keys()
            assert sum(message.run_id is None for message in listed) == self.appended[thread]

    # --- reading ---

    def _alive(self) -> list[Working]:
        return [working for working in self.harness.workers if working.is_alive]

    async def _is_next(self, run: Run) -> bool:
        """Whether a queued run is the one to be had on its thread: begun ones first, then by
        age."""
        others = await self._runs(run.thread_id)
        queue = sorted(
            (other for other in others if other.status is RunStatus.QUEUED),
            key=lambda other: (other.attempt == 0, other.created_at, other.id),
        )
        return queue[0].id == run.id and not any(other.status.is_active for other in others)

    async def _runs(self, thread: ThreadId | None = None) -> tuple[Run, ...]:
        found = await all_of(partial(self.stores.runs.page, ORG, RunFilter(thread_id=thread)))
        return tuple(sorted(found, key=lambda run: run.id))

    async def _run(self, run_id: RunId) -> Run:
        run = await self.stores.runs.get(ORG, run_id)
        assert run is not None
        return run

    async def _pending(self) -> list[tuple[Run, ToolUse]]:
        return [(run, use) for run in await self._runs() for use in run.pending]

    async def _open_calls(self, run: Run) -> list[ToolCall]:
        calls = await self.stores.runs.tool_calls(ORG, run.id)
        return [call for call in calls if call.state is not ToolCallState.SETTLED]

    async def _waits(self, run: Run, so: Callable[[Iterable[ToolCall]], bool]) -> bool:
        return run.status is RunStatus.REQUIRES_ACTION and so(await self._open_calls(run))


def _said(run: Run) -> str:
    return "".join(part.text for part in run.input if isinstance(part, TextContent))
