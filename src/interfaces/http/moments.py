"""Times in query parameters."""

from datetime import UTC, datetime


def in_utc(moment: datetime | None) -> datetime | None:
    """A time without a zone is read as UTC."""
    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC)
