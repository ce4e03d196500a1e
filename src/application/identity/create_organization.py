"""CreateOrganization: create a tenant with its first admin key. The key's token is shown only
once."""

from dataclasses import dataclass, field

from application.identity.admin_key import new_admin_key
from application.identity.create_api_key import CreatedApiKey
from application.identity.organization_entries import organization_entries
from application.identity.ports import OrganizationStore
from application.identity.update_organization import refuse_unusable
from application.policy.policy_checks import PolicyChecks
from application.system.changes import Changes, with_changes
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.role import Role
from domain.ids import OrganizationId
from domain.mcp.kinds import NEW_ORGANIZATION_KINDS
from domain.runs.limits import LimitSettings

FIRST_ADMIN_KEY = "first admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOrganizationCommand:
    """The name, and settings that differ from the defaults."""

    principal: Principal
    name: str
    settings: Changes = field(default_factory=dict)
    limits: LimitSettings = LimitSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedOrganization:
    organization: Organization
    admin_key: CreatedApiKey


class CreateOrganization:
    """Rules:
    - Requires a platform key.
    - Names need not be unique: a refusal would reveal other organizations.
    - Its MCP servers are remote, or packages of registries, unless `mcp_kinds` says otherwise.
    - The first key has the role admin and no platform rights.
    - Audited as `organization.created` and `key.created` in the trails of both organizations.

    Raises: ServiceError role_insufficient, platform_key_required, organization_invalid.
    """

    def __init__(
        self, *, organizations: OrganizationStore, policies: PolicyChecks, clock: Clock, ids: IdSource
    ) -> None:
        self._organizations = organizations
        self._policies = policies
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateOrganizationCommand) -> CreatedOrganization:
        principal = command.principal
        principal.require(Role.ADMIN)
        principal.require_platform()
        now = self._clock.now()
        plain = Organization(
            id=OrganizationId(self._ids.new("org")),
            name=command.name,
            created_at=now,
            mcp_kinds=NEW_ORGANIZATION_KINDS,
        )
        organization = with_changes(plain, {**command.settings, "limits": command.limits})
        refuse_unusable(organization, self._policies)
        admin_key = new_admin_key(organization.id, FIRST_ADMIN_KEY, ids=self._ids, at=now)
        key = admin_key.key
        created = organization_entries(
            principal,
            AuditAction.ORGANIZATION_CREATED,
            organization.id,
            ids=self._ids,
            at=now,
            details={"name": organization.name},
        )
        keyed = organization_entries(
            principal,
            AuditAction.KEY_CREATED,
            organization.id,
            ids=self._ids,
            at=now,
            details={"name": key.name, "role": key.role.value},
            resource=key.id,
        )
        await self._organizations.add(organization, key, (*created, *keyed))
        return CreatedOrganization(organization=organization, admin_key=admin_key)
