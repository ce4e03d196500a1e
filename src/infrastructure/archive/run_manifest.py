"""Manifest of a file with runs or gateway calls, and the names of both files."""

from typing import Final

import msgspec

FORMAT: Final = 1
LINES: Final = ".ndjson.gz"
MANIFEST: Final = ".json"
RUNS: Final = "runs"
CALLS: Final = "gateway_calls"
"""Folders of an archive."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds. `sha256` is that of the compressed file. `thread_id` is None for calls of
    many threads."""

    format: int
    organization_id: str
    thread_id: str | None
    runs: int
    events: int
    tool_calls: int
    gateway_calls: int = 0
    sha256: str
    bytes: int
    written_at: str
