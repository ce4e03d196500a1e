"""Folding SQLite's write-ahead log into the file beside those who commit, whom the disk would keep waiting. ADR 0027."""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

logger = logging.getLogger(__name__)


class LogFolding:
    """Folds over a connection of its own, which readers and writers do not wait for (PRAGMA wal_checkpoint, PASSIVE). What is
    committed meanwhile is left for `finish`, which is called then: only where nothing is left is the log begun again, and
    whoever sees to that keeps others from committing, by then for little."""

    def __init__(self, path: Path, *, finish: Callable[[], None]) -> None:
        self._path = path
        self._finish = finish
        self._folding: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Fold, unless that is under way. On the event loop."""
        if self._folding is None:
            self._folding = asyncio.create_task(self._fold(), name="sqlite-folding")

    async def stop(self) -> None:
        """Wait for what is under way, when nobody commits any more."""
        if self._folding is not None:
            await self._folding

    async def _fold(self) -> None:
        try:
            await asyncio.to_thread(_folded, self._path)
        except sqlite3.Error:  # what was committed stays committed
            logger.warning("the write-ahead log could not be folded", exc_info=True)
        finally:
            self._folding = None
        self._finish()


def _folded(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as connection:
        connection.execute("PRAGMA synchronous = NORMAL").close()
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").close()
