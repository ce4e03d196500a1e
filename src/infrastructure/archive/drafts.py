"""Drafts that a killed process left in the archive."""

import asyncio
import logging
from datetime import datetime
from pathlib import Path

from infrastructure.archive.whole_files import remove_old_drafts

logger = logging.getLogger(__name__)


class DraftFiles:
    """The port `ArchiveDrafts` over a directory. A writer whose draft is gone fails, and writes it
    again later."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def remove(self, before: datetime) -> int:
        try:
            return await asyncio.to_thread(remove_old_drafts, self._directory, before=before.timestamp())
        except OSError as error:
            logger.warning("unfinished files in %s cannot be removed: %s", self._directory, error.strerror)
            return 0
