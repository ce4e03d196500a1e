"""Stored runs in SQL, as the API sees them."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, select

from application.runs.ports import (
    CancelOutcome,
    NewRun,
    RunFilter,
    StartedRun,
    Step,
    Wakeups,
    control_topic,
)
from application.runs.run_events import run_resumed, tool_settled
from application.system.pages import Page, PageRequest
from domain.errors import Violation, conflict, invalid, not_found
from domain.ids import OrganizationId, RunId
from domain.runs.audit_trail import tool_call_audit
from domain.runs.events import RunEvent
from domain.runs.ledger import Settlement, ToolCall
from domain.runs.run import Run, RunStatus
from domain.threads.message import Message
from infrastructure.persistence.database import Database
from infrastructure.persistence.event_rows import event_of, select_events
from infrastructure.persistence.ledger_rows import calls_of_run, open_calls
from infrastructure.persistence.message_rows import message_of
from infrastructure.persistence.paging import newest_first
from infrastructure.persistence.run_rows import run_of, select_run
from infrastructure.persistence.run_start import start_run
from infrastructure.persistence.run_steps import change_run, follow_up
from infrastructure.persistence.run_stopping import stop_run
from infrastructure.persistence.tables import message, run
from infrastructure.persistence.thread_queue import lock_thread_of

_get = select_run.where(run.c.organization_id == bindparam("organization_id"), run.c.id == bindparam("run_id"))
_messages = (
    select(message)
    .where(message.c.organization_id == bindparam("organization_id"), message.c.run_id == bindparam("run_id"))
    .order_by(message.c.position)
)


class SqlRunStore:
    """The `RunStore` port."""

    def __init__(self, *, database: Database, wakeups: Wakeups) -> None:
        self._database = database
        self._wakeups = wakeups

    async def start(self, new: NewRun) -> StartedRun:
        """Store a run as QUEUED, settling or stopping the thread's unfinished runs as asked."""
        started, _ = await self._database.write(
            lambda connection: start_run(connection, new), after_commit=lambda result: self._wake(result[1])
        )
        return started

    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None:
        """The run, or None."""
        return await self._database.read(lambda connection: _run(connection, organization_id, run_id))

    async def page(self, organization_id: OrganizationId, wanted: RunFilter, request: PageRequest) -> Page[Run]:
        """Runs, newest first."""
        statement = select_run.where(run.c.organization_id == organization_id)
        if wanted.thread_id is not None:
            statement = statement.where(run.c.thread_id == wanted.thread_id)
        if wanted.agent_id is not None:
            statement = statement.where(run.c.agent_id == wanted.agent_id)
        if wanted.status is not None:
            statement = statement.where(run.c.status == wanted.status.value)
        return await self._database.read(
            lambda connection: newest_first(
                connection, statement, request, moment=run.c.created_at, identifier=run.c.id, convert=run_of
            )
        )

    async def messages(self, organization_id: OrganizationId, run_id: RunId) -> tuple[Message, ...]:
        """The run's own messages, in order."""
        wanted = {"organization_id": organization_id, "run_id": run_id}
        return await self._database.read(
            lambda connection: tuple(message_of(row) for row in connection.execute(_messages, wanted))
        )

    async def tool_calls(self, organization_id: OrganizationId, run_id: RunId) -> tuple[ToolCall, ...]:
        """The run's ledger entries, in order."""
        return await self._database.read(lambda connection: calls_of_run(connection, organization_id, run_id))

    async def events(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        """Events with a higher seq, in order."""
        wanted = {"organization_id": organization_id, "run_id": run_id, "after_seq": after_seq, "limit": limit}
        return await self._database.read(
            lambda connection: tuple(event_of(row) for row in connection.execute(select_events, wanted))
        )

    async def request_cancel(
        self, organization_id: OrganizationId, run_id: RunId, *, actor: str, at: datetime
    ) -> CancelOutcome | None:
        """Cancel a queued or waiting run, or mark one in progress."""

        def unit(connection: Connection) -> tuple[CancelOutcome | None, tuple[Run, ...]]:
            lock_thread_of(connection, run_id)
            stored = _run(connection, organization_id, run_id)
            if stored is None:
                return None, ()
            if stored.status.is_terminal:
                return CancelOutcome(run=stored), ()
            outcome = stop_run(connection, stored, actor=actor, at=at)
            return outcome, (outcome.run,)

        outcome, _ = await self._database.write(unit, after_commit=lambda result: self._wake(result[1]))
        return outcome

    async def resume(
        self, organization_id: OrganizationId, run_id: RunId, settlements: tuple[Settlement, ...], *, at: datetime
    ) -> Run:
        """Settle awaiting calls."""

        def unit(connection: Connection) -> Run:
            lock_thread_of(connection, run_id)
            stored = _run(connection, organization_id, run_id)
            if stored is None:
                raise not_found("run", run_id)
            step = _resuming_step(connection, stored, settlements, at=at)
            outcome = change_run(connection, step, seen=RunStatus.REQUIRES_ACTION)
            return replace(step.run, last_seq=outcome.last_seq)

        return await self._database.write(unit, after_commit=lambda resumed: follow_up(self._wakeups, resumed))

    def _wake(self, touched: tuple[Run, ...]) -> None:
        for changed in touched:
            if changed.status is RunStatus.IN_PROGRESS:
                self._wakeups.wake(control_topic(changed.id))
            else:
                follow_up(self._wakeups, changed)


def _run(connection: Connection, organization_id: OrganizationId, run_id: RunId) -> Run | None:
    row = connection.execute(_get, {"organization_id": organization_id, "run_id": run_id}).first()
    return None if row is None else run_of(row)


def _resuming_step(connection: Connection, stored: Run, settlements: tuple[Settlement, ...], *, at: datetime) -> Step:
    if stored.status is not RunStatus.REQUIRES_ACTION:
        raise conflict("run_not_waiting", f"Run {stored.id} is {stored.status}, not requires_action.", run_id=stored.id)
    _refuse_unless_pending(stored, settlements)
    settled_ids = {settlement.tool_call_id for settlement in settlements}
    pending = tuple(use for use in stored.pending if use.id not in settled_ids)
    calls = {call.id: call for call in open_calls(connection, stored.id)}
    answers = [(calls[settlement.tool_call_id], settlement) for settlement in settlements]
    return Step(
        run=replace(stored, pending=pending) if pending else stored.resumed(),
        events=(
            *(tool_settled(call, settlement, server=None) for call, settlement in answers),
            *(() if pending else (run_resumed(at=at),)),
        ),
        settled=settlements,
        audit=tuple(tool_call_audit(stored, call, settlement) for call, settlement in answers),
    )


def _refuse_unless_pending(stored: Run, settlements: tuple[Settlement, ...]) -> None:
    pending = {use.id for use in stored.pending}
    wrong = []
    for index, settlement in enumerate(settlements):
        if settlement.tool_call_id not in pending:
            wrong.append(Violation(path=f"tool_results.{index}.tool_call_id", message="is not pending"))
        pending.discard(settlement.tool_call_id)
    if wrong:
        raise invalid("tool_call_not_pending", f"Run {stored.id} does not wait for all of these calls.", *wrong)
