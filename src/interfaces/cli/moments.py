"""Times of the API as people read them on a terminal."""

import re
from datetime import UTC, datetime

_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def relative_times(text: str, *, now: datetime) -> str:
    """The text with each time as its distance from now: `5 min ago`, `in 24 h`."""
    return _TIME.sub(lambda found: distance(datetime.fromisoformat(found[0]), now=now), text)


def readable_times(text: str, *, now: datetime) -> str:
    """The text with each time to the second, and its distance from now."""

    def readable(found: re.Match[str]) -> str:
        at = datetime.fromisoformat(found[0])
        return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({distance(at, now=now)})"

    return _TIME.sub(readable, text)


def distance(at: datetime, *, now: datetime) -> str:
    """How long ago, or in how much time: `now` within ten seconds, the date after 60 days."""
    seconds = (now - at).total_seconds()
    away = abs(seconds)
    if away < 10:
        return "now"
    if away >= 60 * 86_400:
        return f"{at.astimezone(UTC):%Y-%m-%d}"
    size, unit = next(((size, unit) for size, unit in _UNITS if away >= 0.99 * size), (1, "s"))
    length = f"{round(away / size)} {unit}"
    return f"{length} ago" if seconds > 0 else f"in {length}"
