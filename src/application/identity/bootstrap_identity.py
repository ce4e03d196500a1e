"""BootstrapIdentity: the first start creates the organization `default` and a platform admin
key."""

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
    """The result of the first start. Only the hash of the token is stored."""

    organization: Organization
    key: ApiKey
    token: str = field(repr=False)


class BootstrapIdentity:
    """Runs at every start and creates the first organization if none exists.

    The token is drafted before its hash is stored and published afterwards. If a start crashes in
    between, the next one finds the draft, so access is never lost.
    """

    def __init__(self, *, identities: IdentityStore, first_key: FirstKey, clock: Clock, ids: IdSource) -> None:
        self._identities = identities
        self._first_key = first_key
        self._clock = clock
        self._ids = ids

    async def execute(self) -> BootstrappedIdentity | None:
        """The new organization, key and token; None after the first start. Raises UNAVAILABLE if
        the token cannot be stored."""
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
