"""Updates of a task, as a view of what is shown of its run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never, cast

from domain.a2a.tasks import (
    TaskState,
    answer_parts,
    artifact_json,
    context_of,
    data_part,
    moment_json,
    status_json,
    task_json,
)
from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEvent, RunEventType
from domain.runs.output import parsed_output
from domain.runs.run import Run
from interfaces.http.chats.shown import (
    ApprovalAsked,
    ApprovalGiven,
    CallBegan,
    CallEnded,
    Progressed,
    QuestionAsked,
    ReplyBegan,
    ReplyDropped,
    ReplyEnded,
    RunShown,
    Said,
    Shown,
    Thought,
)

_BEGINS = frozenset({RunEventType.RUN_STARTED, RunEventType.RUN_RESUMED})


@dataclass(slots=True)
class TaskUpdates:
    """Writes the updates of one run.

    - The answer is one artifact. A further reply of the model replaces it, and so does one after a
      discarded reply.
    - Files that tools return are artifacts beside it; `has_files` says that there are some.
    - Calls of tools are updates of the status, in their `metadata`.
    """

    run: Run
    shown: RunShown = field(init=False)
    has_files: bool = False
    _said: list[str] = field(default_factory=list)
    _is_new: bool = True
    _names: dict[str, str] = field(default_factory=dict)
    _files: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.shown = RunShown(run=self.run)

    def read(self, events: Iterable[RunEvent]) -> None:
        """Read what the first task of the stream has already."""
        for _ in self.of(events):
            pass

    def of(self, events: Iterable[RunEvent]) -> Iterator[JsonObject]:
        """The updates of events that follow those before."""
        for event in events:
            if event.type in _BEGINS:
                yield self.working(event.at)
            self.has_files = self.has_files or _brings_files(event)
            for item in self.shown.of(event):
                yield from self._of(item, event.at)

    def task(self, run: Run) -> JsonObject:
        """The task that begins a stream: with what was said before."""
        task = task_json(run)
        if self._said and "artifacts" not in task:
            task["artifacts"] = [artifact_json(self._parts("".join(self._said)))]
        return {"task": task}

    def working(self, at: datetime, **metadata: JsonValue) -> JsonObject:
        status: JsonObject = {"state": TaskState.WORKING, "timestamp": moment_json(at)}
        return self.status(status, metadata)

    def status(self, status: JsonObject, metadata: JsonObject | None = None) -> JsonObject:
        update = self._about({"status": status})
        if metadata:
            update["metadata"] = metadata
        return {"statusUpdate": update}

    def _of(self, shown: Shown, at: datetime) -> Iterator[JsonObject]:
        match shown:
            case ReplyBegan() | ReplyDropped():
                self._is_new = True
            case Said():
                yield self._answer(shown.text)
            case ReplyEnded():
                if not self._is_new:
                    self._is_new = True
                    yield self._artifact([{"text": ""}], append=True, lastChunk=True)
            case CallBegan():
                self._names[shown.call_id] = shown.name
                yield self._called(at, shown.call_id)
            case Progressed():
                yield self._called(at, shown.call_id, **shown.data)
            case CallEnded():
                yield self._called(at, shown.call_id, failed=shown.failed)
            case Thought() | ApprovalAsked() | QuestionAsked() | ApprovalGiven():
                pass  # the end says what waits
            case _:
                assert_never(shown)

    @property
    def waits(self) -> bool:
        """Whether the run waited at the last event."""
        return self.shown.rest is not None and self.shown.rest.type is RunEventType.RUN_REQUIRES_ACTION

    def files(self, artifacts: Iterable[JsonObject]) -> Iterator[JsonObject]:
        """The updates of those that the client does not have."""
        for artifact in artifacts:
            if str(artifact["artifactId"]) not in self._files:
                self._files.add(str(artifact["artifactId"]))
                yield {"artifactUpdate": self._about({"artifact": artifact, "lastChunk": True})}

    def rest(self, run: Run) -> Iterator[JsonObject]:
        """What ends a stream, where the run waits or has ended: its answer if another was shown,
        and its status."""
        parts = answer_parts(run)
        if parts and parts != self._parts("".join(self._said)):
            yield self._artifact(parts, lastChunk=True)
        yield self.status(status_json(run))

    def _answer(self, text: str) -> JsonObject:
        if self.run.output_schema is not None:
            self._said = [text]
            return self._artifact(self._parts(text), lastChunk=True)
        if self._is_new:
            self._said, self._is_new = [text], False
            return self._artifact([{"text": text}])
        self._said.append(text)
        return self._artifact([{"text": text}], append=True)

    def _called(self, at: datetime, call_id: str, **more: JsonValue) -> JsonObject:
        return self.working(at, toolCall={"id": call_id, "name": self._names[call_id], **more})

    def _parts(self, text: str) -> list[JsonValue]:
        found = None if self.run.output_schema is None else parsed_output(text).value
        return [{"text": text}] if found is None else [data_part(found)]

    def _artifact(self, parts: list[JsonValue], **chunk: JsonValue) -> JsonObject:
        return {"artifactUpdate": self._about({"artifact": artifact_json(parts), **chunk})}

    def _about(self, update: JsonObject) -> JsonObject:
        return {"taskId": self.run.id, "contextId": context_of(self.run), **update}


def _brings_files(event: RunEvent) -> bool:
    if event.type is not RunEventType.MESSAGE_COMPLETED:
        return False
    content = cast("list[JsonObject]", cast(JsonObject, event.data["message"])["content"])
    return any("images" in part or "files" in part for part in content)
