"""ReadCircumstances: who acts, and when, for policies with conditions."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from application.identity.acting_people import ActingPeople
from application.system.ports import Clock
from domain.errors import ServiceError, Violation, invalid
from domain.ids import ApiKeyId, OrganizationId
from domain.policy.condition import Circumstances

logger = logging.getLogger(__name__)

_PEOPLE = ("usr_", "key_")
_FIRST_YEAR, _LAST_YEAR = 1970, 9000


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """Who started a run, opened a gateway session, or asks; and another time than now, for
    explanations. Without a zone it is UTC."""

    actor: ApiKeyId | None = None
    at: datetime | None = None


UNKNOWN = Acting()


class ReadCircumstances:
    """Rules:
    - Memberships are read each time: who left a group is out of it with the next decision.
    - Schedules are no people. They, and people whose groups cannot be read, are not known:
      conditions fail closed.
    """

    def __init__(self, *, people: ActingPeople, clock: Clock) -> None:
        self._people = people
        self._clock = clock

    async def of(self, organization_id: OrganizationId, acting: Acting) -> Circumstances:
        """Raises INVALID `time_invalid` for a year that not every time zone can show."""
        at = acting.at or self._clock.now()
        if not _FIRST_YEAR <= at.year <= _LAST_YEAR:
            wrong = Violation(path="at", message=f"must be in the years {_FIRST_YEAR} to {_LAST_YEAR}")
            raise invalid("time_invalid", "The time cannot be used.", wrong)
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        if acting.actor is None or not acting.actor.startswith(_PEOPLE):
            return Circumstances(at=at)
        try:
            person = await self._people.named(organization_id, acting.actor)
            owner = None
            if person.person_id is not None and ApiKeyId(person.person_id) != person.id:
                owner = await self._people.named(organization_id, ApiKeyId(person.person_id))
        except ServiceError as error:
            logger.warning(
                "groups of a person cannot be read", extra={"organization_id": organization_id, "error": error.code}
            )
            return Circumstances(at=at)
        return Circumstances(at=at, person=person, owner=owner)
