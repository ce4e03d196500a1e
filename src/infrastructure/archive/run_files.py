"""Runs in files: compressed lines of JSON with their events and tool calls, and a manifest beside each file.

`runs/ORGANIZATION/YEAR-MONTH/THREAD-DIGEST.ndjson.gz`, by the month in which the last run of the file was created, and the beginning
of the file's SHA-256; the manifest has `.json` in place of `.ndjson.gz`. It is written last, so a file without one is not complete.
"""

import asyncio
import gzip
import hashlib
import io
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from application.retention.ports import ArchivedRun
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId, ThreadId
from infrastructure.archive.whole_files import keep_names, put_file
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
        self, organization_id: OrganizationId, thread_id: ThreadId, runs: AsyncIterator[ArchivedRun]
    ) -> None:
        packed = io.BytesIO()
        last: datetime | None = None
        count = events = calls = 0
        with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as lines:
            async for one in runs:
                await asyncio.to_thread(lines.writelines, _lines_of(one))
                last = max(last or one.run.created_at, one.run.created_at)
                count, events, calls = count + 1, events + len(one.events), calls + len(one.calls)
        if last is None:
            return
        content = packed.getvalue()
        manifest = Manifest(
            format=_FORMAT,
            organization_id=organization_id,
            thread_id=thread_id,
            runs=count,
            events=events,
            tool_calls=calls,
            sha256=hashlib.sha256(content).hexdigest(),
            bytes=len(content),
            written_at=datetime.now(UTC).isoformat(),
        )
        try:
            await asyncio.to_thread(self._write, f"{last:%Y-%m}", content, manifest)
        except OSError as error:
            raise ServiceError(
                "archive_failed",
                ErrorKind.INTERNAL,
                f"Runs cannot be written to {self._folder}, and stay in the database: {error.strerror}.",
            ) from error

    def _write(self, month: str, content: bytes, manifest: Manifest) -> None:
        folder = self._folder / manifest.organization_id / month
        for made in (self._folder, folder.parent, folder):
            made.mkdir(mode=0o700, exist_ok=True)
            keep_names(made.parent)
        # Other content of the same thread gets another name, as after a removal that was broken off.
        name = f"{manifest.thread_id}-{manifest.sha256[:16]}"
        put_file(folder / f"{name}.ndjson.gz", content)
        put_file(folder / f"{name}.json", msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")


def _lines_of(one: ArchivedRun) -> Iterator[bytes]:
    """The run, its events, its calls. Secret state of a server for its open question is left out."""
    yield _line("run", one.run)
    for event in one.events:
        yield _line("event", event)
    for call in one.calls:
        yield _line("tool_call", replace(call, input=None))


def _line(kind: str, value: object) -> bytes:
    return json_text.encode(msgspec.to_builtins({kind: value})).encode() + b"\n"
