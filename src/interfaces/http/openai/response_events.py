"""The events of a response as a pure view of the events of its run: reading again gives the same,
to every number."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import cast

from domain.ids import ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEvent, RunEventType
from domain.runs.limits import IncompleteReason
from domain.runs.output import parsed_output
from domain.runs.run import Run
from interfaces.http.openai.ids import notice_of
from interfaces.http.openai.replies import Spending, text_of
from interfaces.http.openai.response_ids import Place
from interfaces.http.openai.response_items import (
    approval_item,
    approval_request_id,
    arguments_text,
    function_item,
    mcp_call_item,
    message_item,
    phase_of,
    reasoning_item,
    text_part,
)
from interfaces.http.openai.response_views import response_view

_ANSWERED = (RunEventType.TOOL_EXECUTED, RunEventType.TOOL_FAILED, RunEventType.TOOL_BLOCKED)
"""Outputs of functions and denied approvals come before the event by which they resume the run."""
_FILTERED = (IncompleteReason.CONTENT_FILTER, IncompleteReason.REFUSAL)


@dataclass(slots=True)
class Opened:
    """An item that is not complete: its place in the output, and its text so far."""

    index: int
    text: str = ""


@dataclass(slots=True)
class ResponseEvents:
    """Reads the events of a run from the first; `of` gives those of the response for each.

    - A reply that was discarded becomes an incomplete message without text.
    - With an output schema, only the last reply is shown, as its object.
    - A response ends where its run ends or waits.
    """

    run: Run
    place: Place
    address: str | None
    part: int = 0
    status: str = "queued"
    sequence: int = 0
    output: list[JsonObject] = field(default_factory=list)
    spent: Spending = field(default_factory=Spending)
    created_at: int | None = None
    completed_at: int | None = None
    error: JsonObject | None = None
    incomplete: JsonObject | None = None
    inputs: list[JsonObject] = field(default_factory=list)
    _open: dict[str, Opened] = field(default_factory=dict)
    _calls: dict[str, JsonObject] = field(default_factory=dict)
    _of_client: set[str] = field(default_factory=set)
    _asked: set[str] = field(default_factory=set)
    _request: JsonObject = field(default_factory=dict)
    _held: JsonObject | None = None

    @property
    def exists(self) -> bool:
        return self.created_at is not None

    @property
    def has_ended(self) -> bool:
        return self.part > self.place.part

    def of(self, event: RunEvent) -> Iterator[JsonObject]:
        """The events of the response for an event of its run."""
        if self.part != self.place.part:
            self._skip(event)
            return
        if self.created_at is None:
            if event.type in _ANSWERED:
                return
            self.created_at = int(event.at.timestamp())
            if event.type is RunEventType.RUN_RESUMED:
                self._request = cast(JsonObject, event.data.get("client_request", {}))
            yield self._about("response.created")
            yield self._about("response.queued")
            yield from self._listed()
        yield from self._shown(event)

    def view(self) -> JsonObject:
        """The response as it is now."""
        return response_view(
            self.run,
            self.place,
            asked={**(self.run.client_request or {}), **self._request},
            status=self.status,
            output=list(self.output),
            spent=self.spent,
            created_at=self.created_at or 0,
            completed_at=self.completed_at,
            error=self.error,
            incomplete=self.incomplete,
        )

    def _skip(self, event: RunEvent) -> None:
        """An event of another part: calls and their owners are needed later."""
        if event.type is RunEventType.MESSAGE_COMPLETED:
            self._note_calls(cast(JsonObject, event.data["message"]))
        elif event.type is RunEventType.RUN_REQUIRES_ACTION:
            self._note_pending(event)
            self.part += 1

    def _shown(self, event: RunEvent) -> Iterator[JsonObject]:
        match event.type:
            case RunEventType.RUN_STARTED if self.status == "queued":
                self.status = "in_progress"
                yield self._about("response.in_progress")
            case RunEventType.MESSAGE_DELTA if self.run.output_schema is None:
                yield from self._say(str(event.data["message_id"]), str(event.data["text"]))
            case RunEventType.REASONING_DELTA:
                yield from self._reason(str(event.data["message_id"]), str(event.data["text"]))
            case RunEventType.MESSAGE_COMPLETED:
                self.spent.add(event.data.get("usage"))
                yield from self._completed(cast(JsonObject, event.data["message"]))
            case RunEventType.MESSAGE_DISCARDED:
                self.spent.add(event.data.get("usage"))
                yield from self._close(str(event.data["message_id"]), "incomplete")
            case RunEventType.TOOL_STARTED:
                call: JsonObject = {"id": event.data["tool_call_id"], "name": event.data["name"]}
                yield from self._begin_call(call, arguments_text(event.data["params"]))
            case RunEventType.RUN_REQUIRES_ACTION:
                yield from self._waits(event)
            case _:
                yield from self._ended(event)

    # --- messages and reasoning ---

    def _say(self, message_id: str, text: str) -> Iterator[JsonObject]:
        if not text:
            return
        opened = self._open.get(message_id)
        if opened is None:
            opened = yield from self._add(message_id, message_item(message_id, None, "in_progress"))
            yield self._at(opened, message_id, "response.content_part.added", content_index=0, part=text_part(""))
        opened.text += text
        yield self._at(opened, message_id, "response.output_text.delta", content_index=0, delta=text, logprobs=[])

    def _reason(self, message_id: str, text: str) -> Iterator[JsonObject]:
        item = reasoning_item(message_id, None, "in_progress")
        key = str(item["id"])
        opened = self._open.get(key)
        if opened is None:
            opened = yield from self._add(key, item)
            part: JsonObject = {"type": "summary_text", "text": ""}
            yield self._at(opened, key, "response.reasoning_summary_part.added", summary_index=0, part=part)
        opened.text += text
        yield self._at(opened, key, "response.reasoning_summary_text.delta", summary_index=0, delta=text)

    def _completed(self, message: JsonObject) -> Iterator[JsonObject]:
        self._note_calls(message)
        identifier, role = str(message["id"]), message["role"]
        if role == "assistant" and self.run.output_schema is not None:
            self._held = message
            yield from self._close(identifier, "completed")
        elif role == "assistant":
            text, opened = text_of(message), self._open.get(identifier)
            shown = "" if opened is None else opened.text
            if text.startswith(shown):
                yield from self._say(identifier, text[len(shown) :])
            yield from self._close(identifier, "completed", phase_of(message))
        elif role == "tool":
            yield from self._results(message)

    def _close(self, message_id: str, status: str, phase: str | None = None) -> Iterator[JsonObject]:
        """End what is open of a message: its reasoning, then its text."""
        key = str(reasoning_item(message_id, None, status)["id"])
        opened = self._open.pop(key, None)
        if opened is not None:
            part: JsonObject = {"type": "summary_text", "text": opened.text}
            yield self._at(opened, key, "response.reasoning_summary_text.done", summary_index=0, text=opened.text)
            yield self._at(opened, key, "response.reasoning_summary_part.done", summary_index=0, part=part)
            yield self._done(opened, reasoning_item(message_id, opened.text, status))
        opened = self._open.pop(message_id, None)
        if opened is not None:
            text = opened.text if status == "completed" else ""
            yield self._at(opened, message_id, "response.output_text.done", content_index=0, text=text, logprobs=[])
            yield self._at(opened, message_id, "response.content_part.done", content_index=0, part=text_part(text))
            yield self._done(opened, message_item(message_id, text, status, phase=phase))

    # --- calls ---

    def _begin_call(self, call: JsonObject, arguments: str) -> Iterator[JsonObject]:
        item = self._call_item(call, "in_progress", arguments="")
        key = str(item["id"])
        self._calls[str(call["id"])] = {**call, "arguments": arguments}
        if key in self._open:
            return  # a worker was lost, and the call is repeated
        opened = yield from self._add(key, item)
        yield self._at(opened, key, "response.mcp_call.in_progress")
        yield self._at(opened, key, "response.mcp_call_arguments.delta", delta=arguments)
        yield self._at(opened, key, "response.mcp_call_arguments.done", arguments=arguments)

    def _results(self, message: JsonObject) -> Iterator[JsonObject]:
        for result in cast("list[JsonObject]", message["content"]):
            identifier = str(result["tool_id"])
            if identifier in self._of_client:
                self.inputs.append(result)
                continue
            call = self._calls.get(identifier, {"id": identifier, "name": result["tool_name"], "arguments": "{}"})
            yield from self._begin_call({"id": identifier, "name": call["name"]}, str(call["arguments"]))
            status = "failed" if result["is_error"] else "completed"
            item = self._call_item(call, status, arguments=str(call["arguments"]), output=str(result["result"]))
            opened = self._open[str(item["id"])]
            yield self._at(opened, str(item["id"]), f"response.mcp_call.{status}")
            yield self._done(opened, item)

    def _note_calls(self, message: JsonObject) -> None:
        for part in cast("list[JsonObject]", message["content"]):
            if part["type"] == "tool_use":
                arguments = arguments_text(part["params"])
                self._calls[str(part["id"])] = {"id": part["id"], "name": part["name"], "arguments": arguments}

    def _note_pending(self, event: RunEvent) -> None:
        pending = cast("list[JsonObject]", event.data["pending"])
        self._of_client |= {str(use["id"]) for use in pending if _is_of_client(use)}
        self._asked |= {str(use["id"]) for use in pending if "approval_id" in use}

    def _call_item(self, call: JsonObject, status: str, *, arguments: str, output: str | None = None) -> JsonObject:
        asked = str(call["id"]) in self._asked
        approval = approval_request_id(self.run.id, ToolCallId(str(call["id"]))) if asked else None
        return mcp_call_item(call, status, arguments=arguments, output=output, approval=approval)

    def _listed(self) -> Iterator[JsonObject]:
        """The tools of the servers that the request names, as they were then."""
        listed = (self.run.client_request or {}).get("listed")
        if self.place.part or not isinstance(listed, list):
            return
        for item in cast("list[JsonObject]", listed):
            key = str(item["id"])
            opened = yield from self._add(key, {**item, "tools": []})
            yield self._at(opened, key, "response.mcp_list_tools.in_progress")
            yield self._at(opened, key, "response.mcp_list_tools.completed")
            yield self._done(opened, item)

    # --- the end ---

    def _waits(self, event: RunEvent) -> Iterator[JsonObject]:
        self._note_pending(event)
        yield from self._say_held()
        pending = cast("list[JsonObject]", event.data["pending"])
        for use in pending:
            if "approval_id" in use:
                item = approval_item(self.run.id, use)
                opened = yield from self._add(str(item["id"]), item)
                yield self._done(opened, item)
            elif _is_of_client(use):
                yield from self._function(use)
        asked = [str(use["name"]) for use in pending if "elicitation" in use]
        if asked:
            key = f"msg_{event.seq}_{self.place.id.partition('_')[2]}"
            yield from self._say(key, notice_of(self.run.id, asked, self.address))
            yield from self._close(key, "completed")
        yield from self._finish("completed", "response.completed", event)

    def _function(self, use: JsonObject) -> Iterator[JsonObject]:
        arguments = arguments_text(use["params"])
        item = function_item(self.run.id, use, "completed", arguments)
        key = str(item["id"])
        opened = yield from self._add(key, {**item, "arguments": "", "status": "in_progress"})
        yield self._at(opened, key, "response.function_call_arguments.delta", delta=arguments)
        yield self._at(opened, key, "response.function_call_arguments.done", name=str(use["name"]), arguments=arguments)
        yield self._done(opened, item)

    def _say_held(self) -> Iterator[JsonObject]:
        """The last reply of a run with an output schema."""
        if self._held is not None and text_of(self._held):
            text = text_of(self._held)
            found = parsed_output(text).value
            identifier = str(self._held["id"])
            yield from self._say(identifier, text if found is None else arguments_text(found))
            yield from self._close(identifier, "completed", phase_of(self._held))

    def _ended(self, event: RunEvent) -> Iterator[JsonObject]:
        match event.type:
            case RunEventType.RUN_COMPLETED:
                yield from self._say_held()
                yield from self._finish("completed", "response.completed", event)
            case RunEventType.RUN_INCOMPLETE:
                filtered = event.data["reason"] in _FILTERED
                self.incomplete = {"reason": "content_filter" if filtered else "max_output_tokens"}
                yield from self._say_held()
                yield from self._finish("incomplete", "response.incomplete", event)
            case RunEventType.RUN_HALTED:
                self.incomplete = {"reason": "content_filter"}
                yield from self._finish("incomplete", "response.incomplete", event)
            case RunEventType.RUN_FAILED:
                told = cast(JsonObject, event.data["error"])
                self.error = {"code": "server_error", "message": f"{told['code']}: {told['detail']}"}
                yield from self._finish("failed", "response.failed", event)
            case RunEventType.RUN_CANCELLED:
                yield from self._finish("cancelled", "response.failed", event)
            case _:
                pass

    def _finish(self, status: str, kind: str, event: RunEvent) -> Iterator[JsonObject]:
        for key in list(self._open):
            prefix, _, own = key.partition("_")
            if prefix in ("msg", "rs"):
                yield from self._close(f"msg_{own}", "incomplete")
            elif prefix == "mcp":
                call = self._calls[f"call_{own}"]
                item = self._call_item(call, "incomplete", arguments=str(call["arguments"]))
                yield self._done(self._open[key], item)
        self.status, self.completed_at = status, int(event.at.timestamp())
        yield self._about(kind)
        self.part += 1

    # --- events ---

    def _add(self, key: str, item: JsonObject) -> Generator[JsonObject, None, Opened]:
        opened = self._open[key] = Opened(index=len(self.output))
        self.output.append(item)
        yield self._event("response.output_item.added", output_index=opened.index, item=item)
        return opened

    def _done(self, opened: Opened, item: JsonObject) -> JsonObject:
        self._open = {key: other for key, other in self._open.items() if other is not opened}
        self.output[opened.index] = item
        return self._event("response.output_item.done", output_index=opened.index, item=item)

    def _at(self, opened: Opened, item_id: str, kind: str, **fields: JsonValue) -> JsonObject:
        return self._event(kind, item_id=item_id, output_index=opened.index, **fields)

    def _about(self, kind: str) -> JsonObject:
        return self._event(kind, response=self.view())

    def _event(self, kind: str, **fields: JsonValue) -> JsonObject:
        number, self.sequence = self.sequence, self.sequence + 1
        return {"type": kind, "sequence_number": number, **fields}


def _is_of_client(use: JsonObject) -> bool:
    return "approval_id" not in use and "elicitation" not in use
