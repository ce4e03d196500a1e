"""DeleteIdentityProvider: end the access of everybody who signed in with it."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.identity.ports import IdentityProviderStore
from application.identity.provider_lookup import existing_identity_provider
from application.identity.token_cache import TokenCache
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteIdentityProviderCommand:
    """`provider` is its id or its name."""

    principal: Principal
    provider: str


class DeleteIdentityProvider:
    """Rules:
    - Admins delete identity providers of their organization; one of the installation requires a
      platform key.
    - Its users are refused at once, and stay listed. Another provider of the same issuer admits
      them again.
    - What they started continues; deactivating a user ends it.
    - Audited as `identity_provider.deleted`.

    Raises: ServiceError role_insufficient, platform_key_required, identity_provider_not_found.
    """

    def __init__(self, *, providers: IdentityProviderStore, cache: TokenCache, clock: Clock, ids: IdSource) -> None:
        self._providers = providers
        self._cache = cache
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteIdentityProviderCommand) -> None:
        principal = command.principal
        principal.require(Role.ADMIN)
        provider = await existing_identity_provider(self._providers, principal.organization_id, command.provider)
        if provider.installation:
            principal.require_platform()
        audit = audit_entry(
            principal,
            AuditAction.IDENTITY_PROVIDER_DELETED,
            provider.id,
            ids=self._ids,
            at=self._clock.now(),
            details={"name": provider.name},
        )
        try:
            deleted = await self._providers.delete(principal.organization_id, provider.id, audit)
        finally:
            self._cache.forget_all()
        if not deleted:
            raise not_found("identity provider", command.provider)
