"""UpdateIdentityProvider: change the registration or the rules of an identity provider."""

from dataclasses import dataclass, field, replace

from application.audit.entries import audit_entry
from application.identity.assignable_roles import AssignableRoles
from application.identity.create_identity_provider import require_organizations, require_reachable, require_roles
from application.identity.ports import IdentityProviderStore, OrganizationStore
from application.identity.provider_lookup import existing_identity_provider
from application.identity.token_cache import TokenCache
from application.system.changes import Changes, changed_fields, with_changes
from application.system.ports import Clock, IdSource, OutboundPolicy
from domain.audit.event import AuditAction
from domain.errors import Violation, invalid, require_version
from domain.identity.api_key import Principal
from domain.identity.identity_provider import IdentityProvider
from domain.identity.role import Role
from domain.json_value import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateIdentityProviderCommand:
    """`changes` are fields of `IdentityProvider`. `expected_version` is what the client last read;
    None skips the check. `provider` is its id or its name."""

    principal: Principal
    provider: str
    changes: Changes = field(default_factory=dict, repr=False)
    expected_version: int | None = None


class UpdateIdentityProvider:
    """Rules:
    - Admins change identity providers of their organization. Changing one of the installation, or
      making one so, requires a platform key.
    - The issuer stays: a stored client secret is only ever sent to the issuer it was given for.
    - Changed rules decide with each further request that brings a token, and with the next sign-in.
      Sessions keep their role until then.
    - A change of nothing makes no version and no audit entry.
    - Audited as `identity_provider.updated` with the names of the changed fields.

    Raises: ServiceError role_insufficient, platform_key_required, identity_provider_not_found,
    version_conflict, and as CreateIdentityProvider.
    """

    def __init__(
        self,
        *,
        providers: IdentityProviderStore,
        organizations: OrganizationStore,
        assignable: AssignableRoles,
        outbound: OutboundPolicy,
        cache: TokenCache,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._providers = providers
        self._organizations = organizations
        self._assignable = assignable
        self._outbound = outbound
        self._cache = cache
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateIdentityProviderCommand) -> IdentityProvider:
        principal = command.principal
        principal.require(Role.ADMIN)
        principal.require_self()
        provider = await existing_identity_provider(self._providers, principal.organization_id, command.provider)
        require_version("identity provider", provider.version, expected=command.expected_version)
        changed = with_changes(provider, command.changes)
        if changed == provider:
            return provider
        if provider.installation or changed.installation:
            principal.require_platform()
        if changed.issuer != provider.issuer:
            violation = Violation(path="issuer", message="cannot be changed: add another identity provider")
            raise invalid("identity_provider_invalid", "The identity provider is not valid.", violation)
        require_reachable(self._outbound, changed)
        await require_organizations(self._organizations, changed)
        await require_roles(self._assignable, changed)
        names: list[JsonValue] = [*changed_fields(provider, changed)]
        changed = replace(changed, version=provider.version + 1)
        audit = audit_entry(
            principal,
            AuditAction.IDENTITY_PROVIDER_UPDATED,
            provider.id,
            ids=self._ids,
            at=self._clock.now(),
            details={"name": changed.name, "version": changed.version, "changed": names},
        )
        await self._providers.save(changed, expected_version=provider.version, audit=audit)
        self._cache.forget_all()
        return changed
