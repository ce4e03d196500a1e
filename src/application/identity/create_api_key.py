"""CreateApiKey: create a key for the caller's organization. Its token is shown only once."""

from dataclasses import dataclass, field
from datetime import datetime

from application.audit.entries import audit_entry
from application.identity.assignable_roles import AssignableRoles
from application.identity.ports import IdentityStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import Violation, invalid
from domain.identity.api_key import ApiKey, Principal, hash_token
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.ids import ApiKeyId
from domain.rate_limit import RateLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateApiKeyCommand:
    """`expires_at` is when the key becomes invalid. `rate_limit` applies in addition to the
    service's limit. `platform` keys also manage organizations. `custom_role` is in place of
    `role`."""

    principal: Principal
    name: str
    role: Role
    expires_at: datetime | None = None
    rate_limit: RateLimit | None = None
    platform: bool = False
    custom_role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedApiKey:
    """The key and its token, which cannot be read again."""

    key: ApiKey
    token: str = field(repr=False)


class CreateApiKey:
    """Rules:
    - Requires `keys.manage`. No key may do what its creator may not (`AssignableRoles`).
    - Only a hash of the token is stored.
    - Creating a platform key requires a platform key; its role is admin.
    - The key names the person who created it, who cannot approve with it what they started
      (`Decider`).
    - Audited as `key.created`.

    Raises: ServiceError role_insufficient, role_beyond_own, role_invalid, platform_key_required,
    api_key_invalid.
    """

    def __init__(self, *, identities: IdentityStore, assignable: AssignableRoles, clock: Clock, ids: IdSource) -> None:
        self._identities = identities
        self._assignable = assignable
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateApiKeyCommand) -> CreatedApiKey:
        command.principal.require(Permission.KEYS_MANAGE)
        command.principal.require_self()
        if command.platform:
            command.principal.require_platform()
        now = self._clock.now()
        _check(command, now)
        await self._assignable.require(command.principal, command.role, command.custom_role)
        token = self._ids.new_token()
        key = ApiKey(
            id=ApiKeyId(self._ids.new("key")),
            organization_id=command.principal.organization_id,
            name=command.name,
            role=command.role,
            custom_role=command.custom_role,
            platform=command.platform,
            token_hash=hash_token(token),
            created_at=now,
            expires_at=command.expires_at,
            rate_limit=command.rate_limit,
            person_id=command.principal.acts_for,
        )
        audit = audit_entry(
            command.principal,
            AuditAction.KEY_CREATED,
            key.id,
            ids=self._ids,
            at=now,
            details={
                "name": key.name,
                "role": key.custom_role or key.role.value,
                **({"platform": True} if key.platform else {}),
            },
        )
        await self._identities.add_key(key, audit)
        return CreatedApiKey(key=key, token=token)


def _check(command: CreateApiKeyCommand, now: datetime) -> None:
    wrong = []
    if not command.name.strip():
        wrong.append(Violation(path="name", message="must not be empty"))
    if command.expires_at is not None and command.expires_at <= now:
        wrong.append(Violation(path="expires_at", message="must lie in the future"))
    if command.platform and command.role is not Role.ADMIN:
        wrong.append(Violation(path="role", message="must be admin for a platform key"))
    if wrong:
        raise invalid("api_key_invalid", "The API key is not valid.", *wrong)
