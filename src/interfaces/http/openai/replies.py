"""What a run said to its client, as a pure view of its events: pieces of text and of reasoning, and
what they cost."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run

_BETWEEN = "\n\n"
_SPENDING = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


class PieceKind(StrEnum):
    TEXT = "text"
    REASONING = "reasoning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    kind: PieceKind
    text: str


@dataclass(slots=True)
class Spending:
    """Tokens of model calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def add(self, usage: object) -> None:
        """Add the `usage` of an event."""
        if isinstance(usage, dict):
            for name in _SPENDING:
                setattr(self, name, getattr(self, name) + int(usage[name]))


@dataclass(slots=True)
class Reply:
    """The texts of all turns as one, with an empty line between them. A client of this protocol
    cannot take back what it has shown: after a reply that was discarded, the next one begins after
    an empty line. `ended` is the run once it has ended or waits."""

    spent: Spending = field(default_factory=Spending)
    ended: Run | None = None
    _message_id: str | None = None
    _shown: str = ""
    _has_text: bool = False

    def pieces(self, event: RunEvent) -> Iterator[Piece]:
        """What the event adds."""
        match event.type:
            case RunEventType.MESSAGE_DELTA:
                yield from self._text(str(event.data["message_id"]), str(event.data["text"]))
            case RunEventType.REASONING_DELTA:
                yield Piece(kind=PieceKind.REASONING, text=str(event.data["text"]))
            case RunEventType.MESSAGE_COMPLETED:
                self.spent.add(event.data.get("usage"))
                yield from self._rest(cast(JsonObject, event.data["message"]))
            case RunEventType.MESSAGE_DISCARDED:
                self.spent.add(event.data.get("usage"))
            case _:
                pass

    def _rest(self, message: JsonObject) -> Iterator[Piece]:
        """The text of a complete message that was not streamed."""
        if message["role"] != "assistant":
            return
        identifier, text = str(message["id"]), text_of(message)
        shown = self._shown if identifier == self._message_id else ""
        if text.startswith(shown):
            yield from self._text(identifier, text[len(shown) :])

    def _text(self, message_id: str, text: str) -> Iterator[Piece]:
        if not text:
            return
        if message_id != self._message_id:
            self._message_id, self._shown = message_id, ""
            if self._has_text:
                yield Piece(kind=PieceKind.TEXT, text=_BETWEEN)
        self._shown += text
        self._has_text = True
        yield Piece(kind=PieceKind.TEXT, text=text)


def text_of(message: JsonObject) -> str:
    """The text of a message of an event."""
    parts = cast("list[JsonObject]", message["content"])
    return "".join([str(part["text"]) for part in parts if part["type"] == "text"])
