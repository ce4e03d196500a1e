"""Times of cron expressions in time zones, above all where clocks are changed, and what cannot be
read."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import ServiceError
from infrastructure.runtime.cron import MAX_EXPRESSION, CronsimTimes

TIMES = CronsimTimes()
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata")


def shown(cron: str, zone: str, after: str, count: int = 3) -> list[str]:
    """The next times as a clock on the wall shows them, with its distance from UTC."""
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = []
    for _ in range(count):
        following = TIMES.next_after(cron, zone, moment)
        assert following is not None
        assert following.tzinfo is UTC
        found.append(following.astimezone(ZoneInfo(zone)).strftime("%d %H:%M%z"))
        moment = following
    return found


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        ("0 7 * * MON-FRI", "Europe/Lisbon", "2026-01-02T08:00", ["05 07:00+0000", "06 07:00+0000", "07 07:00+0000"]),
        ("*/20 9-10 * * *", "Asia/Kolkata", "2026-01-02T04:30", ["02 10:20+0530", "02 10:40+0530", "03 09:00+0530"]),
        ("0 0 L * *", "UTC", "2026-01-02T00:00", ["31 00:00+0000", "28 00:00+0000", "31 00:00+0000"]),
        ("0 12 13 * FRI", "UTC", "2026-01-02T12:00", ["09 12:00+0000", "13 12:00+0000", "16 12:00+0000"]),
        ("0 9 * * MON#1", "UTC", "2026-01-06T00:00", ["02 09:00+0000", "02 09:00+0000", "06 09:00+0000"]),
    ],
)
def test_an_expression_is_read_in_its_zone(cron: str, zone: str, after: str, expected: list[str]) -> None:
    assert shown(cron, zone, after) == expected


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        # Left out: 02:00 to 03:00 of 29 March. A fixed time in there fires at its end, and every
        # other day at its own.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00", ["28 02:30+0100", "29 03:00+0200", "30 02:30+0200"]),
        # At midnight in Cairo.
        ("0 0 * * *", "Africa/Cairo", "2026-04-22T23:00", ["24 01:00+0300", "25 00:00+0300", "26 00:00+0300"]),
        # Half an hour, on Lord Howe.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T16:00", ["04 02:30+1100", "05 02:15+1100", "06 02:15+1100"]),
        # What goes by the minute or the hour leaves it out too.
        ("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:20", ["29 01:30+0100", "29 03:00+0200", "29 03:30+0200"]),
        ("0 */2 * * *", "Europe/Berlin", "2026-03-28T22:30", ["29 00:00+0100", "29 04:00+0200", "29 06:00+0200"]),
    ],
)
def test_where_clocks_are_put_forward(cron: str, zone: str, after: str, expected: list[str]) -> None:
    assert shown(cron, zone, after) == expected


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        # Repeated: 02:00 to 03:00 of 25 October. A fixed time fires the first time round only.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T23:00", ["25 02:30+0200", "26 02:30+0100", "27 02:30+0100"]),
        ("30 1 * * *", "America/New_York", "2026-11-01T04:00", ["01 01:30-0400", "02 01:30-0500", "03 01:30-0500"]),
        # Also when somebody asks during the second time round.
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10", ["26 02:30+0100", "27 02:30+0100", "28 02:30+0100"]),
        # What goes by the minute or the hour fires both times.
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:20", ["25 02:30+0200", "25 02:00+0100", "25 02:30+0100"]),
        ("0 * * * *", "Europe/Berlin", "2026-10-24T23:30", ["25 02:00+0200", "25 02:00+0100", "25 03:00+0100"]),
    ],
)
def test_where_clocks_are_put_back(cron: str, zone: str, after: str, expected: list[str]) -> None:
    assert shown(cron, zone, after) == expected


CRONS = st.sampled_from(("30 2 * * *", "0 0 * * *", "*/7 * * * *", "15 */3 * * *", "0 1,2,3 * * SUN", "59 23 L * *"))
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001


@given(cron=CRONS, zone=st.sampled_from(ZONES), moment=MOMENTS)
@settings(max_examples=200, deadline=None)
def test_the_next_time_is_always_later_and_there_is_none_in_between(cron: str, zone: str, moment: datetime) -> None:
    following = TIMES.next_after(cron, zone, moment)
    assert following is not None
    assert following > moment
    assert (following.second, following.microsecond) == (0, 0)
    halfway = moment + (following - moment) / 2
    assert TIMES.next_after(cron, zone, halfway) == following


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "cron",
    [
        "",
        "* * * *",
        "* * * * * *",
        "@daily",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "* * * * MON#6",
        "*/0 * * * *",
        "5-1 * * * *",
        "-1 * * * *",
        ", * * * *",
        "\u0663 * * * *",
        "0 0 31 2 *",
        "0 0 30 2 *",
        f"{'1,' * MAX_EXPRESSION}1 * * * *",
        f"{'9' * 9_000} * * * *",
        "0 0 * * MON#1/2",
        "0 0 * * \u00b2L",
    ],
)
def test_an_expression_that_cannot_be_read_is_refused_by_its_name(cron: str) -> None:
    (fault,) = TIMES.faults(cron, "UTC")
    assert fault.path == "cron"
    with pytest.raises(ServiceError) as refused:
        TIMES.next_after(cron, "UTC", datetime(2026, 1, 1, tzinfo=UTC))
    assert (refused.value.code, refused.value.violations) == ("schedule_invalid", (fault,))


def test_the_field_that_cannot_be_read_is_named() -> None:
    (fault,) = TIMES.faults("0 25 * 13 *", "UTC")
    assert "hour" in fault.message
    assert "month (1-12" in fault.message
    assert "minute" not in fault.message


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "zone",
    ["", "Mars/Olympus", "Europe", "../../etc/passwd", "/etc/localtime", "Europe/Berlin\0", "UTC ", "A" * 300, "é/è"],
)
def test_a_zone_that_there_is_not_is_refused_by_its_name(zone: str) -> None:
    (fault,) = TIMES.faults("0 7 * * *", zone)
    assert fault.path == "timezone"


def test_both_faults_are_named_at_once() -> None:
    assert [fault.path for fault in TIMES.faults("* *", "Nowhere")] == ["cron", "timezone"]


@given(st.text(alphabet="0123456789*/,-#LW MONabc?", max_size=60))
@settings(max_examples=300, deadline=None)
def test_whatever_is_not_refused_has_a_time_or_none(cron: str) -> None:
    if not TIMES.faults(cron, "Europe/Berlin"):
        TIMES.next_after(cron, "Europe/Berlin", datetime(2026, 1, 1, tzinfo=UTC))


def test_an_expression_that_hardly_ever_fires_is_soon_given_up() -> None:
    assert TIMES.next_after("0 0 */31 2 MON#5", "UTC", datetime(2026, 1, 1, tzinfo=UTC)) is None
