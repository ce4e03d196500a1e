"""Workflow runs, their nodes and events as JSON."""

from datetime import datetime
from typing import TypedDict

import msgspec

from domain.threads.message_json import timestamp
from domain.workflows.execution import NodeError, NodeRun
from domain.workflows.run import WorkflowEvent, WorkflowRun, WorkflowRunStatus


class NodeErrorView(TypedDict):
    """Why a node, or a run, failed."""

    code: str
    detail: str


class NodeRunView(TypedDict):
    """The state of a started node. `asked` is the question to a person; `run_id` is the agent's
    run."""

    node_id: str
    status: str
    attempt: int
    output: object
    handle: str | None
    error: NodeErrorView | None
    run_id: str | None
    asked: object
    started_at: str | None
    finished_at: str | None


class PendingView(TypedDict):
    """A node that waits: for a person, with `{prompt, schema}`, or for its agent's run `run_id`,
    with `{calls}` as in that run's `pending`."""

    node_id: str
    run_id: str | None
    asked: object


class WorkflowRunOutlineView(TypedDict):
    """A workflow run in a list."""

    id: str
    workflow_id: str
    workflow_version: int
    status: str
    error: NodeErrorView | None
    failed_node: str | None
    attempt: int
    created_at: str
    started_at: str | None
    finished_at: str | None


class WorkflowRunView(WorkflowRunOutlineView):
    """A workflow run. `output` is that of the graph's only sink; with several sinks, an object
    by node id."""

    input: object
    output: object
    pending: list[PendingView]
    nodes: list[NodeRunView]


class WorkflowRunPage(TypedDict):
    """A page of workflow runs; `next_cursor` is null on the last one."""

    data: list[WorkflowRunOutlineView]
    next_cursor: str | None


def workflow_run_view(run: WorkflowRun) -> WorkflowRunView:
    return {
        **workflow_run_outline(run),
        "input": run.input,
        "output": run.output,
        "pending": [
            {"node_id": node.node_id, "run_id": node.run_id, "asked": node.asked} for node in run.waiting_nodes
        ],
        "nodes": [_node_view(node) for node in run.nodes.values()],
    }


def workflow_run_outline(run: WorkflowRun) -> WorkflowRunOutlineView:
    return {
        "id": run.id,
        "workflow_id": run.workflow_id,
        "workflow_version": run.workflow_version,
        "status": run.status.value,
        "error": _error_view(run.error),
        "failed_node": run.failed_node,
        "attempt": run.attempt,
        "created_at": timestamp(run.created_at),
        "started_at": _time(run.started_at),
        "finished_at": _time(run.finished_at),
    }


def workflow_event_frame(run_id: str, event: WorkflowEvent) -> bytes:
    """An event with its seq as id; the data repeats seq and type, and adds run, time and the
    type's fields."""
    data = {
        "seq": event.seq,
        "type": event.type.value,
        "workflow_run_id": run_id,
        "at": timestamp(event.at),
        **event.data,
    }
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.type.value.encode(), msgspec.json.encode(data))


def workflow_end_frame(status: WorkflowRunStatus) -> bytes:
    return b"event: end\ndata: %s\n\n" % msgspec.json.encode({"status": status.value})


def _node_view(node: NodeRun) -> NodeRunView:
    return {
        "node_id": node.node_id,
        "status": node.status.value,
        "attempt": node.attempt,
        "output": node.output,
        "handle": node.handle,
        "error": _error_view(node.error),
        "run_id": node.run_id,
        "asked": node.asked,
        "started_at": _time(node.started_at),
        "finished_at": _time(node.finished_at),
    }


def _error_view(error: NodeError | None) -> NodeErrorView | None:
    return None if error is None else {"code": error.code, "detail": error.detail}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)
