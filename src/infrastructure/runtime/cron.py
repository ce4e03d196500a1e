"""Times of cron expressions by cronsim: five fields, as in Debian's cron, in IANA time zones."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from domain.errors import Violation
from domain.schedules.schedule import schedule_invalid

MAX_EXPRESSION = 200
_FIELDS = (
    "minute (0-59)",
    "hour (0-23)",
    "day of month (1-31, L)",
    "month (1-12, JAN-DEC)",
    "day of week (0-7, SUN-SAT)",
)
_FIVE = "must have five fields: minute, hour, day of month, month, day of week"
_ZONE_NAME = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,3}")
_ANY_DAY = datetime(2026, 1, 1, tzinfo=UTC)


class CronsimTimes:
    def faults(self, cron: str, timezone: str) -> tuple[Violation, ...]:
        wrong = []
        fault = _expression_fault(cron)
        if fault is not None:
            wrong.append(Violation(path="cron", message=fault))
        if _zone(timezone) is None:
            wrong.append(
                Violation(path="timezone", message="must name an IANA time zone, such as Europe/Lisbon or UTC")
            )
        return tuple(wrong)

    def next_after(self, cron: str, timezone: str, after: datetime) -> datetime | None:
        zone = _zone(timezone)
        if zone is None or _expression_fault(cron) is not None:
            raise schedule_invalid(*self.faults(cron, timezone))
        for local in CronSim(cron, after.astimezone(zone)):
            # A fixed time in a repeated hour is its first occurrence, which may be over already.
            moment = local.astimezone(UTC)
            if moment > after:
                return moment
        return None


def _zone(name: str) -> ZoneInfo | None:
    if _ZONE_NAME.fullmatch(name) is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError for a directory of zones, such as Europe
        return None


def _expression_fault(cron: str) -> str | None:
    parts = cron.split()
    if len(parts) != len(_FIELDS):
        return _FIVE
    if len(cron) > MAX_EXPRESSION:
        return f"must have up to {MAX_EXPRESSION} characters"
    wrong = [
        name
        for place, name in enumerate(_FIELDS)
        if not _is_readable(" ".join(part if at == place else "*" for at, part in enumerate(parts)))
    ]
    if wrong:
        return f"cannot be read; look at {', '.join(wrong)}"
    return None if _is_readable(cron) else "names a day that no month in it has"


def _is_readable(cron: str) -> bool:
    try:
        CronSim(cron, _ANY_DAY)
    except CronSimError:
        return False
    return True
