"""Workflow runs to rows and back, and writing one that changed with the events that tell of it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Connection, bindparam, select, update

from application.runs.idempotency import idempotency_key_reused
from application.runs.ports import KEY_LIFETIME, IdempotencyKey
from domain.ids import ApiKeyId, OrganizationId, RunId, WorkflowId, WorkflowRunId
from domain.json_value import JsonObject, JsonValue
from domain.workflows.execution import NodeError, NodeRun, NodeStatus
from domain.workflows.run import (
    WorkflowEvent,
    WorkflowEventType,
    WorkflowRun,
    WorkflowRunStatus,
    events_between,
)
from infrastructure.persistence.columns.column_types import micros, moment_of
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.tables import workflow_event, workflow_node_run, workflow_run
from infrastructure.persistence.workflows.tool_store import remove_tools

_nodes_of = select(workflow_node_run.c.state).where(workflow_node_run.c.workflow_run_id == bindparam("of_run"))
_new_node = upsert(workflow_node_run)
_put_node = _new_node.on_conflict_do_update(
    index_elements=["workflow_run_id", "node_id"],
    set_={name: _new_node.excluded[name] for name in ("state", "waits_for", "waits_seq")},
)
# Waits for another transaction that is using the same key, then stores nothing.
_insert = (
    upsert(workflow_run)
    .on_conflict_do_nothing(
        index_elements=["organization_id", "idempotency_key"],
        index_where=workflow_run.c.idempotency_key.is_not(None),
    )
    .returning(workflow_run.c.id)
)
_of_organization = workflow_run.c.organization_id == bindparam("of_organization")
_take_off_keys = (
    update(workflow_run)
    .where(
        _of_organization,
        workflow_run.c.idempotency_key == bindparam("of_key"),
        workflow_run.c.created_at <= bindparam("expired"),
    )
    .values(idempotency_key=None, body_digest=None)
)
_of_key = select(workflow_run).where(
    _of_organization,
    workflow_run.c.idempotency_key == bindparam("of_key"),
    workflow_run.c.created_at > bindparam("expired"),
)
_insert_event = workflow_event.insert()
_change = update(workflow_run).where(workflow_run.c.id == bindparam("of_run"))


def earlier_run(connection: Connection, run: WorkflowRun, key: IdempotencyKey | None) -> WorkflowRun | None:
    """The run that the key of a new one named within its lifetime; one of before has the key no more. Raises INVALID
    `idempotency_key_reused`."""
    if key is None:
        return None
    expired = run.created_at - KEY_LIFETIME
    connection.execute(_take_off_keys, {"of_organization": run.organization_id, "of_key": key.key, "expired": expired})
    return run_of_key(connection, run.organization_id, key, at=run.created_at)


def run_of_key(
    connection: Connection, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime
) -> WorkflowRun | None:
    """The same of no particular run; changes nothing."""
    wanted = {"of_organization": organization_id, "of_key": key.key, "expired": at - KEY_LIFETIME}
    row = connection.execute(_of_key, wanted).first()
    if row is None:
        return None
    if row.body_digest != key.body_digest:
        raise idempotency_key_reused()
    return run_of(connection, row)


def insert_run(
    connection: Connection, run: WorkflowRun, *, at: datetime, idempotency: IdempotencyKey | None = None
) -> WorkflowRun:
    """Store a new run with its first events; returns it with its `last_seq`. If another transaction was faster with the key,
    the run of that."""
    inserted = connection.execute(
        _insert,
        {
            "id": run.id,
            "organization_id": run.organization_id,
            "workflow_id": run.workflow_id,
            "workflow_version": run.workflow_version,
            "input": run.input,
            "requested_by": run.requested_by,
            "created_at": run.created_at,
            "idempotency_key": None if idempotency is None else idempotency.key,
            "body_digest": None if idempotency is None else idempotency.body_digest,
            **_changing(run),
        },
    )
    if inserted.first() is None and idempotency is not None:
        faster = run_of_key(connection, run.organization_id, idempotency, at=at)
        if faster is None:
            raise LookupError(f"workflow run {run.id} was not stored, and no other has its key")
        return faster
    return _write_parts(connection, None, run, at=at)


def write_change(
    connection: Connection, before: WorkflowRun, after: WorkflowRun, *, at: datetime, **columns: object
) -> WorkflowRun:
    """Store what changed, and `columns` of the run beside; the caller has locked the row. A run that ends loses its tools."""
    stored = _write_parts(connection, before, after, at=at)
    if after.status.is_terminal:
        remove_tools(connection, after.id)
    connection.execute(_change.values(**_changing(stored), **columns), {"of_run": after.id})
    return stored


OUTLINE = tuple(column for column in workflow_run.c if column.name not in ("input", "output"))
"""What `outline_of` reads."""


def run_of(connection: Connection, row: AnyRow) -> WorkflowRun:
    """From a row of `workflow_run`, with its nodes."""
    nodes = (
        _node_of(cast("dict[str, Any]", state)) for state in connection.execute(_nodes_of, {"of_run": row.id}).scalars()
    )
    return replace(
        outline_of(row),
        input=row.input,
        output=row.output,
        nodes={node.node_id: node for node in sorted(nodes, key=lambda node: node.node_id)},
    )


def outline_of(row: AnyRow) -> WorkflowRun:
    """From a row, without input, output and nodes."""
    return WorkflowRun(
        id=WorkflowRunId(row.id),
        organization_id=OrganizationId(row.organization_id),
        workflow_id=WorkflowId(row.workflow_id),
        workflow_version=row.workflow_version,
        status=WorkflowRunStatus(row.status),
        input=None,
        requested_by=ApiKeyId(row.requested_by),
        created_at=row.created_at,
        error=_error_of(row.error),
        failed_node=row.failed_node,
        attempt=row.attempt,
        epoch=row.epoch,
        last_seq=row.last_seq,
        wake_at=row.wake_at,
        cancel_requested_by=row.cancel_requested_by,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def event_of(row: AnyRow) -> WorkflowEvent:
    """From a row of `workflow_event`."""
    return WorkflowEvent(seq=row.seq, type=WorkflowEventType(row.type), at=row.at, data=row.data)


def _write_parts(
    connection: Connection, before: WorkflowRun | None, after: WorkflowRun, *, at: datetime
) -> WorkflowRun:
    known: Mapping[str, NodeRun] = {} if before is None else before.nodes
    changed = [node for node_id, node in after.nodes.items() if node != known.get(node_id)]
    if changed:
        connection.execute(
            _put_node,
            [
                {
                    "workflow_run_id": after.id,
                    "node_id": node.node_id,
                    "organization_id": after.organization_id,
                    "state": _node_json(node),
                    "waits_for": node.waits_for_run,
                    "waits_seq": node.run_seq,
                }
                for node in changed
            ],
        )
    events = events_between(before, after, at=at)
    last_seq = 0 if before is None else before.last_seq
    if events:
        connection.execute(
            _insert_event,
            [
                {
                    "workflow_run_id": after.id,
                    "seq": last_seq + number,
                    "organization_id": after.organization_id,
                    "type": event.type.value,
                    "at": event.at,
                    "data": event.data,
                }
                for number, event in enumerate(events, start=1)
            ],
        )
    stored = replace(after, last_seq=last_seq + len(events))
    if before is None and events:
        connection.execute(_change.values(last_seq=stored.last_seq), {"of_run": after.id})
    return stored


def _changing(run: WorkflowRun) -> dict[str, object]:
    return {
        "status": run.status.value,
        "output": run.output,
        "error": _error_json(run.error),
        "failed_node": run.failed_node,
        "cancel_requested_by": run.cancel_requested_by,
        "attempt": run.attempt,
        "epoch": run.epoch,
        "last_seq": run.last_seq,
        "wake_at": run.wake_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


def _node_json(node: NodeRun) -> JsonObject:
    return {
        "node_id": node.node_id,
        "status": node.status.value,
        "attempt": node.attempt,
        "output": node.output,
        "handle": node.handle,
        "error": _error_json(node.error),
        "run_id": node.run_id,
        "asked": node.asked,
        "run_seq": node.run_seq,
        "due_at": _stamp(node.due_at),
        "started_at": _stamp(node.started_at),
        "finished_at": _stamp(node.finished_at),
    }


def _node_of(state: Mapping[str, Any]) -> NodeRun:
    run_id = state["run_id"]
    return NodeRun(
        node_id=state["node_id"],
        status=NodeStatus(state["status"]),
        attempt=state["attempt"],
        output=state["output"],
        handle=state["handle"],
        error=_error_of(state["error"]),
        run_id=None if run_id is None else RunId(run_id),
        asked=state["asked"],
        run_seq=state.get("run_seq"),
        due_at=_moment(state["due_at"]),
        started_at=_moment(state["started_at"]),
        finished_at=_moment(state["finished_at"]),
    )


def _stamp(moment: datetime | None) -> int | None:
    return None if moment is None else micros(moment)


def _moment(stamp: int | None) -> datetime | None:
    return None if stamp is None else moment_of(stamp)


def _error_json(error: NodeError | None) -> JsonValue:
    return None if error is None else {"code": error.code, "detail": error.detail, "retryable": error.retryable}


def _error_of(stored: JsonValue) -> NodeError | None:
    if stored is None:
        return None
    fields = cast("dict[str, Any]", stored)
    return NodeError(code=fields["code"], detail=fields["detail"], retryable=fields["retryable"])
