"""Whether rows are still those that something was made from. ADR 0015."""

from domain.ids import OrganizationId
from infrastructure.events.row_feed import RowFeed


class RowStamp:
    """Calling it gives a number, which is another one after each change of `tables`, whoever made it; None while changes may
    be unheard of."""

    def __init__(self, *tables: str, feed: RowFeed) -> None:
        self._feed = feed
        self._changes = 0
        feed.watch(self._changed, *tables)

    def __call__(self) -> int | None:
        """The number now."""
        return self._changes if self._feed.fresh() else None

    def _changed(self, organization_id: OrganizationId | None) -> None:
        self._changes += 1
