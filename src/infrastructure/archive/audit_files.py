"""Audit entries in files: compressed lines of JSON with their seals, and a manifest beside each
file.

`audit/ORGANIZATION/FIRST-LAST.ndjson.gz`, by the numbers of the first and last entry; the manifest
has `.json` in place of `.ndjson.gz`. It is written last, so a file without a manifest is not
complete.
"""

import asyncio
import gzip
import hashlib
import io
import json
import logging
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from application.audit.ports import ArchivedPart
from domain.audit.chain import SEALED_FIELDS, Link
from domain.audit.chain_check import StoredLink
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId
from infrastructure.archive.whole_files import AUDIT, drafts_of, keep_names, put_file

logger = logging.getLogger(__name__)

_FORMAT: Final = 1
_LINES, _MANIFEST = ".ndjson.gz", ".json"
_LINK: Final = ("number", "sealed_at", "key_id", "seal")
_MOST_BYTES: Final = 1 << 30
"""Of a file's lines: many times what 20,000 entries have."""
_DAMAGES: Final = (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError, zlib.error, msgspec.MsgspecError)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds. `previous_seal` is that of the entry before the first, `sha256` of the
    compressed file."""

    format: int
    organization_id: str
    first: int
    last: int
    count: int
    previous_seal: str
    last_seal: str
    sha256: str
    bytes: int
    written_at: str


class AuditFiles:
    """The ports `AuditArchive` and `ArchivedAudit` over a directory, which must exist: one that was
    not mounted is not made."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / AUDIT
        self._drafts = drafts_of(self._folder)

    async def store(self, part: ArchivedPart) -> None:
        try:
            await asyncio.to_thread(self._write, part)
        except OSError as error:
            raise ServiceError(
                "archive_failed",
                ErrorKind.INTERNAL,
                f"Audit entries cannot be written to {self._folder}, and stay in the database: {error.strerror}.",
            ) from error

    async def names(self) -> tuple[str, ...]:
        return await asyncio.to_thread(self._names)

    async def read(self, name: str) -> ArchivedPart | None:
        return await asyncio.to_thread(self._read, name)

    def _names(self) -> tuple[str, ...]:
        found = {
            f"{path.parent.name}/{path.name.removesuffix(suffix)}"
            for suffix in (_LINES, _MANIFEST)
            for path in self._folder.glob(f"*/*{suffix}")
        }
        return tuple(sorted(found))

    def _write(self, part: ArchivedPart) -> None:
        first, last = part.links[0].link, part.links[-1].link
        folder = self._folder / part.organization_id
        for made in (self._folder, folder):
            made.mkdir(mode=0o700, exist_ok=True)
            keep_names(made.parent)
        lines = "".join(_line(stored) for stored in part.links).encode()
        content = gzip.compress(lines, mtime=0)
        manifest = Manifest(
            format=_FORMAT,
            organization_id=part.organization_id,
            first=first.number,
            last=last.number,
            count=len(part.links),
            previous_seal=part.previous_seal,
            last_seal=last.seal,
            sha256=hashlib.sha256(content).hexdigest(),
            bytes=len(content),
            written_at=datetime.now(UTC).isoformat(),
        )
        name = f"{first.number:012}-{last.number:012}"
        if self._is_of_others(folder / f"{name}{_MANIFEST}", last.seal):
            name = f"{name}-{last.seal[:16]}"
        put_file(folder / f"{name}{_LINES}", content, drafts=self._drafts)
        described = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
        put_file(folder / f"{name}{_MANIFEST}", described, drafts=self._drafts)

    def _is_of_others(self, manifest: Path, last_seal: str) -> bool:
        """Whether there are other entries under this name, as after a database was put back to an
        earlier state."""
        try:
            return msgspec.json.decode(manifest.read_bytes(), type=Manifest).last_seal != last_seal
        except FileNotFoundError:
            return False
        except msgspec.MsgspecError:
            return True

    def _read(self, name: str) -> ArchivedPart | None:
        try:
            manifest = msgspec.json.decode((self._folder / f"{name}{_MANIFEST}").read_bytes(), type=Manifest)
            content = (self._folder / f"{name}{_LINES}").read_bytes()
            if hashlib.sha256(content).hexdigest() != manifest.sha256:
                return None
            links = tuple(_stored(json.loads(line)) for line in _unpacked(content).splitlines())
        except _DAMAGES as error:
            logger.warning("a file of the archive cannot be read", extra={"file": name, "why": str(error)})
            return None
        described = (manifest.first, manifest.last, manifest.count, manifest.last_seal)
        if not links or described != (links[0].link.number, links[-1].link.number, len(links), links[-1].link.seal):
            return None
        return ArchivedPart(
            organization_id=OrganizationId(manifest.organization_id), previous_seal=manifest.previous_seal, links=links
        )


def _line(stored: StoredLink) -> str:
    """Values as they are sealed: times in microseconds since 1970, `details` as the stored text."""
    link = stored.link
    values = (link.number, link.sealed_at, link.key_id, link.seal, *(stored.entry or ()))
    return json.dumps(dict(zip((*_LINK, *SEALED_FIELDS), values, strict=True)), default=repr) + "\n"


def _stored(line: dict[str, object]) -> StoredLink:
    entry = tuple(line[field] for field in SEALED_FIELDS)
    link = msgspec.convert({**{field: line[field] for field in _LINK}, "event_id": line["id"]}, Link)
    return StoredLink(link=link, entry=msgspec.convert(entry, tuple[str | int | float | None, ...]))


def _unpacked(content: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        lines = file.read(_MOST_BYTES + 1)
    if len(lines) > _MOST_BYTES:
        raise ValueError("the lines are longer than any that are written")
    return lines
