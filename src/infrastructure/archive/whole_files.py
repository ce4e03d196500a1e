"""Private files that are written whole, or not at all, and are durable."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path


@contextmanager
def draft_in(folder: Path) -> Iterator[BufferedRandom]:
    """A new file, for `become`; else it is removed in the end."""
    path = folder / f"{secrets.token_hex(12)}.part"
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


def put_file(path: Path, content: bytes) -> None:
    """Write a file whole, or not at all."""
    with draft_in(path.parent) as file:
        file.write(content)
        become(file, path)


def keep_names(folder: Path) -> None:
    """Make the names in it durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
