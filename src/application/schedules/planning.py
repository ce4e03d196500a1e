"""The next run time of a schedule."""

from datetime import datetime

from application.schedules.ports import CronTimes
from domain.errors import Violation
from domain.schedules.schedule import schedule_invalid


def next_fire(times: CronTimes, cron: str, timezone: str, *, enabled: bool, after: datetime) -> datetime | None:
    """The first time after `after`; None while paused. Raises INVALID `schedule_invalid` for an
    expression without a next time."""
    planned = times.next_after(cron, timezone, after)
    if planned is None:
        raise schedule_invalid(Violation(path="cron", message="never fires"))
    return planned if enabled else None
