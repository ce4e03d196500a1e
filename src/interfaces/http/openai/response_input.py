"""Input items of responses as messages, results of tools and decisions about approvals."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from domain.errors import ServiceError, Violation, invalid
from interfaces.http.bodies import decoded_body
from interfaces.http.openai.chat_schemas import ChatMessage
from interfaces.http.openai.content_parts import text_of
from interfaces.http.openai.errors import relocated, unsupported

_SAID_BEFORE = frozenset({"reasoning", "mcp_list_tools", "mcp_call", "mcp_approval_request"})
"""Items of earlier answers that a client sends back: the text that came of them is in its
messages."""
_OTHER_MESSAGES = frozenset({"message", "function_call_output"})
"""Items that end the calls of a turn."""
_OF_OUTPUT = {"content": "output", "tool_call_id": "call_id"}

Item = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """A decision about a call, by the id of its `mcp_approval_request`."""

    request_id: str
    approve: bool
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The items that a message comes from: its own one, as a path, and those of its calls."""

    item: str
    is_output: bool = False
    calls: tuple[str, ...] = ()

    def path_of(self, place: str) -> str:
        """Where the client's input has what the message has at this place: `content.0.text`."""
        first, _, rest = place.partition(".")
        if first == "tool_calls" and self.calls:
            number, _, rest = rest.partition(".")
            call = self.calls[int(number)] if number.isdigit() else self.calls[0]
            rest = rest.removeprefix("function").removeprefix(".")
            return _joined(call, "call_id" if rest == "id" else rest)
        return _joined(self.item, _OF_OUTPUT.get(first, first) if self.is_output else first, rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadInput:
    """The messages, and the decisions among them."""

    messages: tuple[ChatMessage, ...]
    approvals: tuple[ApprovalAnswer, ...]
    sources: tuple[_Source, ...] = ()

    @contextmanager
    def located(self) -> Iterator[None]:
        """Errors inside about messages, by their numbers, name the client's items that they come
        from."""
        try:
            yield
        except ServiceError as error:
            raise relocated(error, self._path_of) from error

    def _path_of(self, path: str) -> str:
        first, _, rest = path.partition(".")
        number, _, place = rest.partition(".")
        if first != "messages":
            return path
        if not (number.isdigit() and self.sources):
            return "input"
        return self.sources[int(number)].path_of(place)


def read_input(given: str | Sequence[Item] | None, *, name: str = "input") -> ReadInput:
    """Raises INVALID `body_invalid`, `unsupported_parameter`, with paths below `name`."""
    if given is None or isinstance(given, str):
        return ReadInput(messages=(ChatMessage(role="user", content=given or ""),), approvals=())
    messages: list[ChatMessage] = []
    sources: list[_Source] = []
    calls: dict[str, object] = {}
    approvals: list[ApprovalAnswer] = []
    for index, item in enumerate(given):
        path, kind = f"{name}.{index}", item.get("type", "message")
        if kind in _OTHER_MESSAGES:
            _end_calls(messages, sources, calls)
        if kind == "message":
            messages.append(_message(item, path))
            sources.append(_Source(item=path))
        elif kind == "function_call":
            calls[path] = _call(item, path)
        elif kind == "function_call_output":
            messages.append(_output(item, path))
            sources.append(_Source(item=path, is_output=True))
        elif kind == "mcp_approval_response":
            approvals.append(_approval(item, path))
        elif kind not in _SAID_BEFORE:
            raise unsupported(f"{path}.type", f"Input items of the type {str(kind)[:100]!r} are not supported.")
    _end_calls(messages, sources, calls)
    return ReadInput(messages=tuple(messages), approvals=tuple(approvals), sources=tuple(sources))


def _message(item: Item, path: str) -> ChatMessage:
    return _decoded({"role": item.get("role"), "content": item.get("content")}, _Source(item=path))


def _decoded(message: dict[str, object], source: _Source) -> ChatMessage:
    try:
        return decoded_body(ChatMessage, message)
    except ServiceError as error:
        raise relocated(error, source.path_of) from error


def _call(item: Item, path: str) -> object:
    function = {"name": _text(item, "name", path), "arguments": _text(item, "arguments", path)}
    return {"id": _text(item, "call_id", path), "function": function}


def _end_calls(messages: list[ChatMessage], sources: list[_Source], calls: dict[str, object]) -> None:
    """Makes calls that follow each other one message, with the text before them. It is built once
    for all of them."""
    if not calls:
        return
    content, item = None, next(iter(calls))
    if messages and messages[-1].role == "assistant":
        content, item = messages.pop().content, sources.pop().item
    source = _Source(item=item, calls=tuple(calls))
    message: dict[str, object] = {"role": "assistant", "content": content, "tool_calls": [*calls.values()]}
    messages.append(_decoded(message, source))
    sources.append(source)
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


def _joined(*steps: str) -> str:
    return ".".join(filter(None, steps))
