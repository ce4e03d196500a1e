"""Calls of gateway sessions to rows and back."""

from typing import cast

from sqlalchemy import Connection, and_, bindparam, func, or_, select

from application.tools.failure_text import NEVER_MADE
from domain.gateway.call import GatewayCall, GatewaySettlement
from domain.json_value import JsonObject
from domain.tools.result import ToolOutcome, ToolResult
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import prepared_insert
from infrastructure.persistence.tables import gateway_call, gateway_session

_call = row_fields(GatewayCall, without=("from_app",))
insert_call = prepared_insert(gateway_call)
_made = select(func.count()).where(
    gateway_call.c.session_id == bindparam("of_session"),
    gateway_call.c.name == bindparam("of_tool"),
    or_(
        gateway_call.c.outcome.is_(None),
        and_(
            gateway_call.c.outcome != ToolOutcome.BLOCKED.value,
            func.coalesce(gateway_call.c.error_code, "").not_in(sorted(NEVER_MADE)),
        ),
    ),
)
_lock_session = select(gateway_session.c.id).where(gateway_session.c.id == bindparam("of_session")).with_for_update()


def has_made(connection: Connection, call: GatewayCall, max_calls: int) -> bool:
    """Whether the session has reached the limit of the tool's calls. Excludes other counts until
    the commit."""
    # Two parallel counts would both allow the last call.
    connection.execute(_lock_session, {"of_session": call.session_id})
    counted = {"of_session": call.session_id, "of_tool": call.name}
    made: int = connection.execute(_made, counted).scalar_one()
    return made >= max_calls


def call_row(call: GatewayCall) -> dict[str, object]:
    """The row of a call that is not settled."""
    return {
        **_call.write(call),
        "outcome": None,
        "error_code": None,
        "result": None,
        "duration_ms": None,
        "settled_at": None,
    }


def call_of(row: AnyRow) -> tuple[GatewayCall, GatewaySettlement | None]:
    call = _call.of_row(row)
    if row.outcome is None:
        return call, None
    text = "" if row.result is None else cast(str, cast(JsonObject, row.result)["text"])
    result = ToolResult(outcome=ToolOutcome(row.outcome), text=text, error_code=row.error_code)
    return call, GatewaySettlement(call=call, result=result, duration_ms=row.duration_ms, at=row.settled_at)
