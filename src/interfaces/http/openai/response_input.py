"""Input items of responses as messages, results of tools and decisions about approvals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.errors import ServiceError, Violation, invalid
from interfaces.http.bodies import decoded_body
from interfaces.http.openai.chat_schemas import ChatMessage
from interfaces.http.openai.content_parts import text_of
from interfaces.http.openai.errors import unsupported

_SAID_BEFORE = frozenset({"reasoning", "mcp_list_tools", "mcp_call", "mcp_approval_request"})
"""Items of earlier answers that a client sends back: the text that came of them is in its messages."""
_OTHER_MESSAGES = frozenset({"message", "function_call_output"})
"""Items that end the calls of a turn."""

Item = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """A decision about a call, by the id of its `mcp_approval_request`."""

    request_id: str
    approve: bool
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadInput:
    """The messages, and the decisions among them."""

    messages: tuple[ChatMessage, ...]
    approvals: tuple[ApprovalAnswer, ...]


def read_input(given: str | Sequence[Item] | None) -> ReadInput:
    """Raises INVALID `body_invalid`, `unsupported_parameter`, with paths below `input`."""
    if given is None or isinstance(given, str):
        return ReadInput(messages=(ChatMessage(role="user", content=given or ""),), approvals=())
    messages: list[ChatMessage] = []
    calls: list[object] = []
    approvals: list[ApprovalAnswer] = []
    for index, item in enumerate(given):
        path, kind = f"input.{index}", item.get("type", "message")
        if kind in _OTHER_MESSAGES:
            _end_calls(messages, calls)
        if kind == "message":
            messages.append(_message(item))
        elif kind == "function_call":
            calls.append(_call(item, path))
        elif kind == "function_call_output":
            messages.append(_output(item, path))
        elif kind == "mcp_approval_response":
            approvals.append(_approval(item, path))
        elif kind not in _SAID_BEFORE:
            raise unsupported(f"{path}.type", f"Input items of the type {str(kind)[:100]!r} are not supported.")
    _end_calls(messages, calls)
    return ReadInput(messages=tuple(messages), approvals=tuple(approvals))


def _message(item: Item) -> ChatMessage:
    return decoded_body(ChatMessage, {"role": item.get("role"), "content": item.get("content")})


def _call(item: Item, path: str) -> object:
    function = {"name": _text(item, "name", path), "arguments": _text(item, "arguments", path)}
    return {"id": _text(item, "call_id", path), "type": "function", "function": function}


def _end_calls(messages: list[ChatMessage], calls: list[object]) -> None:
    """Makes calls that follow each other one message, with the text before them. It is built once for all of them."""
    if not calls:
        return
    before = messages.pop() if messages and messages[-1].role == "assistant" else None
    content = None if before is None else before.content
    messages.append(decoded_body(ChatMessage, {"role": "assistant", "content": content, "tool_calls": calls}))
    calls.clear()


def _output(item: Item, path: str) -> ChatMessage:
    output = item.get("output")
    text = text_of(output, f"{path}.output") if isinstance(output, list) else _text(item, "output", path)
    return ChatMessage(role="tool", content=text, tool_call_id=_text(item, "call_id", path))


def _approval(item: Item, path: str) -> ApprovalAnswer:
    approve, reason = item.get("approve"), item.get("reason")
    if not isinstance(approve, bool):
        raise _wrong(f"{path}.approve", "must be a boolean")
    if reason is not None and not isinstance(reason, str):
        raise _wrong(f"{path}.reason", "must be a string")
    return ApprovalAnswer(
        request_id=_text(item, "approval_request_id", path),
        approve=approve,
        reason=reason,
    )


def _text(item: Item, name: str, path: str) -> str:
    found = item.get(name)
    if not isinstance(found, str):
        raise _wrong(f"{path}.{name}", "must be a string")
    return found


def _wrong(path: str, message: str) -> ServiceError:
    return invalid("body_invalid", "The request body is not valid.", Violation(path=path, message=message))
