"""Workflow runs to rows and back, and storing a changed run with its events."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, select, update

from application.runs.idempotency import idempotency_key_reused
from application.runs.new_run import KEY_LIFETIME, IdempotencyKey
from domain.ids import OrganizationId
from domain.workflows.execution import NodeRun
from domain.workflows.run import (
    WorkflowEvent,
    WorkflowRun,
    events_between,
)
from infrastructure.persistence.columns.fields import json_fields, row_fields
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
# Waits for another transaction with the same key, then stores nothing.
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
_node = json_fields(NodeRun)
_run = row_fields(WorkflowRun, without={"nodes"})
_outline = row_fields(WorkflowRun, without={"input", "output", "nodes"})
_state = row_fields(
    WorkflowRun,
    only=(
        "status",
        "output",
        "error",
        "failed_node",
        "cancel_requested_by",
        "attempt",
        "epoch",
        "last_seq",
        "wake_at",
        "started_at",
        "finished_at",
    ),
)
_event = row_fields(WorkflowEvent)
_insert_event = workflow_event.insert()
_change = update(workflow_run).where(workflow_run.c.id == bindparam("of_run"))


def earlier_run(connection: Connection, run: WorkflowRun, key: IdempotencyKey | None) -> WorkflowRun | None:
    """The run that the key of a new run names within its lifetime. An expired key is removed from
    its run. Raises INVALID `idempotency_key_reused`."""
    if key is None:
        return None
    expired = run.created_at - KEY_LIFETIME
    connection.execute(_take_off_keys, {"of_organization": run.organization_id, "of_key": key.key, "expired": expired})
    return run_of_key(connection, run.organization_id, key, at=run.created_at)


def run_of_key(
    connection: Connection, organization_id: OrganizationId, key: IdempotencyKey, *, at: datetime
) -> WorkflowRun | None:
    """The run that the key names; changes nothing."""
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
    """Store a new run with its first events. Returns it with its `last_seq`, or the run of another
    transaction that used the key first."""
    inserted = connection.execute(
        _insert,
        {
            **_run.write(run),
            "idempotency_key": None if idempotency is None else idempotency.key,
            "body_digest": None if idempotency is None else idempotency.body_digest,
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
    """Store the change, and further `columns` of the run; the caller has locked the row. An ended
    run loses its tools."""
    stored = _write_parts(connection, before, after, at=at)
    if after.status.is_terminal:
        remove_tools(connection, after.id)
    connection.execute(_change.values(**_state.write(stored), **columns), {"of_run": after.id})
    return stored


OUTLINE = tuple(column for column in workflow_run.c if column.name not in ("input", "output"))
"""The columns that `outline_of` reads."""


def run_of(connection: Connection, row: AnyRow) -> WorkflowRun:
    """From a row of `workflow_run`, with its nodes."""
    nodes = (_node.read(state) for state in connection.execute(_nodes_of, {"of_run": row.id}).scalars())
    return replace(
        outline_of(row),
        input=row.input,
        output=row.output,
        nodes={node.node_id: node for node in sorted(nodes, key=lambda node: node.node_id)},
    )


def outline_of(row: AnyRow) -> WorkflowRun:
    """From a row, without input, output and nodes."""
    return _outline.of_row(row, input=None)


def event_of(row: AnyRow) -> WorkflowEvent:
    return _event.of_row(row)


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
                    "state": _node.write(node),
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
