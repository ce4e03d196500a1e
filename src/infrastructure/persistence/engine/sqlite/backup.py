"""A copy of the SQLite database as it is at one moment, written while the service continues to
write."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from domain.errors import ErrorKind, ServiceError

_PRIVATE = 0o600


def back_up(source: Path, target: Path) -> int:
    """Write the copy to `target`, a new file that only its owner may read, and return its size in
    bytes. It is there whole, looked through for damage and on the disk, or not at all.

    Raises NOT_FOUND `database_missing`, CONFLICT `backup_exists`, UNAVAILABLE `backup_failed`.
    """
    if not source.exists():
        raise ServiceError("database_missing", ErrorKind.NOT_FOUND, f"There is no database at {source}.")
    if target.exists():
        raise ServiceError("backup_exists", ErrorKind.CONFLICT, f"{target} exists; name a file that does not.")
    draft = target.with_name(f"{target.name}.part")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _PRIVATE))
    except OSError as error:
        reason = error.strerror or "the file cannot be made"
        raise ServiceError("backup_failed", ErrorKind.UNAVAILABLE, f"{draft} cannot be written: {reason}.") from error
    try:
        _copy(source, draft)
        _settle(draft, target)
    except (sqlite3.Error, OSError) as error:
        detail = f"{source} could not be copied: the disk is full, or the database is damaged (`dragoman doctor`)."
        raise ServiceError("backup_failed", ErrorKind.UNAVAILABLE, detail) from error
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
    return target.stat().st_size


def _copy(source: Path, draft: Path) -> None:
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as ours,
        closing(sqlite3.connect(draft)) as copy,
    ):
        # All pages in one step: with several, each write of the service would start it again
        # (SQLite, Online Backup API).
        ours.backup(copy)
        # One file, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        [said] = copy.execute("PRAGMA quick_check(1)").fetchone()
        if said != "ok":
            raise sqlite3.DatabaseError(str(said))


def _settle(draft: Path, target: Path) -> None:
    _flush(draft)
    draft.rename(target)
    _flush(target.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
