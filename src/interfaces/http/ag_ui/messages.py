"""Messages of AG-UI as a conversation, outcomes of calls in an input, and stored messages as those
of AG-UI."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from application.runs.resume_run import ClientToolResult
from domain.approvals.decision import CallDecision
from domain.errors import Violation
from domain.ids import ToolCallId, message_id
from domain.json_value import JsonObject, JsonValue
from domain.runs.run import Run
from domain.threads.message import FileContent, ImageContent, Message, Role, TextContent, ToolUse, UserContent
from interfaces.http.ag_ui.schemas import AgUiMessage, Part, ResumeEntry, RunAgentInputBody
from interfaces.http.bodies import decoded_body
from interfaces.http.chats.client_threads import Settled
from interfaces.http.openai.chat_messages import Conversation, conversation_of
from interfaces.http.openai.chat_schemas import ChatMessage
from interfaces.http.openai.response_items import arguments_text

INSTRUCTING = frozenset({"system", "developer"})
"""Roles of messages that are instructions."""
_ROLES = INSTRUCTING | {"user", "assistant", "tool"}
_FILES = frozenset({"image", "audio", "video", "document"})


def conversation(messages: Sequence[AgUiMessage]) -> Conversation:
    """Calls without a result after them are left out. Raises INVALID `body_invalid`."""
    said: list[ChatMessage] = []
    answered: set[str | None] = set()
    for message in reversed([message for message in messages if message.role in _ROLES]):
        said.append(_said(message, answered))
        if message.role == "tool":
            answered.add(message.tool_call_id)
        else:
            answered.clear()
    return conversation_of(said[::-1])


def instructions(body: RunAgentInputBody, said: Conversation, state: JsonValue) -> str | None:
    """What the agent reads after its own instructions: messages of the system, context and
    state."""
    parts = [said.instructions, *(f"{entry.description}: {entry.value}" for entry in body.context)]
    if state is not None:
        parts.append(f"State of the application: {json.dumps(state, ensure_ascii=False)}")
    return "\n\n".join(filter(None, parts)) or None


def settled(body: RunAgentInputBody) -> Settled | None:
    """The answers to interrupts, and the results of the client's tools at the end; None without
    any."""
    results: dict[str, ClientToolResult] = {}
    decisions: dict[str, CallDecision | Violation] = {}
    for message in takewhile(lambda message: message.role == "tool", reversed(body.messages)):
        call_id = ToolCallId(message.tool_call_id or "")
        text = message.error or _text(message.content)
        results[call_id] = ClientToolResult(tool_call_id=call_id, result=text, is_error=message.error is not None)
    for index, entry in enumerate(body.resume or ()):
        call, _, asked = entry.interrupt_id.partition(":")
        decisions[entry.interrupt_id] = _decision(ToolCallId(call), entry, f"resume.{index}.payload")
        if asked:  # otherwise it would name the result of a call of the client
            results[entry.interrupt_id] = ClientToolResult(tool_call_id=ToolCallId(call), result=_answer(entry))
    return Settled(results=results, decisions=decisions) if results or decisions else None


def message_views(messages: Iterable[Message]) -> list[JsonValue]:
    """Stored messages; each result of a tool is a message."""
    return [view for message in messages for view in _views(message)]


def input_messages(run: Run) -> tuple[Message, ...]:
    """The input as the thread has it once the run is claimed; a retry has none."""
    if run.retry_of is not None:
        return ()
    said = Message(
        id=message_id(run.id, 0, "user"),
        thread_id=run.thread_id,
        run_id=run.id,
        role=Role.USER,
        content=run.input,
        created_at=run.created_at,
    )
    return (said,)


def instructing(messages: Iterable[AgUiMessage]) -> tuple[JsonObject, ...]:
    """The client's messages of the system, which no thread stores."""
    given = [message for message in messages if message.role in INSTRUCTING]
    return tuple({"id": said.id, "role": said.role, "content": _text(said.content)} for said in given)


def result_id(call_id: str) -> str:
    """The id of the message with the result of a call."""
    return f"{call_id}_result"


def _decision(call_id: ToolCallId, entry: ResumeEntry, path: str) -> CallDecision | Violation:
    """A cancelled interrupt denies. A violation matters only if the call requires approval: a form
    has other fields."""
    if entry.status == "cancelled":
        return CallDecision(tool_call_id=call_id, approve=False)
    payload = entry.payload if isinstance(entry.payload, Mapping) else {}
    approved, arguments, reason = (payload.get(name) for name in ("approved", "arguments", "reason"))
    if not isinstance(approved, bool):
        return Violation(path=f"{path}.approved", message="must be true or false")
    if arguments is not None and not isinstance(arguments, dict):
        return Violation(path=f"{path}.arguments", message="must be a JSON object")
    if reason is not None and not isinstance(reason, str):
        return Violation(path=f"{path}.reason", message="must be a string")
    return CallDecision(tool_call_id=call_id, approve=approved, arguments=arguments, reason=reason)


def _answer(entry: ResumeEntry) -> JsonValue:
    """An answer to the question of a server: the payload is what its form asks for."""
    if entry.status == "cancelled":
        return {"action": "cancel"}
    content: JsonObject = {} if entry.payload is None else {"content": entry.payload}  # type: ignore[dict-item]
    return {"action": "accept", **content}


def _said(message: AgUiMessage, answered: Collection[str | None]) -> ChatMessage:
    content = message.content
    if message.role == "user" and isinstance(content, list):
        content = [_content(part) for part in content]
    calls = [call.model_dump() for call in message.tool_calls or () if call.id in answered]
    told = {"role": message.role, "content": content, "tool_call_id": message.tool_call_id}
    return decoded_body(ChatMessage, {**told, **({"tool_calls": calls} if calls else {})})


def _content(part: Part) -> Part:
    """A part of a user's message as OpenAI's protocols have it."""
    source, kind = part.get("source"), part.get("type")
    if kind not in _FILES or not isinstance(source, Mapping):
        return part
    value, media_type = source.get("value"), source.get("mimeType")
    url = f"data:{media_type};base64,{value}" if source.get("type") == "data" else value
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "input_file", "file_data" if source.get("type") == "data" else "file_url": url}


def _views(message: Message) -> Iterator[JsonObject]:
    if message.role is Role.TOOL:
        for result in message.tool_results:
            call: JsonObject = {"id": result_id(result.tool_id), "role": "tool", "toolCallId": result.tool_id}
            yield {**call, "content": result.result, **({"error": result.result} if result.is_error else {})}
    elif message.role is Role.ASSISTANT:
        calls: list[JsonValue] = [_call(use) for use in message.tool_uses]
        told: JsonObject = {"id": message.id, "role": "assistant", "content": message.text}
        yield {**told, **({"toolCalls": calls} if calls else {})}
    else:
        parts: list[JsonValue] = [_part(part) for part in message.content if isinstance(part, UserContent)]
        yield {"id": message.id, "role": message.role.value, "content": parts if message.attachments else message.text}


def _call(use: ToolUse) -> JsonObject:
    function: JsonObject = {"name": use.name, "arguments": arguments_text(use.params)}
    return {"id": use.id, "type": "function", "function": function}


def _part(part: UserContent) -> JsonObject:
    if isinstance(part, TextContent):
        return {"type": "text", "text": part.text}
    kind = "image" if isinstance(part, ImageContent) else _kind(part)
    source: JsonObject = {"type": "url", "value": part.url} if part.url else {"type": "data", "value": part.data}
    return {"type": kind, "source": {**source, "mimeType": part.media_type}}


def _kind(part: FileContent) -> str:
    kind = part.media_type.partition("/")[0]
    return kind if kind in _FILES else "document"


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content if isinstance(content, str) else ""
