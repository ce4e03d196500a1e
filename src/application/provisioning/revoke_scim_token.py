"""RevokeScimToken: the directory of an identity provider manages its people no more."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.identity.ports import IdentityProviderStore
from application.identity.provider_lookup import existing_identity_provider
from application.provisioning.ports import ScimTokens
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeScimTokenCommand:
    """`provider` is its id or its name."""

    principal: Principal
    provider: str


class RevokeScimToken:
    """Rules:
    - Admins revoke it; for an identity provider of the installation that requires a platform key.
    - People and groups stay as they are.
    - Audited as `identity_provider.scim_token_revoked`.

    Raises: ServiceError role_insufficient, platform_key_required, identity_provider_not_found,
    scim_token_not_found.
    """

    def __init__(
        self, *, providers: IdentityProviderStore, scim_tokens: ScimTokens, clock: Clock, ids: IdSource
    ) -> None:
        self._providers = providers
        self._tokens = scim_tokens
        self._clock = clock
        self._ids = ids

    async def execute(self, command: RevokeScimTokenCommand) -> None:
        principal = command.principal
        principal.require(Role.ADMIN)
        provider = await existing_identity_provider(self._providers, principal.organization_id, command.provider)
        if provider.installation:
            principal.require_platform()
        audit = audit_entry(
            principal,
            AuditAction.SCIM_TOKEN_REVOKED,
            provider.id,
            ids=self._ids,
            at=self._clock.now(),
            details={"name": provider.name},
        )
        if not await self._tokens.revoke_token(provider, audit):
            raise not_found("SCIM token", provider.name)
