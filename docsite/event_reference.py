"""The reference of events: every kind there is, with its fields. A kind that is missing here fails the build; a test holds the
fields against events that were stored."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from domain.runs.events import RunEventType
from domain.workflows.run import WorkflowEventType

KindT = TypeVar("KindT", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Described:
    """What an event says. `fields` are its own, besides those that every event has."""

    meaning: str
    fields: tuple[str, ...] = ()


_SETTLED = ("tool_call_id", "name", "duration_ms", "server", "decision")
_NODE = ("node_id",)
_ATTEMPT = (*_NODE, "attempt")

RUN_EVENTS: Mapping[RunEventType, Described] = {
    RunEventType.RUN_QUEUED: Described("The run waits for a worker.", ("thread_id", "agent_id")),
    RunEventType.RUN_STARTED: Described(
        "A worker has taken it up; `attempt` counts from 1.", ("attempt", "agent_version")
    ),
    RunEventType.TURN_STARTED: Described("A turn begins; counts from 1.", ("turn",)),
    RunEventType.MESSAGE_DELTA: Described("A piece of the model's text.", ("message_id", "text")),
    RunEventType.REASONING_DELTA: Described(
        "A piece of the reasoning that the model shows before or beside this message's text; of agents with"
        " `reasoning_summary`. It is in no message.",
        ("message_id", "text"),
    ),
    RunEventType.MESSAGE_COMPLETED: Described(
        "A message is in the thread; `usage` is what its model call cost.", ("message", "usage")
    ),
    RunEventType.MESSAGE_DISCARDED: Described(
        "What was streamed of a message is taken back: it will not be completed.", ("message_id", "reason", "usage")
    ),
    RunEventType.MODEL_RETRYING: Described(
        "The model is asked again after `wait_s` seconds, or the next one is.", ("model", "attempt", "wait_s")
    ),
    RunEventType.TOOL_STARTED: Described(
        "A call is recorded and about to be made.", ("tool_call_id", "name", "params")
    ),
    RunEventType.TOOL_PROGRESS: Described(
        "What a server says of a call under way.", ("tool_call_id", "progress", "total", "message")
    ),
    RunEventType.TOOL_EXECUTED: Described("A call has its result; `decision` is what policy said.", _SETTLED),
    RunEventType.TOOL_FAILED: Described(
        "A call failed; `error` is `{code, detail}`, as the model is told.", (*_SETTLED, "error")
    ),
    RunEventType.TOOL_BLOCKED: Described("A call was not made; `reason` is a code.", (*_SETTLED, "reason")),
    RunEventType.RUN_REQUIRES_ACTION: Described(
        "The run waits for a person or client; `pending` lists its calls.", ("pending",)
    ),
    RunEventType.RUN_RESUMED: Described("Nothing is pending any more; the run is queued again."),
    RunEventType.RUN_HALTED: Described(
        "Ended by policy, or by a canary token.", ("reason", "canary_id", "tool_call_id")
    ),
    RunEventType.RUN_COMPLETED: Described("Ended with an answer."),
    RunEventType.RUN_INCOMPLETE: Described(
        "Ended without a whole answer: at the limit that `reason` names, or because the model's last reply was cut"
        " (`max_output_tokens`, `context_exceeded`), filtered (`content_filter`) or refused (`refusal`).",
        ("reason",),
    ),
    RunEventType.RUN_FAILED: Described("Ended by an error; `error` is `{code, detail}`.", ("error",)),
    RunEventType.RUN_CANCELLED: Described("Cancelled by a request, or by the next run of the thread."),
}

WORKFLOW_EVENTS: Mapping[WorkflowEventType, Described] = {
    WorkflowEventType.QUEUED: Described("The workflow run waits for a worker."),
    WorkflowEventType.STARTED: Described("It is worked on."),
    WorkflowEventType.NODE_STARTED: Described("A node is executed.", _ATTEMPT),
    WorkflowEventType.NODE_RETRYING: Described("A node failed and will be tried again.", (*_ATTEMPT, "error")),
    WorkflowEventType.NODE_WAITING: Described(
        "A node waits for a person; `run_id` is the run of an agent node.", (*_NODE, "run_id", "asked")
    ),
    WorkflowEventType.NODE_RESUMED: Described("A node resumed.", _ATTEMPT),
    WorkflowEventType.NODE_READY: Described("A tool-mode node is a tool of this run now.", _NODE),
    WorkflowEventType.NODE_SUCCEEDED: Described(
        "A node has its output; `handle` is the branch that a condition took.", (*_NODE, "handle")
    ),
    WorkflowEventType.NODE_FAILED: Described("A node failed; `error` is `{code, detail}`.", (*_NODE, "error")),
    WorkflowEventType.NODE_SKIPPED: Described("Nothing led to a node.", _NODE),
    WorkflowEventType.NODE_CANCELLED: Described(
        "A node is not needed any more, or the run was cancelled.", (*_NODE, "error")
    ),
    WorkflowEventType.REQUIRES_ACTION: Described("All unfinished nodes wait for people.", ("pending",)),
    WorkflowEventType.RESUMED: Described("The workflow run resumed after an answer."),
    WorkflowEventType.COMPLETED: Described("Ended with its output."),
    WorkflowEventType.FAILED: Described("Ended by a node's error.", ("error", "node_id")),
    WorkflowEventType.CANCELLED: Described("Cancelled by a request."),
}

_INTRODUCTION = """# Events

What happens in a run is stored as events, numbered from 1 without gaps (`seq`). They come as server-sent events from `/v1/runs/stream` and
`/v1/runs/{id}/stream`, and as a list from `/v1/runs/{id}/events`. An interrupted stream resumes after the event that `Last-Event-ID` names.

```text
id: 12
event: run.completed
data: {"seq": 12, "type": "run.completed", "run_id": "run_…", "at": "2026-01-01T12:00:00.000000Z"}

event: end
data: {"status": "completed"}
```

Every event has `seq`, `type`, `run_id` and `at`. `end` closes a stream and is not stored: a run that ended, or waits, or was left, says so in
`status`. A comment every 15 seconds keeps connections open.
"""
_WORKFLOWS = """## Workflow runs

From `/v1/workflow-runs/{id}/stream`, in the same form with `workflow_run_id` in place of `run_id`.
"""


def event_page() -> str:
    """The page, in Markdown."""
    return "\n".join(
        [
            _INTRODUCTION,
            "## Runs\n",
            *_table(RunEventType, RUN_EVENTS),
            _WORKFLOWS,
            *_table(WorkflowEventType, WORKFLOW_EVENTS),
        ]
    )


def _table(kinds: type[KindT], described: Mapping[KindT, Described]) -> Iterator[str]:
    yield "| event | fields | says |\n|---|---|---|"
    for kind in kinds:
        event = described[kind]
        yield f"| `{kind.value}` | {', '.join(f'`{name}`' for name in event.fields)} | {event.meaning} |"
    yield ""
