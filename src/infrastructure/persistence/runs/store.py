"""Stored runs in SQL."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select

from application.runs.new_run import IdempotencyKey, NewRun, StartedRun
from application.runs.ports import ChangedRun, CountedRuns, RunFilter, RunOrder, RunOutcome, control_topic
from application.system.pages import SEARCHED, Page, PageRequest
from application.system.wakeups import Wakeups
from domain.ids import OrganizationId, RunId
from domain.runs.change import Decide
from domain.runs.events import RunEvent
from domain.runs.lane import Flow
from domain.runs.ledger import ToolCall
from domain.runs.run import Run, RunStatus
from domain.teams import Teams
from domain.threads.message import Message
from infrastructure.persistence.columns.paging import among_newest, newest_first, sorted_page
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.postgres.months import read_past_changes
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.engine.staged import ByKeys, Staged, Stages
from infrastructure.persistence.runs.changes import change_one, load_run
from infrastructure.persistence.runs.event_rows import events_after
from infrastructure.persistence.runs.filters import changed_at, conditions
from infrastructure.persistence.runs.ledger_rows import calls_of_run
from infrastructure.persistence.runs.newest import asks_for_newest, newest_run
from infrastructure.persistence.runs.orders import added_columns, bounds, sort_of
from infrastructure.persistence.runs.rows import run_of, select_run
from infrastructure.persistence.runs.start import (
    may_be_refused_unstored,
    refuse_unstored,
    run_of_key,
    start_run,
    starts_plainly,
)
from infrastructure.persistence.runs.steps import follow_up
from infrastructure.persistence.runs.walks import Walk
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import message, run, run_event, run_request, tool_call
from infrastructure.persistence.threads.message_rows import message_of, shown_columns
from infrastructure.persistence.webhooks.urls import sealed_url

_HEAVY = (run_request.c.input, run_request.c.client_tools, run_request.c.client_request)
_changed_at = changed_at.label("changed_at")
_messages = Prepared(
    select(*shown_columns)
    .where(message.c.organization_id == bindparam("organization_id"), message.c.run_id == bindparam("run_id"))
    .order_by(message.c.position)
)

Submit = Callable[[Connection, Sequence[RunId]], None]
Signal = Callable[[RunId, Flow | None], None]
Withdraw = Callable[[RunId], None]


class SqlRunStore:
    """The `RunStore` and `RunReader` ports. `submit` submits runs to a queue in the same database,
    in their transaction; `signal` a queue in this process, after the commit, with the line of the
    run that was started. `withdraw` is called with each run that ended without a worker. A page
    looks at `walked` runs where no index has those it wants."""

    def __init__(
        self,
        *,
        database: Database,
        wakeups: Wakeups,
        box: SecretBox,
        submit: Submit | None = None,
        signal: Signal | None = None,
        withdraw: Withdraw | None = None,
        walked: int = SEARCHED,
    ) -> None:
        self._database = database
        self._box = box
        self._wakeups = wakeups
        self._submit = submit
        self._signal = signal
        self._withdraw = withdraw
        self._walked = walked

    async def start(self, new: NewRun) -> StartedRun:
        """Store a run as QUEUED, settling or stopping the thread's unfinished runs as asked."""
        if may_be_refused_unstored(new):
            # Starts beyond the bound leave the writers alone; `admit` counts exactly.
            await self._database.read(
                lambda connection: refuse_unstored(connection, new), scope=new.run.organization_id
            )
        webhook_url = sealed_url(new.webhook_url, self._box)

        def unit(connection: Connection) -> tuple[StartedRun, tuple[Run, ...]]:
            started, touched = start_run(connection, new, webhook_url=webhook_url)
            if self._submit is None or not started.to_submit:
                return started, touched
            self._submit(connection, started.to_submit)
            return replace(started, submitted=True), touched

        def in_one_stage(connection: Connection) -> Stages[tuple[StartedRun, tuple[Run, ...]]]:
            yield from ()  # a start on a new thread reads nothing
            return unit(connection)

        def committed(result: tuple[StartedRun, tuple[Run, ...]]) -> None:
            started, touched = result
            self._wake(touched)
            if self._signal is not None:
                for run_id in started.to_submit:
                    self._signal(run_id, _line(started.run) if run_id == started.run.id else None)

        started, _ = await self._database.write(
            Staged(in_one_stage) if starts_plainly(new) else unit,
            scope=new.run.organization_id,
            after_commit=committed,
        )
        return started if self._signal is None else replace(started, submitted=True)

    async def started_before(self, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime) -> Run | None:
        return await self._database.read(
            lambda connection: run_of_key(connection, organization_id, key, at=at), scope=organization_id
        )

    async def get(self, organization_id: OrganizationId, run_id: RunId) -> Run | None:
        return await self._database.read(
            lambda connection: load_run(connection, organization_id, run_id), scope=organization_id
        )

    async def page(
        self,
        organization_id: OrganizationId,
        wanted: RunFilter,
        request: PageRequest,
        order: RunOrder = RunOrder.NEWEST,
    ) -> Page[Run]:
        if order is RunOrder.NEWEST and asks_for_newest(wanted, request):
            return await self._database.read(
                lambda connection: newest_run(connection, organization_id, wanted), scope=organization_id
            )
        teams = request.teams
        all_of = (
            *bounds(organization_id, wanted, order, teams=teams),
            *conditions(organization_id, wanted, teams=teams),
        )
        keys = select(run.c.id).where(*all_of)
        # Row security asks for the organization in both tables, which PostgreSQL takes for two
        # independent conditions: it expects one run, and would read all requests rather than those
        # of a page.
        of_runs_alone = keys.get_final_froms() == [run]

        walk = None
        if wanted.is_walked and not order.is_by_figure:
            walk = Walk(
                organization_id=organization_id, wanted=wanted, request=request, order=order, length=self._walked
            )

        def unit(connection: Connection) -> Page[Run]:
            end = None if walk is None else walk.end(connection)
            within = () if end is None else (end.bounds,)
            page = sorted_page(
                connection,
                select_run.add_columns(*added_columns(order)).where(*all_of, *within),
                request,
                sort=sort_of(order),
                identifier=run.c.id,
                convert=run_of,
                heavy=_HEAVY,
                keys=keys.where(*within) if of_runs_alone else None,
                owner=run.c.team,
            )
            return page if end is None or page.next_cursor is not None else replace(page, next_cursor=end.cursor)

        return await self._database.read(unit, scope=organization_id)

    async def count(self, organization_id: OrganizationId, wanted: RunFilter, *, most: int, teams: Teams = None) -> int:
        found = select(run.c.id).where(*conditions(organization_id, wanted, teams=teams), *seen_by(teams, run.c.team))
        if run_request in found.get_final_froms():
            found = found.where(run_request.c.run_id == run.c.id)
        if wanted.is_walked:
            found = found.where(among_newest(run, organization_id, until=wanted.until))
        counted = select(func.count()).select_from(found.limit(most).subquery())
        return await self._database.read(
            lambda connection: connection.execute(counted).scalar_one(), scope=organization_id
        )

    async def by_change(self, organization_id: OrganizationId, wanted: RunFilter, request: PageRequest) -> CountedRuns:
        # No index has this order, so the newest runs bound what is sorted.
        teams = request.teams
        newest = among_newest(run, organization_id, teams=teams)
        all_of = (newest, *conditions(organization_id, wanted, teams=teams), *seen_by(teams, run.c.team))
        statement = select_run.add_columns(_changed_at).where(*all_of)
        counted = select(func.count()).select_from(run).join(run_request, run_request.c.run_id == run.c.id)

        def unit(connection: Connection) -> CountedRuns:
            page = newest_first(
                connection,
                statement,
                request,
                moment=_changed_at,
                identifier=run.c.id,
                convert=run_of,
                heavy=_HEAVY,
            )
            return CountedRuns(page=page, total=connection.execute(counted.where(*all_of)).scalar_one())

        return await self._database.read(unit, scope=organization_id)

    async def outcome(self, organization_id: OrganizationId, run_id: RunId) -> RunOutcome | None:

        def unit(connection: Connection) -> RunOutcome | None:
            stored = load_run(connection, organization_id, run_id)
            if stored is None:
                return None
            return RunOutcome(run=stored, messages=_messages_of(connection, organization_id, run_id))

        return await self._database.read(unit, scope=organization_id)

    async def tool_calls(self, organization_id: OrganizationId, run_id: RunId) -> tuple[ToolCall, ...]:
        return await read_past_changes(
            self._database,
            lambda connection: calls_of_run(connection, organization_id, run_id),
            of=tool_call.name,
            scope=organization_id,
        )

    async def events(
        self, organization_id: OrganizationId, run_id: RunId, *, after_seq: int, limit: int
    ) -> tuple[RunEvent, ...]:
        wanted = {"organization_id": organization_id, "run_id": run_id, "after_seq": after_seq, "limit": limit}
        unit = ByKeys(lambda connection: events_after(connection, wanted))
        found = await self._database.read(unit, scope=organization_id)
        if found or after_seq:
            return found
        # Each run has a first event, unless it moved to another partition, or retention has removed
        # it.
        return await read_past_changes(self._database, unit, of=run_event.name, scope=organization_id)

    async def change(self, organization_id: OrganizationId, run_id: RunId, decide: Decide) -> ChangedRun | None:

        def unit(connection: Connection) -> tuple[ChangedRun | None, bool]:
            return change_one(connection, organization_id, run_id, decide)

        def wake(result: tuple[ChangedRun | None, bool]) -> None:
            changed, is_stored = result
            if changed is not None and is_stored:
                self._wake((changed.run,))

        changed, _ = await self._database.write(unit, scope=organization_id, after_commit=wake)
        return changed

    def _wake(self, touched: tuple[Run, ...]) -> None:
        for changed in touched:
            if changed.status is RunStatus.IN_PROGRESS:
                self._wakeups.wake(control_topic(changed.id))
            else:
                follow_up(self._wakeups, changed)
                if self._withdraw is not None and changed.status.is_terminal:
                    self._withdraw(changed.id)


def _messages_of(connection: Connection, organization_id: OrganizationId, run_id: RunId) -> tuple[Message, ...]:
    wanted = {"organization_id": organization_id, "run_id": run_id}
    return tuple(message_of(row) for row in _messages.ask(connection, wanted).typed())


def _line(started: Run) -> Flow:
    """The line in which the run waits, without weight and bounds."""
    return Flow(organization_id=started.organization_id, lane=started.lane, agent_id=started.agent_id)
