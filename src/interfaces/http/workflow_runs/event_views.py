"""The events of workflow runs as JSON: one shape for each type, and `end`, the last item of a
stream."""

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypedDict

from domain.workflows.run import WorkflowRunStatus
from interfaces.http.view_fields import OneOf, Timestamp
from interfaces.http.workflow_runs.views import NodeErrorView, PendingView

_TYPE = "Type of the event."
_NODE = "Id of the node."
_ATTEMPT = "Number of the attempt, from 1."


class WorkflowEventView(TypedDict):
    """Fields of every event of a workflow run."""

    seq: Annotated[int, "Number of the event in its workflow run: from 1, without gaps."]
    workflow_run_id: Annotated[str, "Id of the workflow run."]
    at: Annotated[Timestamp, "Time of the event."]


class WorkflowRunQueuedEvent(WorkflowEventView):
    """The workflow run waits for a worker."""

    type: Annotated[Literal["workflow.queued"], _TYPE]


class WorkflowRunStartedEvent(WorkflowEventView):
    """A worker has claimed the workflow run."""

    type: Annotated[Literal["workflow.started"], _TYPE]


class NodeStartedEvent(WorkflowEventView):
    """A node is executed."""

    type: Annotated[Literal["node.started"], _TYPE]
    node_id: Annotated[str, _NODE]
    attempt: Annotated[int, _ATTEMPT]


class NodeRetryingEvent(WorkflowEventView):
    """A node failed and will be tried again."""

    type: Annotated[Literal["node.retrying"], _TYPE]
    node_id: Annotated[str, _NODE]
    attempt: Annotated[int, _ATTEMPT]
    error: Annotated[NodeErrorView, "Why it failed."]


class NodeWaitingEvent(WorkflowEventView):
    """A node waits for a person, or for the run of its agent."""

    type: Annotated[Literal["node.waiting"], _TYPE]
    node_id: Annotated[str, _NODE]
    run_id: Annotated[str | None, "The run of an agent node; null if the node waits for a person."]
    asked: Annotated[
        object,
        "For a person: `{prompt, schema}`, with `url` for an account to connect there. For a run: `{calls}`, as in its `pending`.",
    ]


class NodeResumedEvent(WorkflowEventView):
    """A node resumed."""

    type: Annotated[Literal["node.resumed"], _TYPE]
    node_id: Annotated[str, _NODE]
    attempt: Annotated[int, _ATTEMPT]


class NodeReadyEvent(WorkflowEventView):
    """A tool-mode node is a tool of this run now."""

    type: Annotated[Literal["node.ready"], _TYPE]
    node_id: Annotated[str, _NODE]


class NodeSucceededEvent(WorkflowEventView):
    """A node has its output."""

    type: Annotated[Literal["node.succeeded"], _TYPE]
    node_id: Annotated[str, _NODE]
    handle: NotRequired[Annotated[str, "The branch that a condition took."]]


class NodeFailedEvent(WorkflowEventView):
    """A node failed."""

    type: Annotated[Literal["node.failed"], _TYPE]
    node_id: Annotated[str, _NODE]
    error: Annotated[NodeErrorView, "Why it failed."]


class NodeSkippedEvent(WorkflowEventView):
    """Nothing led to a node."""

    type: Annotated[Literal["node.skipped"], _TYPE]
    node_id: Annotated[str, _NODE]


class NodeCancelledEvent(WorkflowEventView):
    """A node is not needed any more, or the run was cancelled."""

    type: Annotated[Literal["node.cancelled"], _TYPE]
    node_id: Annotated[str, _NODE]
    error: NotRequired[Annotated[NodeErrorView, "Why it was cancelled."]]


class WorkflowRunRequiresActionEvent(WorkflowEventView):
    """All unfinished nodes wait for people."""

    type: Annotated[Literal["workflow.requires_action"], _TYPE]
    pending: Annotated[list[PendingView], "Nodes that wait."]


class WorkflowRunResumedEvent(WorkflowEventView):
    """The workflow run resumed after an answer."""

    type: Annotated[Literal["workflow.resumed"], _TYPE]


class WorkflowRunCompletedEvent(WorkflowEventView):
    """Ended with its output."""

    type: Annotated[Literal["workflow.completed"], _TYPE]


class WorkflowRunFailedEvent(WorkflowEventView):
    """Ended by the error of a node."""

    type: Annotated[Literal["workflow.failed"], _TYPE]
    error: Annotated[NodeErrorView | None, "Why it failed."]
    node_id: Annotated[str | None, "Id of the node that failed."]


class WorkflowRunCancelledEvent(WorkflowEventView):
    """Cancelled by a request."""

    type: Annotated[Literal["workflow.cancelled"], _TYPE]


class WorkflowStreamEnd(TypedDict):
    """The last item of a stream: the workflow run has ended or waits. It is not stored and has no
    id."""

    type: Annotated[Literal["end"], _TYPE]
    status: Annotated[WorkflowRunStatus, "Status of the workflow run."]


WorkflowStreamItem = Annotated[
    Mapping[str, object],
    OneOf(
        "WorkflowStreamItem",
        (
            WorkflowRunQueuedEvent,
            WorkflowRunStartedEvent,
            NodeStartedEvent,
            NodeRetryingEvent,
            NodeWaitingEvent,
            NodeResumedEvent,
            NodeReadyEvent,
            NodeSucceededEvent,
            NodeFailedEvent,
            NodeSkippedEvent,
            NodeCancelledEvent,
            WorkflowRunRequiresActionEvent,
            WorkflowRunResumedEvent,
            WorkflowRunCompletedEvent,
            WorkflowRunFailedEvent,
            WorkflowRunCancelledEvent,
            WorkflowStreamEnd,
        ),
    ),
]
"""The data of one server-sent event."""
