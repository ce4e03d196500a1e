"""Runs in files: compressed lines of JSON with their events and tool calls, and a manifest beside each file.

`runs/ORGANIZATION/YEAR-MONTH/THREAD-DIGEST.ndjson.gz`, by the month in which the last run of the file was created, and the beginning
of the file's SHA-256; the manifest has `.json` in place of `.ndjson.gz`. It is written last, so a file without one is not complete.
"""

import asyncio
import gzip
import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from io import BufferedRandom
from pathlib import Path
from typing import Final, assert_never

import msgspec

from application.retention.ports import ArchivedEntry
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId, ThreadId
from domain.runs.events import RunEvent
from domain.runs.ledger import ToolCall
from domain.runs.run import Run
from infrastructure.archive.whole_files import become, draft_in, keep_names, put_file
from infrastructure.runtime import json_text

_FORMAT: Final = 1


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds. `sha256` is that of the compressed file."""

    format: int
    organization_id: str
    thread_id: str
    runs: int
    events: int
    tool_calls: int
    sha256: str
    bytes: int
    written_at: str


class RunFiles:
    """The port `RunArchive` over a directory, which must exist: one that was not mounted is not made."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / "runs"

    async def store(
        self, organization_id: OrganizationId, thread_id: ThreadId, parts: AsyncIterator[Sequence[ArchivedEntry]]
    ) -> None:
        part = await anext(parts, None)
        if part is None:
            return
        try:
            folder = await asyncio.to_thread(self._folder_of, organization_id)
            with draft_in(folder) as file:
                counts = _Counts()
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as lines:
                    while part is not None:
                        await asyncio.to_thread(lines.writelines, map(counts.line_of, part))
                        part = await anext(parts, None)
                await asyncio.to_thread(
                    _finish, file, folder / f"{counts.last:%Y-%m}", organization_id, thread_id, counts
                )
        except OSError as error:
            raise ServiceError(
                "archive_failed",
                ErrorKind.INTERNAL,
                f"Runs cannot be written to {self._folder}, and stay in the database: {error.strerror or error}.",
            ) from error

    def _folder_of(self, organization_id: OrganizationId) -> Path:
        folder = self._folder / organization_id
        for made in (self._folder, folder):
            _make(made)
        return folder


class _Counts:
    """Makes lines and counts them. `last` is when the last run was created."""

    def __init__(self) -> None:
        self.runs = self.events = self.calls = 0
        self.last = datetime.min.replace(tzinfo=UTC)

    def line_of(self, entry: ArchivedEntry) -> bytes:
        """Secret state of a server for its open question is left out."""
        match entry:
            case Run():
                self.runs += 1
                self.last = max(self.last, entry.created_at)
                return _line("run", entry)
            case RunEvent():
                self.events += 1
                return _line("event", entry)
            case ToolCall():
                self.calls += 1
                return _line("tool_call", replace(entry, input=None))
        assert_never(entry)


def _finish(
    file: BufferedRandom, month: Path, organization_id: OrganizationId, thread_id: ThreadId, counts: _Counts
) -> None:
    _make(month)
    size = file.tell()
    file.seek(0)
    manifest = Manifest(
        format=_FORMAT,
        organization_id=organization_id,
        thread_id=thread_id,
        runs=counts.runs,
        events=counts.events,
        tool_calls=counts.calls,
        sha256=hashlib.file_digest(file, "sha256").hexdigest(),
        bytes=size,
        written_at=datetime.now(UTC).isoformat(),
    )
    # Other content of the same thread gets another name, as after a removal that was broken off.
    name = f"{thread_id}-{manifest.sha256[:16]}"
    become(file, month / f"{name}.ndjson.gz")
    put_file(month / f"{name}.json", msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")


def _make(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    keep_names(folder.parent)


def _line(kind: str, value: object) -> bytes:
    return json_text.encode(msgspec.to_builtins({kind: value})).encode() + b"\n"
