"""Jobs and answers of extraction, in the frames of `forking/wire.py`.

Head of an answer: `{"title", "lengths"}` (bytes of each page's text in UTF-8; the texts follow) or
`{"fault"}`.
"""

import json
from dataclasses import asdict, dataclass

from infrastructure.forking.wire import REQUEST, encoded_head


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A document to read, and the limits. `cpu_s` bounds processor time."""

    media_type: str
    max_characters: int
    max_memory_bytes: int
    cpu_s: int

    def encoded(self, size: int) -> bytes:
        """Everything that precedes the document of `size` bytes."""
        head = json.dumps(asdict(self)).encode()
        return REQUEST.pack(len(head), size) + head


def encoded_answer(title: str | None, pages: tuple[str, ...]) -> tuple[bytes, ...]:
    """The parts of an answer with text. Lone surrogates, which UTF-8 cannot represent, become
    question marks."""
    texts = tuple(page.encode("utf-8", errors="replace") for page in pages)
    return encoded_head({"title": title, "lengths": [len(text) for text in texts]}), *texts


def encoded_fault(fault: str) -> bytes:
    return encoded_head({"fault": fault})
