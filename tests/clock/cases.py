"""Moments and time zones at which the whole suite must pass: each case is a start of the clock,
from where it runs normally."""

from calendar import SUNDAY, isleap
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

BEFORE = timedelta(minutes=5)
"""How long before a change of day, year or summer time the clock starts: the suite runs across
it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockCase:
    """A time zone, and what the clock says when the tests start. `start` takes the real time; both
    are UTC."""

    name: str
    zone: str
    start: Callable[[datetime], datetime]


def _ahead(days: int) -> Callable[[datetime], datetime]:
    return lambda now: now + timedelta(days=days)


def _just_before(change: Callable[[int], datetime | None]) -> Callable[[datetime], datetime]:
    """Before the next change, of which `change` knows the moment in a year that has one."""

    def start(now: datetime) -> datetime:
        moments = (moment for year in range(now.year, now.year + 9) if (moment := change(year)))
        return next(moment - BEFORE for moment in moments if moment - BEFORE > now)

    return start


def _last_of_january(year: int) -> datetime:
    """A day whose number the next month does not have."""
    return datetime(year, 1, 31, tzinfo=UTC)


def _end_of_year(year: int) -> datetime:
    """The end of a month, too."""
    return datetime(year + 1, 1, 1, tzinfo=UTC)


def _leap_day(year: int) -> datetime | None:
    return datetime(year, 2, 29, tzinfo=UTC) if isleap(year) else None


def _summer_time(year: int) -> datetime:
    """Europe changes its clocks at 01:00 UTC on the last Sunday of March."""
    last = datetime(year, 3, 31, 1, tzinfo=UTC)
    return last - timedelta(days=(last.weekday() - SUNDAY) % 7)


CASES = (
    ClockCase(name="day", zone="Asia/Kathmandu", start=_ahead(1)),
    ClockCase(name="month", zone="Asia/Tokyo", start=_ahead(30)),
    ClockCase(name="month-end", zone="America/Phoenix", start=_just_before(_last_of_january)),
    ClockCase(name="year-end", zone="America/St_Johns", start=_just_before(_end_of_year)),
    ClockCase(name="year", zone="Pacific/Kiritimati", start=_ahead(365)),
    ClockCase(name="decade", zone="America/Sao_Paulo", start=_ahead(3653)),
    ClockCase(name="leap-day", zone="Australia/Lord_Howe", start=_just_before(_leap_day)),
    ClockCase(name="summer-time", zone="Europe/Berlin", start=_just_before(_summer_time)),
)
"""The zones are 14 hours ahead of UTC to 7 behind it, some by parts of an hour. No case is in UTC:
`make test` mostly is."""
