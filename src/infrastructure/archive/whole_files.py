"""Private files of an archive that are written whole, or not at all, and are durable.

A file is written as a draft, and gets its name when it is whole. Each kind of files has a folder
for its drafts: a kind may be a mount, and a file is not renamed from one device to another.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path
from typing import Final

from infrastructure.archive.run_manifest import CALLS, RUNS

AUDIT: Final = "audit"
_DRAFT: Final = re.compile(r"[0-9a-f]{24}\.part")


def drafts_of(folder: Path) -> Path:
    """Where drafts of the files in this folder of an archive are."""
    return folder / ".drafts"


@contextmanager
def draft_in(drafts: Path) -> Iterator[BufferedRandom]:
    """A new file, for `become`; else it is removed in the end."""
    drafts.mkdir(mode=0o700, exist_ok=True)
    path = drafts / f"{secrets.token_hex(12)}.part"
    try:
        with open(path, "x+b", opener=_private) as file:
            yield file
    finally:
        path.unlink(missing_ok=True)


def become(file: BufferedRandom, path: Path) -> None:
    """The draft is whole: name it. Others may write the same file."""
    file.flush()
    os.fsync(file.fileno())
    Path(file.name).replace(path)
    keep_names(path.parent)


def put_file(path: Path, content: bytes, *, drafts: Path) -> None:
    """Write a file whole, or not at all."""
    with draft_in(drafts) as file:
        file.write(content)
        become(file, path)


def keep_names(folder: Path) -> None:
    """Make the names in it durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_old_drafts(directory: Path, *, before: float) -> int:
    """Remove drafts that were last written before this time, in seconds since 1970. Returns how
    many. Earlier versions wrote them beside their files, or in one folder for all kinds."""
    removed = 0
    for folder in (AUDIT, RUNS, CALLS, "drafts"):
        for path in (directory / folder).rglob("*.part"):
            if not _DRAFT.fullmatch(path.name):
                continue
            with suppress(FileNotFoundError):  # its writer has finished, or another process has removed it
                if path.lstat().st_mtime < before:
                    path.unlink()
                    removed += 1
    return removed


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
