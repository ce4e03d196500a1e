"""Chunks of a UI message stream: https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never, cast

from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from domain.runs.limits import IncompleteReason
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
from interfaces.http.openai.ids import notice_of

_FILTERED = (IncompleteReason.CONTENT_FILTER, IncompleteReason.REFUSAL)


@dataclass(slots=True)
class Chunks:
    """Writes what is shown of one run. Each reply of the model with its calls is a step; a message
    has all steps of a run.

    Calls of the service are `dynamic` and executed by the provider; those of the front end are its
    own tools."""

    run: Run
    address: str | None
    _in_step: bool = False
    _text: str | None = None
    _reasoning: str | None = None

    def start(self) -> JsonObject:
        about: JsonObject = {"runId": self.run.id, "threadId": self.run.thread_id}
        return {"type": "start", "messageId": self.run.id, "messageMetadata": about}

    def of(self, shown: Shown) -> Iterator[JsonObject]:
        match shown:
            case ReplyBegan():
                if self._in_step:
                    yield {"type": "finish-step"}
                self._in_step = True
                yield {"type": "start-step"}
            case Said():
                yield from self._said(shown)
            case Thought():
                if self._reasoning is None:
                    self._reasoning = shown.message_id
                    yield {"type": "reasoning-start", "id": self._reasoning}
                yield {"type": "reasoning-delta", "id": self._reasoning, "delta": shown.text}
            case ReplyEnded():
                yield from self._close()
            case ReplyDropped():
                self._text = self._reasoning = None
                yield {"type": "reset-step"}
            case _:
                yield from self._of_call(shown)

    def end(self, shown: RunShown) -> Iterator[JsonObject]:
        """What ends the stream, where the run waits or has ended."""
        event = shown.rest
        if event is None:
            return
        yield from self._close()
        if event.type is RunEventType.RUN_FAILED:
            error = cast(JsonObject, event.data["error"])
            yield {"type": "error", "errorText": f"{error['code']}: {error['detail']}"}
            return
        if event.type is RunEventType.RUN_CANCELLED:
            yield {"type": "abort", "reason": "The run was cancelled."}
            return
        if self._in_step:
            yield {"type": "finish-step"}
        spent = shown.spent
        usage: JsonObject = {"inputTokens": spent.input_tokens, "outputTokens": spent.output_tokens}
        yield {"type": "finish", "finishReason": _reason(event), "messageMetadata": {"usage": usage}}

    def _of_call(
        self, shown: CallBegan | ApprovalAsked | ApprovalGiven | QuestionAsked | Progressed | CallEnded
    ) -> Iterator[JsonObject]:
        about: JsonObject = {"toolCallId": shown.call_id}
        match shown:
            case CallBegan():
                whose: JsonObject = {"providerExecuted": not shown.by_client, "dynamic": not shown.by_client}
                call: JsonObject = {"toolName": shown.name, "input": shown.params}
                yield {"type": "tool-input-available", **about, **call, **whose}
            case ApprovalAsked():
                yield {"type": "tool-approval-request", "approvalId": shown.call_id, **about}
            case ApprovalGiven():
                yield {"type": "tool-approval-response", "approvalId": shown.call_id, "approved": shown.approved}
            case QuestionAsked():
                text = notice_of(self.run.id, [str(shown.use["name"])], self.address)
                yield from self._said(Said(message_id=f"{shown.call_id}_question", text=text))
                yield from self._close()
            case Progressed():
                yield {"type": "data-progress", "id": shown.call_id, "data": shown.data, "transient": True}
            case CallEnded(denied=True):
                yield {"type": "tool-output-denied", **about}
            case CallEnded(failed=True):
                yield {"type": "tool-output-error", **about, "errorText": shown.text}
            case CallEnded():
                yield {"type": "tool-output-available", **about, "output": shown.text}
            case _:
                assert_never(shown)

    def _said(self, said: Said) -> Iterator[JsonObject]:
        if self._text is None:
            self._text = said.message_id
            yield {"type": "text-start", "id": self._text}
        yield {"type": "text-delta", "id": self._text, "delta": said.text}

    def _close(self) -> Iterator[JsonObject]:
        if self._reasoning is not None:
            yield {"type": "reasoning-end", "id": self._reasoning}
        if self._text is not None:
            yield {"type": "text-end", "id": self._text}
        self._text = self._reasoning = None


def _reason(event: RunEvent) -> str:
    match event.type:
        case RunEventType.RUN_REQUIRES_ACTION:
            return "tool-calls"
        case RunEventType.RUN_HALTED:
            return "content-filter"
        case RunEventType.RUN_INCOMPLETE:
            return "content-filter" if event.data["reason"] in _FILTERED else "length"
        case _:
            return "stop"
