"""CreateScimToken: let the directory of an identity provider manage its people."""

import secrets
from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.identity.ports import IdentityProviderStore
from application.identity.provider_lookup import existing_identity_provider
from application.provisioning.ports import ScimTokens
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal, hash_token
from domain.identity.provisioning import SCIM_PREFIX
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateScimTokenCommand:
    """`provider` is its id or its name."""

    principal: Principal
    provider: str


class CreateScimToken:
    """Rules:
    - Admins create it. For an identity provider of the installation that requires a platform key.
    - The token is returned once; only its hash is stored. It replaces the one before at once.
    - Audited as `identity_provider.scim_token_created`.

    Raises: ServiceError role_insufficient, platform_key_required, identity_provider_not_found,
    impersonation_refused.
    """

    def __init__(
        self, *, providers: IdentityProviderStore, scim_tokens: ScimTokens, clock: Clock, ids: IdSource
    ) -> None:
        self._providers = providers
        self._tokens = scim_tokens
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateScimTokenCommand) -> str:
        principal = command.principal
        principal.require(Role.ADMIN)
        principal.require_self()
        provider = await existing_identity_provider(self._providers, principal.organization_id, command.provider)
        if provider.installation:
            principal.require_platform()
        token, now = SCIM_PREFIX + secrets.token_urlsafe(32), self._clock.now()
        audit = audit_entry(
            principal,
            AuditAction.SCIM_TOKEN_CREATED,
            provider.id,
            ids=self._ids,
            at=now,
            details={"name": provider.name},
        )
        await self._tokens.set_token(provider, hash_token(token), now, audit)
        return token
