"""Workflow runs, their nodes and events as JSON."""

from datetime import datetime
from typing import Annotated, TypedDict

import msgspec

from domain.threads.message_json import timestamp
from domain.workflows.execution import NodeError, NodeRun, NodeStatus
from domain.workflows.run import WorkflowEvent, WorkflowRun, WorkflowRunStatus
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, Timestamp


class NodeErrorView(TypedDict):
    """Why a node, or a run, failed."""

    code: Annotated[str, "Code of the error."]
    detail: Annotated[str, "The error as a sentence."]


class NodeRunView(TypedDict):
    """The state of a started node. `asked` is the question to a person; `run_id` is the agent's
    run."""

    node_id: Annotated[str, "Id of the node."]
    status: Annotated[NodeStatus, "Status of the node."]
    attempt: Annotated[int, "Number of the attempt, from 1."]
    output: Annotated[object, "Output of the node; null until it succeeded."]
    handle: Annotated[str | None, "The branch that a condition took; null for other nodes."]
    error: Annotated[NodeErrorView | None, "Why it failed, or is tried again; null otherwise."]
    run_id: Annotated[str | None, "The run of an agent node; null for other nodes."]
    asked: Annotated[
        object,
        "What it waits for: `{prompt, schema}` of a person, with `url` for an account to connect there, `{calls}` of its "
        "agent's run; null if it does not wait.",
    ]
    started_at: Annotated[Timestamp | None, "Time of its start; null until then."]
    finished_at: Annotated[Timestamp | None, "Time of its end; null until then."]


class PendingView(TypedDict):
    """A node that waits: for a person, with `{prompt, schema}`, or for its agent's run `run_id`,
    with `{calls}` as in that run's `pending`."""

    node_id: Annotated[str, "Id of the node."]
    run_id: Annotated[str | None, "The run of an agent node; null if the node waits for a person."]
    asked: Annotated[
        object,
        "For a person: `{prompt, schema}`, with `url` for an account to connect there. For a run: `{calls}`, as in its `pending`.",
    ]


class WorkflowRunOutlineView(TypedDict):
    """A workflow run in a list."""

    id: Annotated[str, "Id of the workflow run."]
    workflow_id: Annotated[str, "Id of the workflow."]
    workflow_version: Annotated[int, "Version of the workflow."]
    status: Annotated[WorkflowRunStatus, "Status of the workflow run."]
    error: Annotated[NodeErrorView | None, "Why it failed; null if it did not."]
    failed_node: Annotated[str | None, "The node that failed; null if none did."]
    attempt: Annotated[int, "Counts the workers that executed it."]
    created_at: CreatedAt
    started_at: Annotated[Timestamp | None, "Time of its start; null until then."]
    finished_at: Annotated[Timestamp | None, "Time of its end; null until then."]


class WorkflowRunView(WorkflowRunOutlineView):
    """A workflow run. `output` is that of the graph's only sink; with several sinks, an object
    by node id."""

    input: Annotated[object, "Input of the workflow run."]
    output: Annotated[object, "Output of the graph's only sink; with several sinks, an object by node id."]
    pending: Annotated[list[PendingView], "Nodes that wait."]
    nodes: Annotated[list[NodeRunView], "Started nodes."]


class WorkflowRunPage(TypedDict):
    """A page of workflow runs; `next_cursor` is null on the last one."""

    data: Items[WorkflowRunOutlineView]
    next_cursor: NextCursor


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
        "status": run.status,
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


def _node_view(node: NodeRun) -> NodeRunView:
    return {
        "node_id": node.node_id,
        "status": node.status,
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
