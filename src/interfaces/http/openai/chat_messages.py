"""What the messages of a chat completion are for a run: instructions, history, and its input or
results of tools."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from domain.errors import ServiceError, Violation, invalid
from domain.ids import RunId, ToolCallId, derived_id
from domain.json_value import JsonValue, canonical_digest
from domain.threads.message import (
    Content,
    PriorMessage,
    Role,
    TextContent,
    ToolResultContent,
    ToolUse,
    UserContent,
    is_blank,
)
from domain.threads.message_json import content_to_json
from interfaces.http.openai.bodies import arguments_of
from interfaces.http.openai.chat_schemas import ChatMessage
from interfaces.http.openai.content_parts import content_of, text_of
from interfaces.http.openai.ids import linked_run

Indexed = tuple[int, ChatMessage]
Owner = tuple[str | None, ...]
"""An API key, an agent, and the person that the client's program speaks for, if it names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The messages of a request without those of the system, whose text is `instructions`.

    It ends with messages of the user (`input`) or with results of tools (`results`, by the client's
    ids)."""

    instructions: str | None
    messages: tuple[Indexed, ...]

    @property
    def ends_with_results(self) -> bool:
        return self.messages[-1][1].role == "tool"

    @property
    def input(self) -> tuple[UserContent, ...]:
        """The content of the messages that nothing answers yet."""
        return tuple(part for index, message in self._last for part in content_of(message.content, _path(index)))

    @property
    def results(self) -> dict[str, str]:
        """The texts of the last results by the client's ids."""
        return {
            message.tool_call_id or "": text_of(message.content, _path(index))
            for index, message in self._last
            if message.role == "tool"
        }

    @property
    def said(self) -> str:
        """The text of the answer before the input; empty without one."""
        before = self._before
        return text_of(before[-1][1].content, _path(before[-1][0])) if before and _is(before[-1], "assistant") else ""

    def key(self, owner: Owner) -> str:
        """The digest of the whole conversation and its instructions, for one owner."""
        return self._digest(self.messages, owner)

    def earlier_key(self, owner: Owner) -> str | None:
        """The `key` of the request that the answer before the input belongs to: up to its last
        message of the user."""
        earlier = list(self._before)
        while earlier and not _is(earlier[-1], "user"):
            earlier.pop()
        return self._digest(earlier, owner) if earlier and self.said else None

    def since(self, run_id: RunId) -> tuple[UserContent, ...]:
        """What the user has said since the first answer that links to a run."""
        first = next(
            place
            for place, (index, message) in enumerate(self.messages)
            if message.role == "assistant" and linked_run(text_of(message.content, _path(index))) == run_id
        )
        given = [entry for entry in self.messages[first:] if _is(entry, "user")]
        return tuple(part for index, message in given for part in content_of(message.content, _path(index)))

    def history(self) -> tuple[PriorMessage, ...]:
        """The messages before the input, for a new thread. Raises INVALID `body_invalid`."""
        prior: list[PriorMessage] = []
        waiting: dict[str, ToolUse] = {}
        for role, group in groupby(self._before, key=lambda entry: entry[1].role):
            entries = list(group)
            if role == "tool":
                prior.append(_results(entries, waiting))
                continue
            _refuse_waiting(waiting)
            for index, message in entries:
                uses = _uses(index, message) if role == "assistant" else {}
                _refuse_waiting(waiting)
                waiting = dict(uses)
                content = _content(index, message, uses)
                if not is_blank(content):
                    prior.append(PriorMessage(role=Role(role), content=content))
        _refuse_waiting(waiting)
        return tuple(prior)

    def _digest(self, messages: Sequence[Indexed], owner: Owner) -> str:
        said: list[JsonValue] = [_plain(index, message) for index, message in messages]
        return canonical_digest([*owner, self.instructions, said])

    @property
    def _last(self) -> tuple[Indexed, ...]:
        return self.messages[self._start :]

    @property
    def _before(self) -> tuple[Indexed, ...]:
        return self.messages[: self._start]

    @property
    def _start(self) -> int:
        """Where the last group of messages of one role begins."""
        start = len(self.messages) - 1
        while start > 0 and self.messages[start - 1][1].role == self.messages[start][1].role:
            start -= 1
        return start


def conversation_of(messages: Sequence[ChatMessage]) -> Conversation:
    """Raises INVALID `body_invalid`."""
    system: list[str] = []
    said: list[Indexed] = []
    for index, message in enumerate(messages):
        if message.role in ("system", "developer"):
            system.append(text_of(message.content, _path(index)))
        else:
            said.append((index, message))
    if not said or said[-1][1].role == "assistant":
        raise _wrong("messages", "must end with a message of the user or the result of a tool")
    for index, message in said:
        if message.role == "tool" and not message.tool_call_id:
            raise _wrong(f"messages.{index}.tool_call_id", "is required")
    return Conversation(instructions="\n\n".join(filter(None, system)) or None, messages=tuple(said))


def _plain(index: int, message: ChatMessage) -> JsonValue:
    """What a client sends alike each time, whatever its library adds."""
    if message.role == "user":
        parts: list[JsonValue] = [content_to_json(part) for part in content_of(message.content, _path(index))]
        return [message.role, parts]
    calls: list[JsonValue] = [call.id for call in message.tool_calls or ()]
    text = text_of(message.content, _path(index)).strip()
    return [message.role, text, calls, message.tool_call_id]


def _content(index: int, message: ChatMessage, uses: dict[str, ToolUse]) -> tuple[Content, ...]:
    if message.role == "user":
        return content_of(message.content, _path(index))
    text = text_of(message.content, _path(index))
    said: tuple[Content, ...] = (TextContent(text=text),) if text else ()
    return (*said, *uses.values())


def _uses(index: int, message: ChatMessage) -> dict[str, ToolUse]:
    """Calls in the history by the client's ids. Ours are derived: providers take them, and they are
    unique."""
    return {
        call.id: ToolUse(
            id=ToolCallId(derived_id("call", call.id, index)),
            name=call.function.name,
            params=arguments_of(call.function.arguments, f"messages.{index}.tool_calls.{place}.function.arguments"),
        )
        for place, call in enumerate(message.tool_calls or ())
    }


def _results(entries: list[Indexed], waiting: dict[str, ToolUse]) -> PriorMessage:
    results: list[ToolResultContent] = []
    for index, message in entries:
        use = waiting.pop(message.tool_call_id or "", None)
        if use is None:
            raise _wrong(f"messages.{index}.tool_call_id", "answers no call of the message before")
        text = text_of(message.content, _path(index))
        results.append(ToolResultContent(tool_id=use.id, tool_name=use.name, result=text))
    return PriorMessage(role=Role.TOOL, content=tuple(results))


def _refuse_waiting(waiting: dict[str, ToolUse]) -> None:
    if waiting:
        names = ", ".join(waiting)
        raise _wrong("messages", f"calls of tools must be followed by their results; missing: {names}"[:500])


def _is(entry: Indexed, role: str) -> bool:
    return entry[1].role == role


def _path(index: int) -> str:
    return f"messages.{index}.content"


def _wrong(path: str, message: str) -> ServiceError:
    return invalid("body_invalid", "The request body is not valid.", Violation(path=path, message=message))
