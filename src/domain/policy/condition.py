"""Conditions of rules: who acts, and when."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from domain.errors import Violation, invalid
from domain.json_value import JsonObject
from domain.policy.acting_person import ActingPerson
from domain.policy.approvers import MAX_APPROVERS, people_violations

DEFAULT_TIME_ZONE = "UTC"
MAX_HOURS = len("00:00-00:00")
MAX_TIME_ZONE = 64
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_ZONE_NAME = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")


class Day(StrEnum):
    """The days of a week."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


_DAYS = tuple(Day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What conditions look at.

    - `person` is who acts; None if that or their groups are not known, as in the run of a schedule.
    - `owner` is the person who created the acting API key.
    """

    at: datetime
    person: ActingPerson | None = None
    owner: ActingPerson | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Restricts a rule to people and times; at least one of them.

    - It holds for the `people` (ids of users or API keys) and the members of `groups`, by name;
      without both, for all.
    - `hours` such as `08:00-18:00` exclude the end. Hours that end after midnight belong to the day
      on which they begin.
    - `hours` and `days` are those of `time_zone`, by default UTC.
    """

    people: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    hours: str | None = None
    days: tuple[Day, ...] = ()
    time_zone: str | None = None

    def __post_init__(self) -> None:
        wrong = [*people_violations("when", self.people, self.groups), *self._wrong_times()]
        if len(self.people) + len(self.groups) > MAX_APPROVERS:
            wrong.append(Violation(path="when", message=f"must name at most {MAX_APPROVERS} people and groups"))
        if not (self.people or self.groups or self.hours is not None or self.days):
            wrong.append(Violation(path="when", message="must name people, groups, hours or days"))
        if wrong:
            raise invalid("tool_policy_invalid", "The tool policy is not valid.", *wrong)

    def _wrong_times(self) -> Iterator[Violation]:
        if self.hours is not None:
            found = _HOURS.fullmatch(self.hours)
            if found is None:
                yield Violation(path="when.hours", message="must be two times of a day, such as 08:00-18:00")
            elif found.group(1, 2) == found.group(3, 4):
                yield Violation(path="when.hours", message="must begin and end at different times")
        if len(set(self.days)) != len(self.days):
            yield Violation(path="when.days", message="has a day twice")
        if self.time_zone is not None:
            if _zone(self.time_zone) is None:
                yield Violation(path="when.time_zone", message="is no time zone, such as Europe/Berlin or UTC")
            elif self.hours is None and not self.days:
                yield Violation(path="when.time_zone", message="belongs to hours or days")

    def unmet(self, now: Circumstances, *, permits: bool) -> str | None:
        """Why the condition does not hold; None if it holds. `permits` is whether its rule allows
        calls.

        - Who is not known fails closed: a rule that permits does not hold, and any other one does.
        - A key is also the person who created it where the rule restricts, and only itself where
          the rule permits.
        """
        return self._other_time(now.at) or self._other_person(now, permits=permits)

    def _other_person(self, now: Circumstances, *, permits: bool) -> str | None:
        if not (self.people or self.groups):
            return None
        person = now.person
        if person is None:
            return "it is not known who acts, or in which groups they are" if permits else None
        meant = (person,) if permits or now.owner is None else (person, now.owner)
        if any(each.id in self.people or not each.groups.isdisjoint(self.groups) for each in meant):
            return None
        return f"{person.id} is not one of its people, nor in one of its groups"

    def _other_time(self, at: datetime) -> str | None:
        if self.hours is None and not self.days:
            return None
        name = self.time_zone or DEFAULT_TIME_ZONE
        local = at.astimezone(_zone(name))
        began = local
        if self.hours is not None:
            first, last = map(time.fromisoformat, self.hours.split("-"))
            clock = local.time()
            is_after_midnight = last < first and clock < last
            if is_after_midnight:
                began = local - timedelta(days=1)
            elif clock < first or (first < last <= clock):
                return f"it is {local:%H:%M} in {name}, outside {self.hours}"
        day = _DAYS[began.weekday()]
        return None if not self.days or day in self.days else f"{day} in {name} is not one of its days"

    def as_json(self) -> JsonObject:
        """Only what is stated."""
        stated: JsonObject = {}
        for name, values in (("people", self.people), ("groups", self.groups), ("days", self.days)):
            if values:
                stated[name] = [str(each) for each in values]
        for name, value in (("hours", self.hours), ("time_zone", self.time_zone)):
            if value is not None:
                stated[name] = value
        return stated


@lru_cache(maxsize=1_000)
def _zone(name: str) -> ZoneInfo | None:
    if len(name) > MAX_TIME_ZONE or _ZONE_NAME.fullmatch(name) is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError for a directory of zones, such as Europe
        return None
