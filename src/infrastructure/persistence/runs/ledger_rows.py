"""Tool calls to rows and back. A result is stored in the ledger until a message contains it, then
only in the message."""

from collections.abc import Callable, Iterable
from typing import cast

from sqlalchemy import Connection, bindparam, select, update

from domain.approvals.approval import ApprovalRequest
from domain.ids import McpServerId, MessageId, OrganizationId, RunId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.elicitation import Elicitation
from domain.runs.ledger import ToolCall, ToolCallState
from domain.threads.message import FileContent, ImageContent, Message, ToolResultContent
from domain.threads.message_json import content_from_json, content_to_json
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolOutcome, ToolResult
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import Prepared, prepared_insert
from infrastructure.persistence.tables import message, tool_call
from infrastructure.persistence.threads.message_rows import content_of

_insert = prepared_insert(tool_call)
_settle = Prepared(
    update(tool_call)
    .where(
        tool_call.c.id == bindparam("call_id"),
        tool_call.c.run_id == bindparam("of_run"),
        tool_call.c.state != ToolCallState.SETTLED.value,
    )
    .values(
        state=ToolCallState.SETTLED.value,
        outcome=bindparam("new_outcome"),
        error_code=bindparam("new_error_code"),
        result=bindparam("new_result"),
        duration_ms=bindparam("new_duration_ms"),
        settled_at=bindparam("new_settled_at"),
        message_id=bindparam("new_message_id"),
        elicitation=None,
        input=None,
    )
)
_change = Prepared(
    update(tool_call)
    .where(
        tool_call.c.id == bindparam("call_id"),
        tool_call.c.run_id == bindparam("of_run"),
        tool_call.c.state != ToolCallState.SETTLED.value,
    )
    .values(
        call=bindparam("new_call"),
        state=bindparam("new_state"),
        elicitation=bindparam("new_elicitation"),
        input=bindparam("new_input"),
        approval=bindparam("new_approval"),
    )
)
_answer = Prepared(
    update(tool_call)
    .where(tool_call.c.id == bindparam("call_id"), tool_call.c.run_id == bindparam("of_run"))
    .values(result=None, message_id=bindparam("new_message_id"))
)
_of_run = (
    select(tool_call)
    .where(
        tool_call.c.organization_id == bindparam("organization_id"),
        tool_call.c.run_id == bindparam("run_id"),
    )
    .order_by(tool_call.c.turn, tool_call.c.position)
)
_open = Prepared(
    select(tool_call)
    .where(tool_call.c.run_id == bindparam("run_id"), tool_call.c.message_id.is_(None))
    .order_by(tool_call.c.turn, tool_call.c.position)
)
_contents = select(message.c.content).where(
    message.c.run_id == bindparam("run_id"), message.c.id.in_(bindparam("ids", expanding=True))
)


def add_calls(connection: Connection, organization_id: OrganizationId, calls: tuple[ToolCall, ...]) -> None:
    if calls:
        _insert.run(connection, *[_row(organization_id, call) for call in calls])


def change_calls(connection: Connection, run_id: RunId, calls: tuple[ToolCall, ...]) -> Callable[[], None]:
    """Replace params, state, elicitation, input and approval. Call the returned check after
    execution: it raises ValueError for a call that is not recorded or already settled."""
    if not calls:
        return _nothing_to_check
    rows: list[dict[str, object]] = [
        {
            "call_id": call.id,
            "of_run": run_id,
            "new_call": _call_json(call),
            "new_state": call.state.value,
            "new_elicitation": _elicitation_json(call.elicitation),
            "new_input": call.input,
            "new_approval": _approval_json(call.approval),
        }
        for call in calls
    ]
    changed = _change.run(connection, *rows)

    def check() -> None:
        if changed.count != len(rows):
            raise ValueError(f"run {run_id} has not all of these calls to be changed: {[call.id for call in calls]}")

    return check


def settle_calls(
    connection: Connection, run_id: RunId, calls: tuple[ToolCall, ...], messages: tuple[Message, ...]
) -> Callable[[], None]:
    """Store outcomes, and which of `messages` (stored in the same step) contain results. Call the
    returned check after execution: it raises ValueError for a call that is not recorded or
    already settled."""
    answered = {result.tool_id: entry.id for entry in messages for result in entry.tool_results}
    if calls:
        settled = _settle.run(connection, *[_outcome_row(call, answered.pop(call.id, None)) for call in calls])
    if answered:
        _answer.run(
            connection,
            *[{"call_id": call_id, "of_run": run_id, "new_message_id": id_} for call_id, id_ in answered.items()],
        )

    def check() -> None:
        if calls and settled.count != len(calls):
            ids = [call.id for call in calls]
            raise ValueError(f"run {run_id} has not all of these calls to be settled: {ids}")

    return check


def open_calls(connection: Connection, run_id: RunId) -> tuple[ToolCall, ...]:
    """The run's calls without an answering message, in order."""
    return ask_open_calls(connection, run_id)()


def ask_open_calls(connection: Connection, run_id: RunId) -> Callable[[], tuple[ToolCall, ...]]:
    """As `open_calls`, to be read in the next stage."""
    rows = _open.ask(connection, {"run_id": run_id})
    return lambda: tuple(_call_of(row, {}) for row in rows.typed())


def calls_of_run(connection: Connection, organization_id: OrganizationId, run_id: RunId) -> tuple[ToolCall, ...]:
    """The run's ledger, in order, with results from the ledger or messages."""
    rows = connection.execute(_of_run, {"organization_id": organization_id, "run_id": run_id}).all()
    carried = _carried_results(connection, run_id, rows)
    return tuple(_call_of(row, carried) for row in rows)


def _nothing_to_check() -> None:
    """For a step that changes no calls."""


def _carried_results(
    connection: Connection, run_id: RunId, rows: Iterable[AnyRow]
) -> dict[ToolCallId, ToolResultContent]:
    ids = sorted({row.message_id for row in rows if row.message_id is not None})
    if not ids:
        return {}
    contents = connection.execute(_contents, {"run_id": run_id, "ids": ids}).scalars()
    return {
        part.tool_id: part
        for content in contents
        for part in content_of(content)
        if isinstance(part, ToolResultContent)
    }


def _row(organization_id: OrganizationId, call: ToolCall) -> dict[str, object]:
    result = call.result
    return {
        "id": call.id,
        "organization_id": organization_id,
        "run_id": call.run_id,
        "turn": call.turn,
        "position": call.index,
        "call": _call_json(call),
        "type": None if call.type is None else str(call.type),
        "server_id": call.server_id,
        "repeatable": call.repeatable,
        "state": str(call.state),
        "recorded_at": call.recorded_at,
        "outcome": None if result is None else result.outcome.value,
        "error_code": None if result is None else result.error_code,
        "result": None if result is None else _result_json(result),
        "duration_ms": call.duration_ms,
        "settled_at": call.settled_at,
        "message_id": None,
        "elicitation": _elicitation_json(call.elicitation),
        "input": call.input,
        "approval": _approval_json(call.approval),
    }


def _call_json(call: ToolCall) -> JsonObject:
    stored: JsonObject = {"name": call.name, "params": call.params}
    return stored if call.called_as is None else {**stored, "called_as": call.called_as}


def _outcome_row(call: ToolCall, message_id: MessageId | None) -> dict[str, object]:
    result, at = call.outcome
    return {
        "call_id": call.id,
        "of_run": call.run_id,
        "new_outcome": str(result.outcome),
        "new_error_code": result.error_code,
        "new_result": _result_json(result) if message_id is None else None,
        "new_duration_ms": call.duration_ms,
        "new_settled_at": at,
        "new_message_id": message_id,
    }


def _call_of(row: AnyRow, carried: dict[ToolCallId, ToolResultContent]) -> ToolCall:
    call = cast(JsonObject, row.call)
    call_id = ToolCallId(row.id)
    return ToolCall(
        id=call_id,
        run_id=RunId(row.run_id),
        turn=row.turn,
        index=row.position,
        name=cast(str, call["name"]),
        type=None if row.type is None else ToolType(row.type),
        server_id=None if row.server_id is None else McpServerId(row.server_id),
        params=cast(JsonObject, call["params"]),
        called_as=cast("str | None", call.get("called_as")),
        repeatable=row.repeatable,
        state=ToolCallState(row.state),
        recorded_at=row.recorded_at,
        result=None if row.outcome is None else _result_of(row, carried.get(call_id)),
        duration_ms=row.duration_ms,
        settled_at=row.settled_at,
        elicitation=None if row.elicitation is None else Elicitation.from_json(cast(JsonObject, row.elicitation)),
        input=row.input,
        approval=None if row.approval is None else ApprovalRequest.from_json(cast(JsonObject, row.approval)),
    )


def _elicitation_json(elicitation: Elicitation | None) -> JsonValue:
    return None if elicitation is None else elicitation.as_json()


def _approval_json(approval: ApprovalRequest | None) -> JsonValue:
    return None if approval is None else approval.as_json()


def _result_json(result: ToolResult) -> JsonValue:
    stored: JsonObject = {"text": result.text, "images": [content_to_json(image) for image in result.images]}
    return {**stored, "files": [content_to_json(file) for file in result.files]} if result.files else stored


def _result_of(row: AnyRow, carried: ToolResultContent | None) -> ToolResult:
    if carried is not None:
        text, images, files = carried.result, carried.images, carried.files
    else:
        stored = cast(JsonObject, row.result)
        text = cast(str, stored["text"])
        images = tuple(
            cast(ImageContent, content_from_json(image)) for image in cast("list[JsonObject]", stored["images"])
        )
        files = tuple(
            cast(FileContent, content_from_json(file)) for file in cast("list[JsonObject]", stored.get("files", []))
        )
    return ToolResult(
        outcome=ToolOutcome(row.outcome), text=text, images=images, files=files, error_code=row.error_code
    )
