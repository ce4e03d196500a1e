"""A run as a task of A2A 1.0, in the JSON of the protocol's definition (ProtoJSON)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum

from domain.a2a.questions import asked_of
from domain.json_value import JsonObject, JsonValue
from domain.runs.run import Run, RunStatus

ANSWER = "answer"
"""The id of a task's artifact."""
CONTEXT = "context"
"""The field of a run's `client_request` with the client's own context id."""


class TaskState(StrEnum):
    """States of tasks; the values are the protocol's."""

    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    REJECTED = "TASK_STATE_REJECTED"


_STATES = {
    RunStatus.QUEUED: TaskState.SUBMITTED,
    RunStatus.IN_PROGRESS: TaskState.WORKING,
    RunStatus.REQUIRES_ACTION: TaskState.INPUT_REQUIRED,
    RunStatus.COMPLETED: TaskState.COMPLETED,
    RunStatus.INCOMPLETE: TaskState.COMPLETED,
    RunStatus.FAILED: TaskState.FAILED,
    RunStatus.CANCELLED: TaskState.CANCELED,
    RunStatus.HALTED: TaskState.REJECTED,
}


def state_of(run: Run) -> TaskState:
    """AUTH_REQUIRED: the run waits for visits of pages only, such as a consent."""
    if run.pending and all(use.elicitation is not None and use.elicitation.url for use in run.pending):
        return TaskState.AUTH_REQUIRED
    return _STATES[run.status]


def statuses_of(state: TaskState) -> frozenset[RunStatus]:
    """The statuses of runs in a state."""
    wanted = TaskState.INPUT_REQUIRED if state is TaskState.AUTH_REQUIRED else state
    return frozenset(status for status, found in _STATES.items() if found is wanted)


def context_of(run: Run) -> str:
    """The context of a task: the client's own id, otherwise the thread."""
    return str((run.client_request or {}).get(CONTEXT, run.thread_id))


def task_json(run: Run, *, history: list[JsonValue] | None = None, with_artifacts: bool = True) -> JsonObject:
    """`{id, contextId, status, artifacts?, history?}`."""
    task: JsonObject = {"id": run.id, "contextId": context_of(run), "status": status_json(run)}
    parts = answer_parts(run)
    if with_artifacts and parts:
        task["artifacts"] = [artifact_json(parts)]
    if history:
        task["history"] = history
    return task


def status_json(run: Run) -> JsonObject:
    """`{state, timestamp, message?}`; the message says what the run waits for, or why it has no
    whole answer."""
    status: JsonObject = {"state": state_of(run), "timestamp": moment_json(run.changed_at)}
    parts = list(_told(run))
    if parts:
        status["message"] = {
            "messageId": f"{run.id}-{run.last_seq}",
            "role": "ROLE_AGENT",
            "taskId": run.id,
            "contextId": context_of(run),
            "parts": parts,
        }
    return status


def answer_parts(run: Run) -> list[JsonValue]:
    """The answer of a run as parts; none while there is no answer."""
    if run.output_json is not None:
        return [data_part(run.output_json)]
    return [{"text": run.output}] if run.output else []


def artifact_json(parts: list[JsonValue]) -> JsonObject:
    """The one artifact of a task: its answer."""
    return {"artifactId": ANSWER, "name": ANSWER, "parts": parts}


def data_part(value: JsonValue) -> JsonObject:
    return {"data": value, "mediaType": "application/json"}


def moment_json(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _told(run: Run) -> Iterator[JsonValue]:
    if run.status is RunStatus.REQUIRES_ACTION:
        asked = [asked_of(use) for use in run.pending]
        yield {"text": "\n".join(question.text for question in asked)}
        yield data_part({"pending": [question.as_json() for question in asked]})
    elif run.error is not None:
        yield {"text": run.error.detail}
        yield data_part({"code": run.error.code})
    elif run.incomplete_reason is not None:
        yield {"text": f"The answer is incomplete: {run.incomplete_reason.value}."}
        yield data_part({"reason": run.incomplete_reason.value})
    elif run.status is RunStatus.HALTED:
        yield {"text": "A policy ended the run."}
