"""RevokeApiKey: invalidate a key, immediately and permanently, and end what it started."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.identity.assignable_roles import AssignableRoles
from application.identity.ports import IdentityStore
from application.identity.token_cache import TokenCache
from application.revocation.stop_work_of_key import StopWorkOfKey
from application.revocation.stopped_work import StoppedWork
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import conflict, existing
from domain.identity.api_key import Principal
from domain.identity.custom_role import permissions_held, require_within_own
from domain.identity.permission import Permission
from domain.ids import ApiKeyId


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeApiKeyCommand:
    principal: Principal
    key_id: ApiKeyId


class RevokeApiKey:
    """Rules:
    - Requires `keys.manage`, and all that the key may do; revoking a platform key requires a
      platform key.
    - A key cannot revoke itself, so that no admin locks themselves out by mistake. If no admin key
      is left (the last one expires, or two revoke each other), a platform key creates one.
    - What the key started ends with it (`StopWorkOfKey`). If that fails, the key is revoked all the
      same, and revoking it again ends the rest.
    - Audited as `key.revoked`, once.

    Raises: ServiceError role_insufficient, role_beyond_own, platform_key_required,
    api_key_not_found, api_key_in_use.
    """

    def __init__(
        self,
        *,
        identities: IdentityStore,
        assignable: AssignableRoles,
        cache: TokenCache,
        work: StopWorkOfKey,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._identities = identities
        self._assignable = assignable
        self._cache = cache
        self._work = work
        self._clock = clock
        self._ids = ids

    async def execute(self, command: RevokeApiKeyCommand) -> StoppedWork:
        principal = command.principal
        principal.require(Permission.KEYS_MANAGE)
        if command.key_id == principal.key_id:
            raise conflict("api_key_in_use", "A key cannot revoke itself; use another admin key.")
        key = existing(await self._identities.key(principal.organization_id, command.key_id), "API key", command.key_id)
        if key.platform:
            principal.require_platform()
        roles = await self._assignable.all(principal.organization_id)
        require_within_own(principal, permissions_held(roles, key.role, key.custom_role))
        if key.revoked_at is None:
            await self._revoke(principal, command.key_id)
        return await self._work.execute(principal, command.key_id)

    async def _revoke(self, principal: Principal, key_id: ApiKeyId) -> None:
        audit = audit_entry(principal, AuditAction.KEY_REVOKED, key_id, ids=self._ids, at=self._clock.now())
        try:
            await self._identities.revoke_key(principal.organization_id, key_id, audit)
        finally:
            self._cache.forget(key_id)
