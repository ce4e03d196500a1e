"""The ledger of gateway calls in SQL: waiting entries share the next transaction.

A call is written twice, before it is sent and before it is answered. With many running calls,
the transaction is most of the cost.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.exc import IntegrityError

from application.webhooks.notices import of_quarantine
from domain.audit.event import AuditEvent
from domain.errors import not_found
from domain.gateway.call import GatewayCall, GatewayCallState, GatewaySettlement
from domain.ids import GatewaySessionId, OrganizationId, ToolCallId
from domain.json_value import JsonObject
from domain.threads.thread import Quarantine
from domain.tools.result import ToolResult
from infrastructure.persistence.approvals.rows import cancel_approvals
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.engine.database import SYSTEM, Database, Unit
from infrastructure.persistence.engine.postgres.months import read_past_changes
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.engine.staged import ByKeys, Staged, Stages
from infrastructure.persistence.gateway.call_rows import call_of, call_row, has_made, insert_call
from infrastructure.persistence.tables import gateway_call, gateway_session, thread
from infrastructure.persistence.webhooks.notice_rows import add_notices

logger = logging.getLogger(__name__)

MAX_BATCH = 500
_SETTLED = GatewayCallState.SETTLED.value

_settle = Prepared(
    update(gateway_call)
    .where(
        gateway_call.c.session_id == bindparam("of_session"),
        gateway_call.c.id == bindparam("call_id"),
        gateway_call.c.state != GatewayCallState.SETTLED.value,
    )
    .values(
        state=GatewayCallState.SETTLED.value,
        outcome=bindparam("new_outcome"),
        error_code=bindparam("new_error_code"),
        result=bindparam("new_result"),
        duration_ms=bindparam("new_duration_ms"),
        settled_at=bindparam("new_settled_at"),
    )
)
_calls = select(gateway_call).where(
    gateway_call.c.organization_id == bindparam("of_organization"),
    gateway_call.c.session_id == bindparam("of_session"),
)
_one = _calls.where(gateway_call.c.id == bindparam("call_id"))
_of_session = _calls.order_by(gateway_call.c.recorded_at, gateway_call.c.id)
_end_session = (
    update(gateway_session)
    .where(gateway_session.c.id == bindparam("of_session"), gateway_session.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("moment"))
)
_quarantine = (
    update(thread)
    .where(
        thread.c.id
        == select(gateway_session.c.thread_id).where(gateway_session.c.id == bindparam("of_session")).scalar_subquery(),
        thread.c.quarantined_at.is_(None),
    )
    .values(quarantined_at=bindparam("since"), quarantined_by=bindparam("by"), quarantined_for=bindparam("token_id"))
    .returning(thread.c.id)
)


class _Doubled(Exception):
    """Some of a batch's calls were settled before: each is stored alone and reports its own
    result."""


@dataclass(slots=True, kw_only=True)
class _Entry:
    """The entry of one caller: rows to insert, an outcome to set, or a separate unit."""

    session_id: GatewaySessionId
    new: dict[str, object] | None = None
    outcome: dict[str, object] | None = None
    audit: tuple[AuditEvent, ...] = ()
    own: Callable[[Connection], bool] | None = None
    done: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class SqlGatewayLedger:
    """The `GatewayLedger` port. Only results with an error are stored; others belong to the
    client."""

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._waiting: list[_Entry] = []
        self._storing: asyncio.Task[None] | None = None

    async def intend(self, call: GatewayCall, *, max_calls: int | None = None) -> bool:
        if max_calls is None:
            return await self._stored(_Entry(session_id=call.session_id, new=call_row(call)))
        limit = max_calls

        def unit(connection: Connection) -> bool:
            if has_made(connection, call, limit):
                return False
            insert_call.run(connection, call_row(call))
            return True

        return await self._stored(_Entry(session_id=call.session_id, own=unit))

    async def settle(self, settlement: GatewaySettlement, audit: AuditEvent) -> bool:
        entry = _Entry(session_id=settlement.call.session_id, outcome=_settlement_row(settlement), audit=(audit,))
        return await self._stored(entry)

    async def refuse(self, settlement: GatewaySettlement, audit: AuditEvent) -> None:
        row = {**call_row(settlement.call), **_outcome(settlement)}
        await self._stored(_Entry(session_id=settlement.call.session_id, new=row, audit=(audit,)))

    async def halt(self, settlement: GatewaySettlement, audit: tuple[AuditEvent, ...], quarantine: Quarantine) -> None:
        call = settlement.call
        session = {"of_session": call.session_id}

        def unit(connection: Connection) -> bool:
            if _settle.run(connection, _settlement_row(settlement)).count == 0:
                insert_call.run(connection, {**call_row(call), **_outcome(settlement)})
            connection.execute(_end_session, {**session, "moment": settlement.at})
            of = {"since": quarantine.at, "by": quarantine.run_id, "token_id": quarantine.canary_id}
            thread_id = connection.execute(_quarantine, {**session, **of}).scalar_one_or_none()
            if thread_id is not None:
                add_notices(connection, [of_quarantine(call.organization_id, thread_id, quarantine, None)])
            cancel_approvals(connection, call.session_id, at=settlement.at)
            record(connection, *audit)
            return True

        await self._stored(_Entry(session_id=call.session_id, own=unit))

    async def call_of(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, call_id: ToolCallId
    ) -> tuple[GatewayCall, GatewaySettlement | None] | None:
        wanted = {"of_organization": organization_id, "of_session": session_id, "call_id": call_id}
        row = await self._database.read(
            ByKeys(lambda connection: connection.execute(_one, wanted).one_or_none()), scope=organization_id
        )
        return None if row is None else call_of(row)

    async def calls_of(
        self, organization_id: OrganizationId, session_id: GatewaySessionId
    ) -> tuple[tuple[GatewayCall, GatewaySettlement | None], ...]:
        wanted = {"of_organization": organization_id, "of_session": session_id}
        return await read_past_changes(
            self._database,
            lambda connection: tuple(call_of(row) for row in connection.execute(_of_session, wanted)),
            of=gateway_call.name,
            scope=organization_id,
        )

    def _stored(self, entry: _Entry) -> asyncio.Future[bool]:
        self._waiting.append(entry)
        if self._storing is None:
            self._storing = asyncio.create_task(self._store(), name="gateway-ledger")
        return entry.done

    async def _store(self) -> None:
        """Store waiting entries and those added meanwhile, one transaction at a time."""
        had_company = False
        try:
            while self._waiting:
                if had_company:
                    # One more round of the event loop combines several entries into one commit.
                    await asyncio.sleep(0)
                batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
                had_company = len(batch) > 1
                try:
                    answers = await self._database.write(_unit_of(batch), scope=SYSTEM)
                except (IntegrityError, _Doubled):
                    await self._store_alone(batch)
                except Exception as error:  # noqa: BLE001 - it is for the callers
                    _fail(batch, error)
                else:
                    for entry, answer in zip(batch, answers, strict=True):
                        if not entry.done.done():
                            entry.done.set_result(answer)
        finally:
            self._storing = None

    async def _store_alone(self, batch: Sequence[_Entry]) -> None:
        """Store entries separately after one of them failed."""
        for entry in batch:
            try:
                (answer,) = await self._database.write(partial(_stored_one_by_one, batch=[entry]), scope=SYSTEM)
            except IntegrityError:
                _fail([entry], not_found("gateway session", entry.session_id))
            except Exception as error:  # noqa: BLE001 - it is for the caller
                _fail([entry], error)
            else:
                if not entry.done.done():
                    entry.done.set_result(answer)


def _fail(batch: Sequence[_Entry], error: Exception) -> None:
    for entry in batch:
        if not entry.done.done():
            entry.done.set_exception(error)


def _unit_of(batch: Sequence[_Entry]) -> Unit[list[bool]]:
    """All entries in one transaction. Without separate units they are sent at once, and share a
    transaction of PostgreSQL with others."""
    if any(entry.own is not None for entry in batch):
        return ByKeys(lambda connection: _stored_one_by_one(connection, batch))
    return Staged(lambda connection: _stored_at_once(connection, batch))


def _stored_at_once(connection: Connection, batch: Sequence[_Entry]) -> Stages[list[bool]]:
    """Raises _Doubled if a call was settled before."""
    if new := [entry.new for entry in batch if entry.new is not None]:
        insert_call.run(connection, *new)
    outcomes = [entry.outcome for entry in batch if entry.outcome is not None]
    settled = _settle.run(connection, *outcomes) if outcomes else None
    record(connection, *(event for entry in batch for event in entry.audit))
    yield
    if settled is not None and settled.count != len(outcomes):
        raise _Doubled
    return [True] * len(batch)


def _stored_one_by_one(connection: Connection, batch: Sequence[_Entry]) -> list[bool]:
    """An outcome that is not the first of its call stores nothing."""
    answers = []
    for entry in batch:
        stored = entry.own is None or entry.own(connection)
        if entry.new is not None:
            insert_call.run(connection, entry.new)
        if entry.outcome is not None:
            stored = _settle.run(connection, entry.outcome).count == 1
        if stored:
            record(connection, *entry.audit)
        answers.append(stored)
    return answers


def _outcome(settlement: GatewaySettlement) -> dict[str, object]:
    result = settlement.result
    return {
        "state": _SETTLED,
        "outcome": str(result.outcome),
        "error_code": result.error_code,
        "result": _kept_of(result),
        "duration_ms": settlement.duration_ms,
        "settled_at": settlement.at,
    }


def _settlement_row(settlement: GatewaySettlement) -> dict[str, object]:
    result = settlement.result
    return {
        "of_session": settlement.call.session_id,
        "call_id": settlement.call.id,
        "new_outcome": str(result.outcome),
        "new_error_code": result.error_code,
        "new_result": _kept_of(result),
        "new_duration_ms": settlement.duration_ms,
        "new_settled_at": settlement.at,
    }


def _kept_of(result: ToolResult) -> JsonObject | None:
    return {"text": result.text} if result.is_error else None
