"""The moments at which `make test-clock` starts the clock are ahead, and just before the change
that their case is about."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.clock.cases import BEFORE, CASES, ClockCase

NOW = [
    datetime.fromisoformat(f"{moment}Z")
    for moment in ("2026-11-23T12:00", "2027-03-28T00:59", "2028-02-29T00:00", "2099-12-31T23:59")
]
BY_NAME = {case.name: case for case in CASES}
JUST_BEFORE, JUST_AFTER = BEFORE - timedelta(microseconds=1), BEFORE


@pytest.mark.parametrize("now", NOW)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_starts_ahead_of_now_in_a_zone_that_is_not_utc(case: ClockCase, now: datetime) -> None:
    start = case.start(now)
    assert start > now
    assert start.astimezone(ZoneInfo(case.zone)).utcoffset()


@pytest.mark.parametrize("now", NOW)
def test_no_two_cases_have_the_same_offset_from_utc(now: datetime) -> None:
    offsets = [case.start(now).astimezone(ZoneInfo(case.zone)).utcoffset() for case in CASES]
    assert len(set(offsets)) == len(CASES)


@pytest.mark.parametrize("now", NOW)
def test_the_suite_runs_a_month_ahead_and_on_a_day_that_the_next_month_does_not_have(now: datetime) -> None:
    assert BY_NAME["month"].start(now).month != now.month
    day = (BY_NAME["month-end"].start(now) + JUST_AFTER).date()
    assert (day.month, day.day) == (1, 31)


@pytest.mark.parametrize("now", NOW)
def test_the_suite_crosses_the_end_of_a_year(now: datetime) -> None:
    start = BY_NAME["year-end"].start(now)
    assert (start + JUST_AFTER).year == (start + JUST_BEFORE).year + 1


@pytest.mark.parametrize("now", NOW)
def test_the_suite_crosses_into_a_leap_day(now: datetime) -> None:
    start = BY_NAME["leap-day"].start(now)
    assert (start + JUST_BEFORE).day == 28
    day = (start + JUST_AFTER).date()
    assert day == date(day.year, 2, 29)


@pytest.mark.parametrize("now", NOW)
def test_the_suite_crosses_the_change_to_summer_time(now: datetime) -> None:
    case = BY_NAME["summer-time"]
    before, after = ((case.start(now) + passed).astimezone(ZoneInfo(case.zone)) for passed in (JUST_BEFORE, JUST_AFTER))
    assert (before.utcoffset(), after.utcoffset()) == (timedelta(hours=1), timedelta(hours=2))
