"""Files in the directory of an installation, which code of packages may have made. The only way to
read or write them. All functions block on disk I/O."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind

MAX_BYTES = 16 * 1024**2
"""pip's report has the descriptions of all packages."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_T = TypeVar("_T")


def read_file(directory: Path, name: str) -> bytes:
    """The content of `name` below `directory`: a regular file that no link leads to, of at most
    MAX_BYTES. Raises McpInstallFailure FAILED for anything else."""
    try:
        with _opened(directory, name) as (parent, last):
            descriptor = os.open(last, _READ, dir_fd=parent)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size <= MAX_BYTES:
                data = file.read(MAX_BYTES + 1)
                if len(data) <= MAX_BYTES:
                    return data
    except (OSError, ValueError):
        pass
    raise _unusable(name)


def read_json(directory: Path, name: str, kind: type[_T]) -> _T:
    """The JSON of a file, as `read_file` reads it. Raises McpInstallFailure FAILED also if it is no
    such JSON."""
    try:
        return msgspec.json.decode(read_file(directory, name), type=kind)
    except (msgspec.MsgspecError, RecursionError, ValueError) as exc:
        raise _unusable(name) from exc


def write_file(directory: Path, name: str, text: str, *, is_synced: bool = False) -> None:
    """Write a new file in place of what has its name. Raises OSError."""
    with _opened(directory, name) as (parent, last):
        with suppress(FileNotFoundError):
            os.unlink(last, dir_fd=parent)
        descriptor = os.open(last, _WRITE, 0o600, dir_fd=parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        if is_synced:
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _opened(directory: Path, name: str) -> Iterator[tuple[int, str]]:
    """A descriptor of the directory that `name` is in, and its last part. No part is a link."""
    *parents, last = PurePosixPath(name).parts
    if ".." in (*parents, last) or name.startswith("/"):
        raise OSError("not a file below the directory")
    descriptor = os.open(directory, _DIRECTORY)
    try:
        for part in parents:
            inner = os.open(part, _DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, last
    finally:
        os.close(descriptor)


def _unusable(name: str) -> McpInstallFailure:
    return McpInstallFailure(
        McpInstallFailureKind.FAILED, f"The installation has left no usable file {PurePosixPath(name).name!r}."
    )
