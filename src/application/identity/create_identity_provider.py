"""CreateIdentityProvider: let people of an OpenID Connect issuer sign in."""

from dataclasses import dataclass, field

from application.audit.entries import audit_entry
from application.identity.assignable_roles import AssignableRoles
from application.identity.ports import IdentityProviderStore, OrganizationStore
from application.system.ports import Clock, IdSource, OutboundPolicy
from domain.audit.event import AuditAction
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.identity_provider import OPENID, IdentityProvider, RoleRule
from domain.identity.role import Role
from domain.ids import IdentityProviderId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIdentityProviderCommand:
    """Fields of `IdentityProvider`."""

    principal: Principal
    name: str
    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    cli_client_id: str | None = None
    scopes: tuple[str, ...] = (OPENID, "profile", "email")
    audiences: tuple[str, ...] = ()
    rules: tuple[RoleRule, ...] = ()
    installation: bool = False


class CreateIdentityProvider:
    """Rules:
    - Admins add identity providers to their organization, as themselves. One of the installation
      requires a platform key.
    - The client secret cannot be read back. The issuer passes the egress guard, here and with every
      request.
    - Organizations and custom roles that rules name exist.
    - No person is admitted without a rule, and no role is the default.
    - Audited as `identity_provider.created`, without the secret.

    Raises: ServiceError role_insufficient, platform_key_required, identity_provider_invalid,
    role_invalid, identity_provider_exists, identity_provider_audience_taken,
    too_many_identity_providers.
    """

    def __init__(
        self,
        *,
        providers: IdentityProviderStore,
        organizations: OrganizationStore,
        assignable: AssignableRoles,
        outbound: OutboundPolicy,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._providers = providers
        self._organizations = organizations
        self._assignable = assignable
        self._outbound = outbound
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateIdentityProviderCommand) -> IdentityProvider:
        principal = command.principal
        principal.require(Role.ADMIN)
        principal.require_self()
        if command.installation:
            principal.require_platform()
        now = self._clock.now()
        provider = IdentityProvider(
            id=IdentityProviderId(self._ids.new("idp")),
            organization_id=principal.organization_id,
            name=command.name,
            issuer=command.issuer,
            client_id=command.client_id,
            client_secret=command.client_secret,
            cli_client_id=command.cli_client_id,
            scopes=command.scopes,
            audiences=command.audiences,
            rules=command.rules,
            installation=command.installation,
            created_at=now,
        )
        require_reachable(self._outbound, provider)
        await require_organizations(self._organizations, provider)
        await require_roles(self._assignable, provider)
        audit = audit_entry(
            principal,
            AuditAction.IDENTITY_PROVIDER_CREATED,
            provider.id,
            ids=self._ids,
            at=now,
            details={"name": provider.name, "issuer": provider.issuer, "installation": provider.installation},
        )
        await self._providers.add(provider, audit)
        return provider


def require_reachable(outbound: OutboundPolicy, provider: IdentityProvider) -> None:
    """Raises INVALID `identity_provider_invalid` if the egress guard blocks the issuer."""
    refusal = outbound.refusal(provider.issuer)
    if refusal is not None:
        violation = Violation(path="issuer", message=refusal)
        raise invalid("identity_provider_invalid", "The identity provider is not valid.", violation)


async def require_organizations(organizations: OrganizationStore, provider: IdentityProvider) -> None:
    """Raises INVALID `identity_provider_invalid` if a rule names an organization that does not
    exist."""
    named = {rule.organization_id for rule in provider.rules} - {None, provider.organization_id}
    unknown = {each for each in named if each is not None and await organizations.get(each) is None}
    violations = [
        Violation(path=f"rules.{index}.organization_id", message="names no organization")
        for index, rule in enumerate(provider.rules)
        if rule.organization_id in unknown
    ]
    if violations:
        raise invalid("identity_provider_invalid", "The identity provider is not valid.", *violations)


async def require_roles(assignable: AssignableRoles, provider: IdentityProvider) -> None:
    """Raises INVALID `role_invalid` if a rule names a custom role that its organization does not
    have."""
    for index, rule in enumerate(provider.rules):
        if rule.custom_role is not None:
            organization_id = rule.organization_id or provider.organization_id
            path = f"rules.{index}.custom_role"
            await assignable.permissions(organization_id, rule.role, rule.custom_role, path)
