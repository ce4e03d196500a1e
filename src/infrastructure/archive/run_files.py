"""Runs and gateway calls in files: compressed lines of JSON, and a manifest beside each file.

`runs/ORGANIZATION/YEAR-MONTH/THREAD-DIGEST.ndjson.gz`, by the month in which the last run or call
of the file began, and the beginning of the file's SHA-256;
`gateway_calls/ORGANIZATION/YEAR-MONTH/DIGEST.ndjson.gz` for calls of many threads. The manifest has
`.json` in place of `.ndjson.gz`. It is written last, so a file without one is not complete.
"""

import asyncio
import gzip
import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from io import BufferedRandom
from pathlib import Path
from typing import assert_never

import msgspec

from application.retention.ports import ArchivedEntry
from domain.errors import ErrorKind, ServiceError
from domain.gateway.call import GatewayCall, GatewaySettlement
from domain.ids import OrganizationId, ThreadId
from domain.runs.events import RunEvent
from domain.runs.ledger import ToolCall
from domain.runs.run import Run
from infrastructure.archive.run_manifest import CALLS, FORMAT, LINES, MANIFEST, RUNS, Manifest
from infrastructure.archive.whole_files import become, draft_in, drafts_of, keep_names, put_file
from infrastructure.runtime import json_text


class RunFiles:
    """The port `RunArchive` over a directory, which must exist: one that was not mounted is not
    made."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def store(
        self, organization_id: OrganizationId, thread_id: ThreadId | None, parts: AsyncIterator[Sequence[ArchivedEntry]]
    ) -> None:
        part = await anext(parts, None)
        if part is None:
            return
        folder = self._directory / (CALLS if thread_id is None else RUNS)
        try:
            await asyncio.to_thread(_make, folder, folder / organization_id)
            with draft_in(drafts_of(folder)) as file:
                counts = _Counts()
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as lines:
                    while part is not None:
                        await asyncio.to_thread(lines.writelines, map(counts.line_of, part))
                        part = await anext(parts, None)
                await asyncio.to_thread(self._finish, file, folder, organization_id, thread_id, counts)
        except OSError as error:
            raise ServiceError(
                "archive_failed",
                ErrorKind.INTERNAL,
                f"Runs or calls cannot be written to {folder}, and stay in the database: {error.strerror or error}.",
            ) from error

    def _finish(
        self,
        file: BufferedRandom,
        folder: Path,
        organization_id: OrganizationId,
        thread_id: ThreadId | None,
        counts: "_Counts",
    ) -> None:
        month = folder / organization_id / f"{counts.last:%Y-%m}"
        _make(month)
        size = file.tell()
        file.seek(0)
        manifest = Manifest(
            format=FORMAT,
            organization_id=organization_id,
            thread_id=thread_id,
            runs=counts.runs,
            events=counts.events,
            tool_calls=counts.calls,
            gateway_calls=counts.gateway_calls,
            sha256=hashlib.file_digest(file, "sha256").hexdigest(),
            bytes=size,
            written_at=datetime.now(UTC).isoformat(),
        )
        # Other content of the same thread gets another name, as after a removal that was broken
        # off.
        digest = manifest.sha256[:16]
        name = digest if thread_id is None else f"{thread_id}-{digest}"
        described = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
        become(file, month / f"{name}{LINES}")
        put_file(month / f"{name}{MANIFEST}", described, drafts=drafts_of(folder))


class _Counts:
    """Makes lines and counts them. `last` is when the last run or gateway call began."""

    def __init__(self) -> None:
        self.runs = self.events = self.calls = self.gateway_calls = 0
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
            case GatewayCall():
                return self._line_of_gateway_call(entry, None)
            case GatewaySettlement():
                return self._line_of_gateway_call(entry.call, entry)
        assert_never(entry)

    def _line_of_gateway_call(self, call: GatewayCall, outcome: GatewaySettlement | None) -> bytes:
        self.gateway_calls += 1
        self.last = max(self.last, call.recorded_at)
        fields = {name: getattr(call, name) for name in _CALL_FIELDS}
        settled = {name: getattr(outcome, name, None) for name in ("result", "duration_ms")}
        return _line("gateway_call", {**fields, **settled, "settled_at": getattr(outcome, "at", None)})


_CALL_FIELDS = tuple(field for field in GatewayCall.__dataclass_fields__ if field != "from_app")
"""All that are stored."""


def _make(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(mode=0o700, exist_ok=True)
        keep_names(folder.parent)


def _line(kind: str, value: object) -> bytes:
    return json_text.encode(msgspec.to_builtins({kind: value})).encode() + b"\n"
