"""Leases of runs, in SQL."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import attrgetter

from sqlalchemy import Connection, Integer, bindparam, cast, exists, func, select, update
from sqlalchemy.exc import IntegrityError

from application.runs.ports import ClaimedRun, EndedAtClaim
from application.system.wakeups import Wakeups
from domain.agents.agent import Agent
from domain.copies import with_changes
from domain.ids import MessageId, RunId, ThreadId, WorkerId
from domain.runs.admission import has_place_of_caller
from domain.runs.claiming import REPLY_EVENTS, ClaimFacts, Suspected, abandoned_message, decide_claim
from domain.runs.events import RunEventType
from domain.runs.lease import Lease
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.lost_workers import LostRun, attributed
from domain.runs.run import SUSPECT_AFTER, Run, RunStatus
from domain.threads.message import Message
from infrastructure.persistence.agents.rows import ask_newest_version
from infrastructure.persistence.columns.leases import expired_by, held_after, renewing
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.database import SYSTEM, Database, is_duplicate
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.engine.staged import Staged, Stages
from infrastructure.persistence.runs.admission import NO_BOUNDS, RunningBounds
from infrastructure.persistence.runs.ledger_rows import ask_open_calls
from infrastructure.persistence.runs.rows import run_of, select_run
from infrastructure.persistence.runs.steps import change_run, claim_run, follow_up
from infrastructure.persistence.secrets.box import KeyedBox
from infrastructure.persistence.tables import message, organization, run, run_event, tool_call
from infrastructure.persistence.threads.item_columns import items_of
from infrastructure.persistence.threads.message_rows import message_of
from infrastructure.persistence.threads.queue import (
    ask_next_run,
    in_quarantine,
    is_unfinished,
    lock_thread_of,
    queue_order,
)

_in_progress = run.c.status == RunStatus.IN_PROGRESS.value
_put_back = {"status": RunStatus.QUEUED.value, "epoch": run.c.epoch + 1, "worker_id": None, "lease_expires_at": None}

_settings = select(organization.c.settings).where(organization.c.id == run.c.organization_id).scalar_subquery()
_run = Prepared(select_run.add_columns(_settings.label("settings")).where(run.c.id == bindparam("run_id")))
_transcript = Prepared(
    select(message)
    .where(message.c.thread_id == bindparam("thread_id"), message.c.superseded.is_(False))
    .order_by(message.c.position)
)
_any_message = Prepared(select(message.c.id).where(message.c.thread_id == bindparam("thread_id")).limit(1))
_newest_reply_event = Prepared(
    select(run_event.c.type, run_event.c.data)
    .where(
        run_event.c.run_id == bindparam("run_id"),
        run_event.c.type.in_(
            bindparam("kinds", [kind.value for kind in REPLY_EVENTS], expanding=True, literal_execute=True)
        ),
    )
    .order_by(run_event.c.seq.desc())
    .limit(1)
)
_renew = renewing(run)
_back = (
    update(run)
    .where(run.c.id == bindparam("run_id"), run.c.epoch == bindparam("lease_epoch"), _in_progress)
    .values(**_put_back)
)
_hand_back = _back.values(active_s=bindparam("new_active_s"))
_take_back = _back.where(run.c.last_seq == bindparam("seen_seq"))
_executing = exists().where(tool_call.c.run_id == run.c.id, tool_call.c.state == ToolCallState.RECORDED.value)
_lapsed = (
    select(run.c.id, run.c.worker_id, run.c.lapses, _executing.label("executing"))
    .where(_in_progress, is_unfinished, run.c.lease_expires_at <= bindparam("moment"))
    .order_by(run.c.created_at, run.c.id)
    .limit(bindparam("limit"))
)
_lapsed_here = _lapsed.with_for_update(skip_locked=True, of=run)
_recover = (
    update(run)
    .where(run.c.id.in_(bindparam("run_ids", expanding=True)), _in_progress)
    .values(lapses=run.c.lapses + cast(run.c.id.in_(bindparam("attributed", expanding=True)), Integer), **_put_back)
    .returning(run.c.id)
)
_places = (
    select(
        run.c.id,
        run.c.status,
        func.row_number().over(partition_by=run.c.thread_id, order_by=queue_order).label("place"),
    )
    .where(is_unfinished, ~in_quarantine)
    .subquery()
)
_first_of_threads = (
    select(
        run.c.id,
        run.c.organization_id,
        run.c.created_at,
        run.c.lapses,
        func.row_number().over(partition_by=run.c.agent_id, order_by=(run.c.created_at, run.c.id)).label("turn"),
    )
    .join(_places, run.c.id == _places.c.id)
    .where(
        _places.c.place == 1,
        _places.c.status == RunStatus.QUEUED.value,
        _places.c.id.not_in(bindparam("but", expanding=True)),
    )
    .subquery()
)
_turn = func.row_number().over(
    partition_by=_first_of_threads.c.organization_id,
    order_by=(_first_of_threads.c.turn, _first_of_threads.c.created_at, _first_of_threads.c.id),
)
# In turns of organizations and of their agents: a line that waits for places hides no lost signal
# of others.
_claimable = (
    select(_first_of_threads.c.id, _first_of_threads.c.lapses)
    .order_by(_turn, _first_of_threads.c.created_at, _first_of_threads.c.id)
    .limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """Result of a claiming transaction: the run, for `agent`. `transcript` is loaded if this is the
    thread's first run."""

    run: Run
    agent: Agent
    open_calls: tuple[ToolCall, ...]
    transcript: tuple[Message, ...] | None


class SqlRunLeases:
    """The `RunLeases` port."""

    def __init__(self, *, database: Database, wakeups: Wakeups, box: KeyedBox) -> None:
        self._database = database
        self._wakeups = wakeups
        self._box = box

    async def claim(
        self, run_id: RunId, worker_id: WorkerId, *, lease_s: float, at: datetime, takes_suspects: bool = True
    ) -> ClaimedRun | EndedAtClaim | Suspected | None:
        lease = {"new_worker_id": worker_id, "new_lease_expires_at": at + timedelta(seconds=lease_s)}

        def wake(claim: _Claim | EndedAtClaim | Suspected | None) -> None:
            if isinstance(claim, _Claim | EndedAtClaim):
                follow_up(self._wakeups, claim.run)

        try:
            claim = await self._database.write(
                Staged(
                    lambda connection: _claim(
                        connection, run_id, lease, at=at, box=self._box, takes_suspects=takes_suspects
                    )
                ),
                scope=SYSTEM,
                after_commit=wake,
            )
        except IntegrityError as error:
            # The unique index on active runs decides: another worker claimed a run of this thread
            # first.
            if is_duplicate(error):
                return None
            raise
        if not isinstance(claim, _Claim):
            return claim
        thread_id = claim.run.thread_id
        transcript = claim.transcript
        if transcript is None:
            # The thread belongs to this worker now, so its messages are read outside the claiming
            # transaction.
            transcript = await self._database.read(
                lambda connection: _read_transcript(connection, thread_id, self._box), scope=claim.run.organization_id
            )
        return ClaimedRun(
            lease=Lease(
                run_id=run_id,
                organization_id=claim.run.organization_id,
                thread_id=thread_id,
                epoch=claim.run.epoch,
            ),
            run=claim.run,
            agent=claim.agent,
            transcript=transcript,
            open_calls=claim.open_calls,
        )

    async def renew(
        self, worker_id: WorkerId, leases: tuple[Lease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[RunId]:
        if not leases:
            return frozenset()
        run_ids, until = [lease.run_id for lease in leases], at + timedelta(seconds=lease_s)
        held = await self._database.write(
            lambda connection: held_after(connection, _renew, worker_id, run_ids, until=until), scope=SYSTEM
        )
        return frozenset(lease.run_id for lease in leases if (lease.run_id, lease.epoch) not in held)

    async def hand_back(self, lease: Lease, *, active_s: float, at: datetime) -> bool:
        wanted = {"run_id": lease.run_id, "lease_epoch": lease.epoch, "new_active_s": active_s}

        def unit(connection: Connection) -> bool:
            lock_thread_of(connection, lease.run_id)
            return connection.execute(_hand_back, wanted).rowcount == 1

        return await self._database.write(unit, scope=lease.organization_id)

    async def take_back(self, lease: Lease, *, seen_seq: int) -> bool:
        wanted = {"run_id": lease.run_id, "lease_epoch": lease.epoch, "seen_seq": seen_seq}

        def unit(connection: Connection) -> bool:
            lock_thread_of(connection, lease.run_id)
            return connection.execute(_take_back, wanted).rowcount == 1

        return await self._database.write(unit, scope=lease.organization_id)

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> tuple[RunId, ...]:
        moment = expired_by(at, sole_owner=sole_owner)

        def look(connection: Connection) -> tuple[RunId, ...] | None:
            if connection.execute(_lapsed, {"moment": moment, "limit": 1}).first() is not None:
                return None
            return _claimable_runs(connection, but=(), limit=limit)

        def put_back(connection: Connection) -> tuple[RunId, ...]:
            found = connection.execute(_lapsed_here, {"moment": moment, "limit": limit}).all()
            lapsed = _by_suspicion(found)
            if lapsed:
                counted = attributed(_lost_run(row) for row in found)
                connection.execute(_recover, {"run_ids": list(lapsed), "attributed": sorted(counted)}).all()
            return (*lapsed, *_claimable_runs(connection, but=lapsed, limit=limit - len(lapsed)))

        # Every worker runs this every other second, and there is rarely anything to write.
        found = await self._database.read(look, scope=SYSTEM)
        return await self._database.write(put_back, scope=SYSTEM) if found is None else found


def _claim(
    connection: Connection,
    run_id: RunId,
    lease: dict[str, object],
    *,
    at: datetime,
    box: KeyedBox,
    takes_suspects: bool,
) -> Stages[_Claim | EndedAtClaim | Suspected | None]:
    lock_thread_of(connection, run_id)
    found = _run.ask(connection, {"run_id": run_id})
    yield
    rows = found.typed()
    if not rows:
        return None
    stored = run_of(rows[0])
    first = ask_next_run(connection, stored.thread_id)
    newest = ask_newest_version(connection, stored.agent_id, box)
    was_begun = stored.attempt > 0
    any_message = _any_message.ask(connection, {"thread_id": stored.thread_id})
    open_calls = ask_open_calls(connection, run_id) if was_begun else None
    reply_events = _newest_reply_event.ask(connection, {"run_id": run_id}) if was_begun else None
    yield
    agent = newest()
    facts = ClaimFacts(
        run=stored,
        is_next=first() == run_id,
        agent_version=agent.version,
        takes_suspects=takes_suspects,
        open_calls=() if open_calls is None else open_calls(),
        abandoned=None if reply_events is None else _abandoned(reply_events.typed()),
    )
    step = decide_claim(facts, at=at)
    if step is None or isinstance(step, Suspected):
        return step
    if step.run.status.is_terminal:
        ended = change_run(connection, step, seen=stored.status)
        return EndedAtClaim(run=replace(step.run, last_seq=ended.last_seq), promoted=ended.promoted)
    is_first = not was_begun and any_message.first() is None
    of_organization = (rows[0].settings or {}).get("max_running")
    bounds = RunningBounds(organization=of_organization, agent=agent.config.max_running)
    outcome = yield from claim_run(connection, step, lease, NO_BOUNDS if has_place_of_caller(stored) else bounds)
    if outcome is None:
        return None
    return _Claim(
        run=with_changes(step.run, last_seq=outcome.last_seq),
        agent=agent,
        open_calls=facts.open_calls,
        transcript=step.messages if is_first else None,
    )


def _claimable_runs(connection: Connection, *, but: tuple[RunId, ...], limit: int) -> tuple[RunId, ...]:
    return _by_suspicion(connection.execute(_claimable, {"but": list(but), "limit": limit}).all())


def _lost_run(row: AnyRow) -> LostRun:
    return LostRun(
        run_id=RunId(row.id),
        worker_id=WorkerId(row.worker_id),
        executing=bool(row.executing),
        suspect=row.lapses >= SUSPECT_AFTER,
    )


def _by_suspicion(found: Iterable[AnyRow]) -> tuple[RunId, ...]:
    """Suspects take turns: the one with the fewest lost workers is first."""
    return tuple(RunId(row.id) for row in sorted(found, key=attrgetter("lapses")))


def _abandoned(newest: list[AnyRow]) -> MessageId | None:
    return abandoned_message(RunEventType(newest[0].type), newest[0].data) if newest else None


def _read_transcript(connection: Connection, thread_id: ThreadId, box: KeyedBox) -> tuple[Message, ...]:
    rows = _transcript.ask(connection, {"thread_id": thread_id}).typed()
    return tuple(message_of(row, items_of(row, box)) for row in rows)
