"""Checks files with runs and gateway calls: line by line, so that a file of any size takes little
memory."""

import asyncio
import gzip
import hashlib
import io
import logging
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from application.retention.ports import CheckedFile, FileState
from infrastructure.archive.run_manifest import CALLS, LINES, MANIFEST, RUNS, Manifest
from infrastructure.runtime import json_text

logger = logging.getLogger(__name__)

_MOST_BYTES_OF_A_LINE: Final = 1 << 28
_KINDS: Final = ("run", "event", "tool_call", "gateway_call")
_DAMAGES: Final = (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError, zlib.error, msgspec.MsgspecError)


class CheckedRunFiles:
    """The port `ArchivedRuns` over a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def names(self) -> tuple[str, ...]:
        return await asyncio.to_thread(self._names)

    async def check(self, name: str) -> CheckedFile:
        return await asyncio.to_thread(self._check, name)

    def _names(self) -> tuple[str, ...]:
        found = {
            str(path.relative_to(self._directory)).removesuffix(suffix)
            for folder in (RUNS, CALLS)
            for suffix in (LINES, MANIFEST)
            for path in self._directory.glob(f"{folder}/*/*/*{suffix}")
        }
        return tuple(sorted(found))

    def _check(self, name: str) -> CheckedFile:
        lines, manifest = (self._directory / f"{name}{suffix}" for suffix in (LINES, MANIFEST))
        try:
            if not manifest.exists():
                return CheckedFile(state=FileState.WITHOUT_MANIFEST)
            said = msgspec.json.decode(manifest.read_bytes(), type=Manifest)
            with open(lines, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                file.seek(0, io.SEEK_END)
                _require(digest == said.sha256 and file.tell() == said.bytes, "the file is another one")
                file.seek(0)
                found = _counted(file)
            told = (said.runs, said.events, said.tool_calls, said.gateway_calls)
            _require(told == tuple(found[kind] for kind in _KINDS), "the numbers are others")
            place = (said.organization_id, name.endswith(digest[:16]))
            _require(place == (Path(name).parts[1], True), "the file is at the place of another one")
        except _DAMAGES as error:
            logger.warning("a file of the archive is not as it was written", extra={"file": name, "why": str(error)})
            return CheckedFile(state=FileState.DAMAGED)
        return CheckedFile(
            runs=said.runs, events=said.events, tool_calls=said.tool_calls, gateway_calls=said.gateway_calls
        )


def _counted(file: IO[bytes]) -> "Counter[str]":
    """How many lines of each kind there are. Raises ValueError if an event or tool call is not
    behind its run, or out of order."""
    found: Counter[str] = Counter()
    run_id, seq = None, 0
    for line in _lines(file):
        document = json_text.decode(line.decode())
        [(kind, entry)] = msgspec.convert(document, dict[str, dict[str, object]]).items()
        _require(kind in _KINDS, "a line has another kind")
        found[kind] += 1
        if kind == "run":
            run_id, seq = entry["id"], 0
        elif kind != "gateway_call":
            _require(entry["run_id"] == run_id, "an entry is not behind its run")
        if kind == "event":
            number = msgspec.convert(entry["seq"], int)
            _require(number > seq, "events are out of order")
            seq = number
    return found


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as unpacked:
        while line := unpacked.readline(_MOST_BYTES_OF_A_LINE):
            _require(line.endswith(b"\n"), "a line has no end")
            yield line


def _require(is_right: bool, problem: str) -> None:
    if not is_right:
        raise ValueError(problem)
