"""ActingPeople: the people behind callers and starters, with the groups that they are in now."""

from collections.abc import Collection

from application.identity.ports import IdentityStore, Memberships
from domain.identity.api_key import Principal, person_of
from domain.identity.impersonation import who_acts
from domain.ids import ApiKeyId, OrganizationId
from domain.policy.acting_person import ActingPerson

_KEY = "key_"


class ActingPeople:
    """Reads memberships each time: who left a group is out of it with the next decision."""

    def __init__(self, *, memberships: Memberships, identities: IdentityStore) -> None:
        self._memberships = memberships
        self._identities = identities

    async def calling(self, principal: Principal) -> ActingPerson:
        """The caller of a request."""
        return ActingPerson(
            id=principal.key_id,
            person_id=principal.acts_for,
            groups=await self._groups(principal.organization_id, principal.key_id),
        )

    async def named(self, organization_id: OrganizationId, actor: ApiKeyId) -> ActingPerson:
        """Who started a run or opened a gateway session: a user, an API key, or a schedule, which
        is no person."""
        person_id = person_of(actor)
        if actor.startswith(_KEY):
            key = await self._identities.key(organization_id, actor)
            person_id = None if key is None else key.person_id
        return ActingPerson(id=actor, person_id=person_id, groups=await self._groups(organization_id, actor))

    async def starters(
        self, organization_id: OrganizationId, actors: Collection[ApiKeyId]
    ) -> dict[ApiKeyId, ActingPerson]:
        """Who started each of many, to compare people: without their groups, and with one read for
        all keys. Of an impersonation, who acted."""
        acted = {actor: who_acts(actor) for actor in actors}
        keys = [each for each in acted.values() if each.startswith(_KEY)]
        creators = await self._identities.creators(organization_id, keys)
        return {
            actor: ActingPerson(id=each, person_id=person_of(each) or creators.get(each))
            for actor, each in acted.items()
        }

    async def _groups(self, organization_id: OrganizationId, actor: ApiKeyId) -> frozenset[str]:
        user_id = person_of(actor)
        return frozenset() if user_id is None else await self._memberships.groups_of(organization_id, user_id)
