"""Pages of lists: requests and results."""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from domain.identity.api_key import Principal
from domain.teams import Teams

ItemT = TypeVar("ItemT")

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 500
SEARCHED = 10_000
"""A search of texts reads at most the newest so many runs or threads of the organization."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """`limit` entries after `cursor`, the opaque `next_cursor` of the page before. Stores raise
    INVALID `cursor_invalid` for an unknown one. Of what teams own, only what `teams` own."""

    limit: int = DEFAULT_PAGE_SIZE
    cursor: str | None = None
    teams: Teams = None

    def seen_by(self, principal: Principal) -> "PageRequest":
        """The same request for what the caller sees."""
        return self if principal.visible_teams == self.teams else replace(self, teams=principal.visible_teams)

    def next(self, cursor: str) -> "PageRequest":
        """The request of the page after this one."""
        return replace(self, cursor=cursor)


FIRST_PAGE = PageRequest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[ItemT]):
    """Entries in order; `next_cursor` is None on the last page."""

    items: tuple[ItemT, ...]
    next_cursor: str | None = None
