"""UI messages as messages of a conversation, and the outcomes of calls in them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from application.runs.resume_run import ClientToolResult
from domain.approvals.decision import CallDecision
from domain.errors import Violation
from domain.ids import ToolCallId
from domain.json_value import JsonValue
from interfaces.http.ai_sdk.schemas import Part, UiMessage
from interfaces.http.bodies import decoded_body
from interfaces.http.chats.client_threads import Settled
from interfaces.http.openai.chat_messages import Conversation, conversation_of
from interfaces.http.openai.chat_schemas import ChatMessage
from interfaces.http.openai.response_items import arguments_text


def conversation(messages: Sequence[UiMessage]) -> Conversation:
    """Calls without an outcome are left out. Raises INVALID `body_invalid`."""
    return conversation_of([said for message in messages for said in _said(message)])


def settled(message: UiMessage) -> Settled:
    """The outcomes in a message of the assistant."""
    results: dict[str, ClientToolResult] = {}
    decisions: dict[str, CallDecision | Violation] = {}
    for index, part in enumerate(message.parts):
        if not _is_call(part):
            continue
        call_id, approval = ToolCallId(str(part.get("toolCallId"))), part.get("approval")
        if part.get("state") == "approval-responded" and isinstance(approval, dict):
            decisions[call_id] = _decision(call_id, approval, f"parts.{index}.approval")
        elif part.get("state") in ("output-available", "output-error"):
            failed = part["state"] == "output-error"
            results[call_id] = ClientToolResult(tool_call_id=call_id, result=_output(part), is_error=failed)
    return Settled(results=results, decisions=decisions)


def _decision(call_id: ToolCallId, approval: Mapping[str, object], path: str) -> CallDecision | Violation:
    approved, reason = approval.get("approved"), approval.get("reason")
    if not isinstance(approved, bool):
        return Violation(path=f"{path}.approved", message="must be true or false")
    if reason is not None and not isinstance(reason, str):
        return Violation(path=f"{path}.reason", message="must be a string")
    return CallDecision(tool_call_id=call_id, approve=approved, reason=reason)


def _said(message: UiMessage) -> Iterator[ChatMessage]:
    if message.role == "assistant":
        for is_step, parts in groupby(message.parts, key=lambda part: part.get("type") == "step-start"):
            if not is_step:
                yield from _step(list(parts))
        return
    content = [part for given in message.parts if (part := _content(given)) is not None]
    yield decoded_body(ChatMessage, {"role": message.role, "content": content})


def _step(parts: list[Part]) -> Iterator[ChatMessage]:
    """The text and the calls of one reply, then the results."""
    text = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    ended = [part for part in parts if _is_call(part) and part.get("state") in ("output-available", "output-error")]
    calls = [
        {"id": part.get("toolCallId"), "function": {"name": _tool(part), "arguments": _text(part.get("input") or {})}}
        for part in ended
    ]
    if text or calls:
        yield decoded_body(ChatMessage, {"role": "assistant", "content": text, "tool_calls": calls})
    for part in ended:
        yield ChatMessage(role="tool", content=_text(_output(part)), tool_call_id=str(part.get("toolCallId")))


def _content(part: Part) -> Part | None:
    """A part of a user's message as OpenAI's protocols have it; None for what is only shown."""
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text")}
    if part.get("type") != "file":
        return None
    url, media_type, name = part.get("url"), str(part.get("mediaType")), part.get("filename")
    if media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    place = "file_data" if str(url).startswith("data:") else "file_url"
    return {"type": "input_file", place: url, **({} if name is None else {"filename": name})}


def _is_call(part: Part) -> bool:
    kind = str(part.get("type"))
    return kind == "dynamic-tool" or kind.startswith("tool-")


def _tool(part: Part) -> str:
    return str(part.get("toolName")) if part["type"] == "dynamic-tool" else str(part["type"]).removeprefix("tool-")


def _output(part: Part) -> JsonValue:
    return part.get("errorText") if part.get("state") == "output-error" else part.get("output")  # type: ignore[return-value]


def _text(value: object) -> str:
    return value if isinstance(value, str) else arguments_text(value)  # type: ignore[arg-type]
