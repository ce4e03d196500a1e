"""SQL of gateway calls that wait for an approval, and of lost calls."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, bindparam, literal_column, or_, select, update
from sqlalchemy.exc import IntegrityError

from application.gateway.ports import AskedCall
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState
from domain.audit.event import AuditEvent
from domain.errors import not_found
from domain.gateway.call import GatewayCall, GatewayCallState
from domain.gateway.session import GatewaySession
from domain.ids import GatewaySessionId, OrganizationId
from infrastructure.persistence.approvals.rows import add_approvals, approval_of, end_approval
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.column_types import Moment
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.gateway.call_rows import call_of, call_row, has_made, insert_call
from infrastructure.persistence.gateway.store import session_of
from infrastructure.persistence.tables import approval, gateway_call, gateway_session

# Literal in the statement, so that the partial index over open calls is used.
_is_open: ColumnElement[bool] = literal_column("gateway_call.state <> 'settled'")
_awaits = gateway_call.c.state == GatewayCallState.AWAITING_APPROVAL.value
_this_call = (
    gateway_call.c.session_id == bindparam("of_session"),
    gateway_call.c.id == bindparam("call_id"),
    gateway_call.c.approval_id == bindparam("asked"),
    _awaits,
)
_ask_anew = update(gateway_call).where(*_this_call).values(approval_id=bindparam("new_approval_id"))
_begin = (
    update(gateway_call)
    .where(*_this_call)
    .values(
        state=GatewayCallState.RECORDED.value,
        params=bindparam("new_params"),
        recorded_at=bindparam("new_recorded_at"),
        due_at=bindparam("new_due_at"),
    )
)
_asked_calls = (
    select(gateway_call)
    .where(
        gateway_call.c.organization_id == bindparam("of_organization"),
        gateway_call.c.session_id == bindparam("of_session"),
        gateway_call.c.name == bindparam("of_tool"),
        _is_open,
        _awaits,
    )
    .order_by(gateway_call.c.recorded_at, gateway_call.c.id)
)
_approvals = select(approval).where(approval.c.id.in_(bindparam("ids", expanding=True)))
_recorded = (
    select(gateway_call, gateway_session.c.id.label("_session"))
    .where(_is_open, gateway_call.c.state == GatewayCallState.RECORDED.value)
    .join(gateway_session, gateway_session.c.id == gateway_call.c.session_id)
    .limit(bindparam("at_most"))
)
_due = _recorded.where(
    or_(gateway_call.c.due_at.is_(None), gateway_call.c.due_at < bindparam("before", type_=Moment()))
)
_sessions = select(gateway_session, gateway_session.c.revoked_at.label("ended_at")).where(
    gateway_session.c.id.in_(bindparam("ids", expanding=True))
)


class SqlGatewayApprovals:
    """The ports `GatewayApprovals` and `LostCalls`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def ask(
        self,
        call: GatewayCall,
        approval: Approval,
        *,
        instead_of: Approval | None = None,
        max_calls: int | None = None,
    ) -> bool:
        """Store a call that awaits its approval, or the new approval of a stored one."""

        def unit(connection: Connection) -> bool:
            if instead_of is not None:
                return _asked_anew(connection, call, approval, instead_of)
            if max_calls is not None and has_made(connection, call, max_calls):
                return False
            insert_call.run(connection, call_row(call))
            add_approvals(connection, (approval,))
            return True

        return await self._stored(unit, call)

    async def asked(
        self, organization_id: OrganizationId, session_id: GatewaySessionId, name: str
    ) -> tuple[AskedCall, ...]:
        """Calls that await an approval, or have one that was not used."""
        wanted = {"of_organization": organization_id, "of_session": session_id, "of_tool": name}

        def unit(connection: Connection) -> tuple[AskedCall, ...]:
            calls = [call_of(row)[0] for row in connection.execute(_asked_calls, wanted)]
            if not calls:
                return ()
            ids = [call.approval_id for call in calls]
            approvals = {row.id: approval_of(row) for row in connection.execute(_approvals, {"ids": ids})}
            return tuple(
                AskedCall(call=call, approval=approvals[call.approval_id])
                for call in calls
                if call.approval_id is not None and call.approval_id in approvals
            )

        return await self._database.read(unit, scope=organization_id)

    async def begin(self, asked: AskedCall, call: GatewayCall) -> bool:

        def unit(connection: Connection) -> bool:
            begun = {
                **_this(asked.call, asked.approval),
                "new_params": call.params,
                "new_recorded_at": call.recorded_at,
                "new_due_at": call.due_at,
            }
            if connection.execute(_begin, begun).rowcount == 0:
                return False
            end_approval(connection, _stale(asked.approval, call.recorded_at))
            return True

        return await self._stored(unit, asked.call)

    async def end(self, approval: Approval, outcome: ApprovalOutcome, audit: tuple[AuditEvent, ...]) -> bool:

        def unit(connection: Connection) -> bool:
            if not end_approval(connection, outcome):
                return False
            record(connection, *audit)
            return True

        return await self._database.write(unit, scope=approval.organization_id)

    async def lost(self, *, before: datetime | None, limit: int) -> tuple[tuple[GatewaySession, GatewayCall], ...]:
        statement, wanted = (_recorded, {}) if before is None else (_due, {"before": before})

        def unit(connection: Connection) -> tuple[tuple[GatewaySession, GatewayCall], ...]:
            calls = [call_of(row)[0] for row in connection.execute(statement, {**wanted, "at_most": limit})]
            if not calls:
                return ()
            ids = list({call.session_id for call in calls})
            sessions = {row.id: session_of(row) for row in connection.execute(_sessions, {"ids": ids})}
            return tuple((sessions[call.session_id], call) for call in calls)

        return await self._database.read(unit, scope=SYSTEM)

    async def _stored(self, unit: Callable[[Connection], bool], call: GatewayCall) -> bool:
        try:
            return await self._database.write(unit, scope=call.organization_id)
        except IntegrityError as error:
            raise not_found("gateway session", call.session_id) from error


def _asked_anew(connection: Connection, call: GatewayCall, approval: Approval, instead_of: Approval) -> bool:
    renewed = {**_this(call, instead_of), "new_approval_id": approval.id}
    if connection.execute(_ask_anew, renewed).rowcount == 0:
        return False
    end_approval(connection, _stale(instead_of, approval.created_at))
    add_approvals(connection, (approval,))
    return True


def _this(call: GatewayCall, asked: Approval) -> dict[str, object]:
    return {"of_session": call.session_id, "call_id": call.id, "asked": asked.id}


def _stale(approval: Approval, at: datetime) -> ApprovalOutcome:
    return ApprovalOutcome(approval_id=approval.id, state=ApprovalState.STALE, at=at, by="system")
