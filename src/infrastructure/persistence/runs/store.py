"""Stored runs in SQL, as the API sees them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, select

from application.runs.ports import (
    CancelOutcome,
    IdempotencyKey,
    NewRun,
    RunFilter,
    RunOutcome,
    StartedRun,
    control_topic,
)
from application.system.pages import Page, PageRequest
from application.system.wakeups import Wakeups
from domain.approvals.approval import ApprovalOutcome
from domain.errors import not_found
from domain.ids import OrganizationId, RunId
from domain.runs.events import RunEvent
from domain.runs.ledger import InputAnswer, Settlement, ToolCall
from domain.runs.resuming import resuming_step
from domain.runs.run import Run, RunStatus
from domain.threads.message import Message
from infrastructure.persistence.columns.paging import newest_first
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.engine.sqlite.small_units import is_small_start
from infrastructure.persistence.engine.staged import Staged, Stages
from infrastructure.persistence.runs.event_rows import event_of, select_events
from infrastructure.persistence.runs.ledger_rows import calls_of_run, open_calls
from infrastructure.persistence.runs.rows import run_of, select_run
from infrastructure.persistence.runs.start import run_of_key, start_run, starts_plainly
from infrastructure.persistence.runs.steps import change_run, follow_up
from infrastructure.persistence.runs.stopping import stop_run
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import message, run
from infrastructure.persistence.threads.message_rows import message_of
from infrastructure.persistence.threads.queue import lock_thread_of, unfinished_runs
from infrastructure.persistence.webhooks.urls import sealed_url

_get = Prepared(
    select_run.where(run.c.organization_id == bindparam("organization_id"), run.c.id == bindparam("run_id"))
)
_messages = Prepared(
    select(message)
    .where(message.c.organization_id == bindparam("organization_id"), message.c.run_id == bindparam("run_id"))
    .order_by(message.c.position)
)
_events = Prepared(select_events)


_SHORT_TURNS = 16
"""Runs up to so many turns are read at once with their messages."""

Submit = Callable[[Connection, Sequence[RunId]], None]


class SqlRunStore:
    """The `RunStore` port. `submit` tells a queue that is stored in the same database of runs, in their transaction."""

    def __init__(self, *, database: Database, wakeups: Wakeups, box: SecretBox, submit: Submit | None = None) -> None:
        self._database = database
        self._box = box
        self._wakeups = wakeups
        self._submit = submit

    async def start(self, new: NewRun) -> StartedRun:
        """Store a run as QUEUED, settling or stopping the thread's unfinished runs as asked."""
        webhook_url = sealed_url(new.webhook_url, self._box)

        def unit(connection: Connection) -> tuple[StartedRun, tuple[Run, ...]]:
            started, touched = start_run(connection, new, webhook_url=webhook_url)
            if self._submit is None or not started.to_submit:
                return started, touched
            self._submit(connection, started.to_submit)
            return replace(started, submitted=True), touched

        def in_one_stage(connection: Connection) -> Stages[tuple[StartedRun, tuple[Run, ...]]]:
            yield from ()  # a start on a new thread needs no answers
            return unit(connection)

        started, _ = await self._database.write(
            Staged(in_one_stage) if starts_plainly(new) else unit,
            scope=new.run.organization_id,
            after_commit=lambda result: self._wake(result[1]),
            is_small=is_small_start(new),
            may_gather=True,
        )
        return started

    async def started_before(self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime) -> Run | None:
        """The run that the key named before, as it stands."""
        return await self._database.read(
            lambda connection: run_of_key(connection, organization_id, key, at=at), scope=organization_id
        )

    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None:
        """The run, or None."""
        return await self._database.read(
            lambda connection: _run(connection, organization_id, run_id), scope=organization_id, is_small=True
        )

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
            ),
            scope=organization_id,
        )

    async def messages(self, organization_id: OrganizationId, run_id: RunId) -> tuple[Message, ...]:
        """The run's own messages, in order."""
        return await self._database.read(
            lambda connection: _messages_of(connection, organization_id, run_id), scope=organization_id
        )

    async def outcome(self, organization_id: OrganizationId, run_id: RunId) -> RunOutcome | None:
        """The run with its messages, or None."""

        def short(connection: Connection) -> RunOutcome | Run | None:
            stored = _run(connection, organization_id, run_id)
            if stored is None or stored.usage.turns > _SHORT_TURNS:
                return stored
            return RunOutcome(run=stored, messages=_messages_of(connection, organization_id, run_id))

        def whole(connection: Connection) -> RunOutcome | None:
            stored = _run(connection, organization_id, run_id)
            if stored is None:
                return None
            return RunOutcome(run=stored, messages=_messages_of(connection, organization_id, run_id))

        found = await self._database.read(short, scope=organization_id, is_small=True)
        if isinstance(found, Run):
            return await self._database.read(whole, scope=organization_id)
        return found

    async def tool_calls(self, organization_id: OrganizationId, run_id: RunId) -> tuple[ToolCall, ...]:
        """The run's ledger entries, in order."""
        return await self._database.read(
            lambda connection: calls_of_run(connection, organization_id, run_id), scope=organization_id
        )

    async def events(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        """Events with a higher seq, in order."""
        wanted = {"organization_id": organization_id, "run_id": run_id, "after_seq": after_seq, "limit": limit}
        return await self._database.read(
            lambda connection: tuple(event_of(row) for row in _events.rows(connection, wanted)),
            scope=organization_id,
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

        outcome, _ = await self._database.write(
            unit, scope=organization_id, after_commit=lambda result: self._wake(result[1])
        )
        return outcome

    async def resume(
        self,
        organization_id: OrganizationId,
        run_id: RunId,
        settlements: tuple[Settlement, ...],
        *,
        answers: tuple[InputAnswer, ...] = (),
        outcomes: tuple[ApprovalOutcome, ...] = (),
        actor: str,
        at: datetime,
    ) -> Run:
        """Settle and answer waiting calls, and end approvals."""

        def unit(connection: Connection) -> Run:
            lock_thread_of(connection, run_id)
            stored = _run(connection, organization_id, run_id)
            if stored is None:
                raise not_found("run", run_id)
            step = resuming_step(
                stored,
                open_calls(connection, run_id),
                settlements,
                answers,
                outcomes,
                queued_behind=len(unfinished_runs(connection, stored.thread_id)) > 1,
                actor=actor,
                at=at,
            )
            outcome = change_run(connection, step, seen=RunStatus.REQUIRES_ACTION)
            return replace(step.run, last_seq=outcome.last_seq)

        return await self._database.write(
            unit, scope=organization_id, after_commit=lambda resumed: follow_up(self._wakeups, resumed)
        )

    def _wake(self, touched: tuple[Run, ...]) -> None:
        for changed in touched:
            if changed.status is RunStatus.IN_PROGRESS:
                self._wakeups.wake(control_topic(changed.id))
            else:
                follow_up(self._wakeups, changed)


def _run(connection: Connection, organization_id: OrganizationId, run_id: RunId) -> Run | None:
    found = _get.rows(connection, {"organization_id": organization_id, "run_id": run_id})
    return run_of(found[0]) if found else None


def _messages_of(connection: Connection, organization_id: OrganizationId, run_id: RunId) -> tuple[Message, ...]:
    wanted = {"organization_id": organization_id, "run_id": run_id}
    return tuple(message_of(row) for row in _messages.rows(connection, wanted))
