"""What a server listed last, so that an entry that did not change is not read again, on no
connection of the server."""

import hashlib
from collections.abc import Sequence

from domain.mcp.declared_tool import DeclaredTool
from infrastructure.mcp.catalogs.catalog import (
    Entry,
    ListPage,
    ToolListing,
    declared_listing,
    read_listing,
)

_REMEMBERED = 1024 * 1024
"""Most characters of the definitions that are remembered of a server."""


class ToolLists:
    """The lists of one version of a server in this process. `declared` are the tools of one that is
    not asked. Entries that are JSON text, those of large pages, are recognized by their bytes."""

    def __init__(self, declared: Sequence[DeclaredTool] = ()) -> None:
        self.declared = declared
        self._last: dict[bytes, Entry] = {}

    async def read(self, list_page: ListPage) -> ToolListing:
        """All pages. Raises as `read_listing`."""
        if self.declared:
            return await declared_listing(self.declared)
        read: dict[bytes, Entry] = {}

        def entry_of(text: bytes) -> Entry:
            key = hashlib.sha256(text).digest()
            found = read[key] = self._last.get(key) or Entry.of_text(text)
            return found

        listing = await read_listing(list_page, entry_of=entry_of)
        self._last = read if sum(entry.size for entry in read.values()) <= _REMEMBERED else {}
        return listing
