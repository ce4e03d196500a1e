"""Events of AG-UI: https://docs.ag-ui.com/concepts/events"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import assert_never, cast

from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run
from domain.runs.shared_state import SharedState
from interfaces.http.ag_ui.messages import result_id
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
    asked_id,
)
from interfaces.http.openai.response_items import arguments_text

_DECISION: JsonObject = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "arguments": {"type": "object", "description": "Replace those of the call."},
    },
    "required": ["approved"],
}


@dataclass(slots=True)
class AgUiEvents:
    """Writes what is shown of one run, for a client that has named the thread and the run.

    - `state` is that of the front end, as far as it was read.
    - `repeats`: also results that the client gave, for one that reads an answer again.
    - `instructing` are the client's messages of the system. `completed` are the ids of the messages
      that were read.
    - A call that the client knows from an earlier stream begins again before its result, without
      its arguments, which the client would append."""

    run: Run
    thread_id: str
    run_id: str
    repeats: bool = False
    instructing: tuple[JsonObject, ...] = ()
    completed: set[str] = field(default_factory=set)
    state: SharedState = field(init=False)
    _reply: str | None = None
    _text: str | None = None
    _reasoning: str | None = None
    _calls: dict[str, CallBegan] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.state = SharedState.of(self.run)

    def read(self, event: RunEvent) -> Iterator[JsonObject]:
        """Remember the message that the event completes; the change of the state that it makes."""
        patch = self.state.read(event)
        if patch is not None:
            yield {"type": "STATE_DELTA", "delta": cast(JsonValue, patch)}
        if event.type is RunEventType.MESSAGE_COMPLETED:
            self.completed.add(str(cast(JsonObject, event.data["message"])["id"]))

    def skip(self, shown: Shown) -> None:
        """Read what the client has from an earlier stream."""
        list(self.of(shown))
        self._known.update(self._calls)

    def start(self) -> Iterator[JsonObject]:
        about: JsonObject = {"runId": self.run.id, "threadId": self.run.thread_id}
        yield {**self._event("RUN_STARTED"), "protocolVersion": "1.0", "metadata": about}
        if self.run.shares_state:
            yield {"type": "STATE_SNAPSHOT", "snapshot": self.state.value}

    def of(self, shown: Shown) -> Iterator[JsonObject]:
        match shown:
            case ReplyBegan():
                self._reply = shown.message_id
            case Said():
                yield from self._said(shown)
            case Thought():
                yield from self._thought(shown)
            case ReplyEnded() | ReplyDropped():
                yield from self._close()
            case CallBegan():
                yield from self._began(shown)
            case ApprovalAsked() | QuestionAsked() | ApprovalGiven():
                pass  # the end says what waits
            case Progressed():
                about: JsonObject = {"messageId": f"{shown.call_id}_progress", "activityType": "PROGRESS"}
                content: JsonObject = {"toolCallId": shown.call_id, **shown.data}
                yield {"type": "ACTIVITY_SNAPSHOT", **about, "content": content}
            case CallEnded():
                yield from self._ended(shown)
            case _:
                assert_never(shown)

    def end(self, shown: RunShown) -> Iterator[JsonObject]:
        """What ends the stream, where the run waits or has ended."""
        event, spent = shown.rest, shown.spent
        if event is None:
            return
        yield from self._close()
        usage: JsonValue = [{"inputTokens": spent.input_tokens, "outputTokens": spent.output_tokens}]
        if event.type is RunEventType.RUN_FAILED:
            error = cast(JsonObject, event.data["error"])
            yield {"type": "RUN_ERROR", "message": error["detail"], "code": error["code"], "usage": usage}
            return
        about: JsonObject = {"metadata": {"reason": event.data["reason"]}} if "reason" in event.data else {}
        yield {**self._event("RUN_FINISHED"), "outcome": _outcome(event.type, shown.pending), "usage": usage, **about}

    def _began(self, call: CallBegan) -> Iterator[JsonObject]:
        is_known = call.call_id in self._calls
        self._calls[call.call_id] = call
        if not is_known:
            yield from self._call(call, arguments_text(call.params))

    def _call(self, call: CallBegan, arguments: str | None) -> Iterator[JsonObject]:
        about: JsonObject = {"toolCallId": call.call_id}
        whose: JsonObject = {} if self._reply is None else {"parentMessageId": self._reply}
        yield {"type": "TOOL_CALL_START", **about, "toolCallName": call.name, **whose}
        if arguments is not None:
            yield {"type": "TOOL_CALL_ARGS", **about, "delta": arguments}
        yield {"type": "TOOL_CALL_END", **about}

    def _ended(self, ended: CallEnded) -> Iterator[JsonObject]:
        call = self._calls.pop(ended.call_id)
        if call.by_client and not self.repeats:
            return
        if ended.call_id in self._known:
            yield from self._call(call, None)
        about: JsonObject = {"messageId": result_id(ended.call_id), "toolCallId": ended.call_id, "role": "tool"}
        failed: JsonObject = {"metadata": {"failed": True}} if ended.failed else {}
        yield {"type": "TOOL_CALL_RESULT", **about, "content": ended.text, **failed}

    def _said(self, said: Said) -> Iterator[JsonObject]:
        yield from self._close_reasoning()
        about: JsonObject = {"messageId": said.message_id}
        if self._text is None:
            self._text = said.message_id
            yield {"type": "TEXT_MESSAGE_START", **about, "role": "assistant"}
        yield {"type": "TEXT_MESSAGE_CONTENT", **about, "delta": said.text}

    def _thought(self, thought: Thought) -> Iterator[JsonObject]:
        about: JsonObject = {"messageId": f"{thought.message_id}_reasoning"}
        if self._reasoning is None:
            self._reasoning = str(about["messageId"])
            yield {"type": "REASONING_START", **about}
            yield {"type": "REASONING_MESSAGE_START", **about, "role": "reasoning"}
        yield {"type": "REASONING_MESSAGE_CONTENT", **about, "delta": thought.text}

    def _close(self) -> Iterator[JsonObject]:
        yield from self._close_reasoning()
        if self._text is not None:
            yield {"type": "TEXT_MESSAGE_END", "messageId": self._text}
        self._text = None

    def _close_reasoning(self) -> Iterator[JsonObject]:
        if self._reasoning is not None:
            yield {"type": "REASONING_MESSAGE_END", "messageId": self._reasoning}
            yield {"type": "REASONING_END", "messageId": self._reasoning}
        self._reasoning = None

    def _event(self, kind: str) -> JsonObject:
        return {"type": kind, "threadId": self.thread_id, "runId": self.run_id}


def _outcome(ended: RunEventType, pending: Sequence[JsonObject]) -> JsonObject:
    """Calls of the client are named once no interrupt is left: that outcome has no place for
    them."""
    if ended is RunEventType.RUN_CANCELLED:
        return {"type": "cancelled"}
    if ended is not RunEventType.RUN_REQUIRES_ACTION:
        return {"type": "success"}
    asking: list[JsonValue] = [_interrupt(use) for use in pending if "approval_id" in use or "elicitation" in use]
    if asking:
        return {"type": "interrupt", "interrupts": asking}
    return {"type": "success", "pendingToolCallIds": [use["id"] for use in pending]}


def _interrupt(use: JsonObject) -> JsonObject:
    about: JsonObject = {"id": asked_id(use), "toolCallId": use["id"]}
    if "approval_id" in use:
        about["metadata"] = {"approvalId": use["approval_id"]}
        asks: JsonObject = {"reason": "tool_call", "message": use["reason"], "expiresAt": use["expires_at"]}
        return {**about, **asks, "responseSchema": _DECISION}
    question = cast(JsonObject, use["elicitation"])
    form: JsonObject = {"responseSchema": question["schema"]} if question.get("schema") else {}
    link: JsonObject = {"metadata": {"url": question["url"]}} if "url" in question else {}
    return {**about, "reason": "input_required", "message": question["message"], **form, **link}
