"""Jobs and answers of extraction, in the frames of forking/wire.py.

Head of an answer: `{"title", "lengths"}` (bytes of each page's text in UTF-8; the texts follow) or `{"fault"}`.
"""

import json
from dataclasses import asdict, dataclass

from infrastructure.forking.wire import REQUEST, encoded_head


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
    return encoded_head({"title": title, "lengths": [len(text) for text in texts]}), *texts


def encoded_fault(fault: str) -> bytes:
    """An answer without text."""
    return encoded_head({"fault": fault})
