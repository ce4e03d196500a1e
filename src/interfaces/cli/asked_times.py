"""Times in options: RFC 3339, or how long ago."""

import re
from datetime import UTC, datetime, timedelta

from interfaces.cli.failures import BadUsage

_AGO = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str, *, now: datetime, option: str = "--since") -> str:
    """The time from RFC 3339, or from `2h`: two hours before `now`. Raises BadUsage."""
    ago = _AGO.fullmatch(text)
    try:
        given = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}) if ago else datetime.fromisoformat(text)
    except (ValueError, OverflowError) as exc:
        raise BadUsage(
            f"{option} {text!r} is neither a time such as 2026-01-31T12:00:00Z nor how long ago, such as 2h."
        ) from exc
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).isoformat()
