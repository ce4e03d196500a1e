"""BootstrapIdentity: the first start makes the organization `default` and a platform admin key."""

from dataclasses import dataclass, field

from application.identity.ports import FirstKey, IdentityStore
from application.system.ports import Clock, IdSource
from domain.identity.api_key import ApiKey, hash_token
from domain.identity.organization import Organization
from domain.identity.role import Role
from domain.ids import ApiKeyId, OrganizationId

FIRST_ORGANIZATION = "default"
FIRST_KEY = "first start"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrappedIdentity:
    """What the first start made. The token is known here and nowhere else: only its hash is stored."""

    organization: Organization
    key: ApiKey
    token: str = field(repr=False)


class BootstrapIdentity:
    """Runs at every start and acts at the first one: as long as any organization exists, it changes nothing. The token
    is drafted before its hash is stored and kept after, so that a start that dies in between locks nobody out: the next one
    finds the draft."""

    def __init__(self, *, identities: IdentityStore, first_key: FirstKey, clock: Clock, ids: IdSource) -> None:
        self._identities = identities
        self._first_key = first_key
        self._clock = clock
        self._ids = ids

    async def execute(self) -> BootstrappedIdentity | None:
        """The new organization, key and token; None if this was not the first start. Raises UNAVAILABLE when the token
        cannot be kept."""
        now = self._clock.now()
        token = self._first_key.draft(self._ids.new_token())
        organization = Organization(id=OrganizationId(self._ids.new("org")), name=FIRST_ORGANIZATION, created_at=now)
        key = ApiKey(
            id=ApiKeyId(self._ids.new("key")),
            organization_id=organization.id,
            name=FIRST_KEY,
            role=Role.ADMIN,
            platform=True,
            token_hash=hash_token(token),
            created_at=now,
        )
        if not await self._identities.bootstrap(organization, key):
            if await self._identities.key_by_hash(key.token_hash) is None:
                self._first_key.discard()
            else:
                self._first_key.keep()
            return None
        self._first_key.keep()
        return BootstrappedIdentity(organization=organization, key=key, token=token)
