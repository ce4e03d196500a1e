"""Observations of workflow runs and their nodes. Runs of agents are below their nodes."""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from application.tracing.ports import WorkflowRecord
from domain.json_value import JsonObject
from domain.workflows.execution import NodeRun
from domain.workflows.run import WorkflowRun
from infrastructure.tracing import span_ids
from infrastructure.tracing.observations import WORKFLOW_NAME, Observation, ObservationKind


def workflow_observations(record: WorkflowRecord) -> tuple[Callable[[], Observation], ...]:
    """Functions that create the observations of the run and of each executed node."""
    executed = (node for node in record.run.nodes.values() if node.started_at is not None)
    return (partial(_whole, record), *(partial(_node, record, node) for node in executed))


def _whole(record: WorkflowRecord) -> Observation:
    run = record.run
    failed = run.error
    metadata: JsonObject = {"status": run.status.value, "attempt": run.attempt, "nodes": len(run.nodes)}
    if run.failed_node is not None:
        metadata["failed_node"] = run.failed_node
    return Observation(
        kind=ObservationKind.CHAIN,
        name=WORKFLOW_NAME,
        run_id=run.id,
        trace_id=span_ids.trace_id(run.id),
        span_id=span_ids.workflow_span_id(run.id),
        parent_id=None,
        session_id=run.id,
        started_at=run.started_at or run.created_at,
        finished_at=run.finished_at or run.created_at,
        trace_metadata=_trace_metadata(record),
        trace_name=WORKFLOW_NAME,
        input=run.input,
        output=run.output,
        metadata=metadata,
        error=None if failed is None else failed.code,
    )


def _node(record: WorkflowRecord, node: NodeRun) -> Observation:
    run = record.run
    kind = next((known.kind for known in record.definition.nodes if known.id == node.node_id), "")
    metadata: JsonObject = {
        "node_id": node.node_id,
        "node_kind": kind,
        "status": node.status.value,
        "attempt": node.attempt,
    }
    if node.run_id is not None:
        metadata["run_id"] = node.run_id
    return Observation(
        kind=ObservationKind.SPAN,
        name=f"workflow_node__{node.node_id}",
        run_id=run.id,
        trace_id=span_ids.trace_id(run.id),
        span_id=span_ids.node_span_id(run.id, node.node_id),
        parent_id=span_ids.workflow_span_id(run.id),
        session_id=run.id,
        started_at=node.started_at or run.created_at,
        finished_at=node.finished_at or _end(run),
        trace_metadata=_trace_metadata(record),
        trace_name=WORKFLOW_NAME,
        output=node.output,
        metadata=metadata,
        error=None if node.error is None else node.error.code,
    )


def _end(run: WorkflowRun) -> datetime:
    return run.finished_at or run.created_at


def _trace_metadata(record: WorkflowRecord) -> dict[str, str]:
    run = record.run
    return {
        "workflow_run_id": run.id,
        "organization_id": run.organization_id,
        "workflow_id": run.workflow_id,
        "workflow_version": str(run.workflow_version),
        "workflow": record.definition.name,
    }
