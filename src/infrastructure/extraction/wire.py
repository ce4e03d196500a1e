"""What the service and its extraction processes say to each other over a socket: lengths, a JSON head, bytes.

A job: `!IQ` (length of head, length of document), head, document. An answer: `!I` (length of head), head, texts of the pages.
Head of an answer: `{"title", "lengths"}` (bytes of each page's text in UTF-8) or `{"fault"}`.
"""

import json
import struct
from dataclasses import asdict, dataclass

REQUEST = struct.Struct("!IQ")
ANSWER = struct.Struct("!I")
READY = b"r"
"""What the reader process says when it takes jobs."""
MAX_HEAD_BYTES = 4 * 1024 * 1024
"""Lengths of pages: more than any document that is small enough has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be read, and what reading it may take. `cpu_s` bounds time on the processor."""

    media_type: str
    max_characters: int
    max_memory_bytes: int
    cpu_s: int

    def encoded(self, size: int) -> bytes:
        """All that comes before the document of that many bytes."""
        head = json.dumps(asdict(self)).encode()
        return REQUEST.pack(len(head), size) + head


def encoded_answer(title: str | None, pages: tuple[str, ...]) -> tuple[bytes, ...]:
    """The parts of an answer with text. Lone surrogates, which have no UTF-8, become question marks."""
    texts = tuple(page.encode("utf-8", errors="replace") for page in pages)
    return _head({"title": title, "lengths": [len(text) for text in texts]}), *texts


def encoded_fault(fault: str) -> bytes:
    """An answer without text."""
    return _head({"fault": fault})


def _head(content: dict[str, object]) -> bytes:
    head = json.dumps(content).encode()
    return ANSWER.pack(len(head)) + head
