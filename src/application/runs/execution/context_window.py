"""Fits a request into the token budget by leaving out the oldest whole turns.

Tokens are estimated from bytes and corrected by providers' reports. A cut goes down to 75 % of
the budget, so cuts are rare and the prompt's prefix stays cached for many turns.
"""

from collections.abc import Sequence

from domain.threads.attachments import FileKind, kind_of_file, size_of
from domain.threads.message import (
    FileContent,
    ImageContent,
    Message,
    Role,
    TextContent,
    ToolResultContent,
    ToolUse,
)

TOKENS_PER_BYTE = 0.25
CUT_TO = 0.75
IMAGE_BYTES = 6_000
"""Size of an image: providers charge by its dimensions, not by its bytes."""
_OVERHEAD_BYTES = 16
_PDF_BYTES = (IMAGE_BYTES, 200 * IMAGE_BYTES)
_PDF_SHARE = 1 / 8
"""Of the bytes of a PDF. Providers charge by its pages, with text and image."""
_DESCRIBED_BYTES = 200
_AUDIO_SHARE = 1 / 100
"""Of the bytes of audio. Providers charge by its duration."""
_CORRECTION_RANGE = (0.05, 1.0)


class ContextWindow:
    """One per claimed run; its transcript may only grow. `held_bytes` is the size of the measured
    transcript in memory."""

    def __init__(self) -> None:
        self.held_bytes = 0
        self._tokens_per_byte = TOKENS_PER_BYTE
        self._sizes: list[int] = []
        self._kept_bytes = 0
        self._start = 0
        self._pinned = -1

    def fit(self, transcript: Sequence[Message], *, fixed_bytes: int, budget_tokens: int) -> tuple[Message, ...]:
        """The messages to send: the newest whole turns that fit beside `fixed_bytes` of
        instructions and tools. The newest user message and the current turn are always included.
        The first message is a user message."""
        self.measure(transcript)
        if self._tokens(self._kept_bytes + fixed_bytes) > budget_tokens:
            self._cut(transcript, fixed_bytes, goal=budget_tokens * CUT_TO)
        self._lead_with_user(transcript)
        if 0 <= self._pinned < self._start:
            return (transcript[self._pinned], *transcript[self._start :])
        return tuple(transcript[self._start :])

    def estimate(self, *, fixed_bytes: int) -> int:
        """Tokens of the next request."""
        return self._tokens(self._kept_bytes + fixed_bytes)

    def tokens_of(self, size: int) -> int:
        """Tokens of `size` bytes by the provider's reports."""
        return self._tokens(size)

    def correct(self, *, fixed_bytes: int, reported_tokens: int) -> None:
        """Correct the estimate by the provider's count for the last request."""
        sent = self._kept_bytes + fixed_bytes
        if reported_tokens > 0 and sent > 0:
            low, high = _CORRECTION_RANGE
            self._tokens_per_byte = min(high, max(low, reported_tokens / sent))

    def measure(self, transcript: Sequence[Message]) -> None:
        """Measure the messages that were not measured before."""
        for index in range(len(self._sizes), len(transcript)):
            message = transcript[index]
            size = message_bytes(message)
            self._sizes.append(size)
            self._kept_bytes += size
            # In a request images and files have estimated sizes, in memory their own.
            self.held_bytes += size + sum([len(attached.data or "") for attached in message.attachments])
            if message.role is Role.USER:
                if 0 <= self._pinned < self._start:
                    self._kept_bytes -= self._sizes[self._pinned]
                self._pinned = index

    def _tokens(self, size: int) -> int:
        return int(size * self._tokens_per_byte) + 1

    def _cut(self, transcript: Sequence[Message], fixed_bytes: int, *, goal: float) -> None:
        for start in range(self._start + 1, len(transcript)):
            if transcript[start].role not in (Role.USER, Role.ASSISTANT):
                continue
            if self._tokens(self._kept_bytes + fixed_bytes) <= goal:
                return
            self._drop_before(start)

    def _lead_with_user(self, transcript: Sequence[Message]) -> None:
        """Providers require a user message first: another turn may lead only behind the pinned
        message."""
        start = self._start
        while start < self._pinned and transcript[start].role is not Role.USER:
            start += 1
        self._drop_before(start)

    def _drop_before(self, start: int) -> None:
        dropped = (self._sizes[index] for index in range(self._start, start) if index != self._pinned)
        self._kept_bytes -= sum(dropped)
        self._start = start


def message_bytes(message: Message) -> int:
    """Estimated size of a message in a provider's request: neutrally or as it came, whichever is
    larger."""
    size = _OVERHEAD_BYTES
    for part in message.content:
        match part:
            case TextContent():
                size += len(part.text.encode())
            case ImageContent():
                size += IMAGE_BYTES
            case FileContent():
                size += _file_bytes(part)
            case ToolUse():
                size += len(part.name) + len(str(part.params)) + 2 * _OVERHEAD_BYTES
            case ToolResultContent():
                size += len(part.result.encode()) + IMAGE_BYTES * len(part.images) + 2 * _OVERHEAD_BYTES
                size += sum(map(_file_bytes, part.files))
    return size if message.items is None else max(size, message.items.size)


def _file_bytes(file: FileContent) -> int:
    size = size_of(file)
    match kind_of_file(file.media_type):
        case FileKind.PDF:
            low, high = _PDF_BYTES
            return min(high, max(low, int(size * _PDF_SHARE)))
        case FileKind.AUDIO:
            return int(size * _AUDIO_SHARE) + _DESCRIBED_BYTES
        case FileKind.TEXT:
            return size + _DESCRIBED_BYTES
        case FileKind.OTHER:
            return _DESCRIBED_BYTES
