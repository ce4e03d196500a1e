"""UpdateOrganization: change the settings of an organization."""

from dataclasses import dataclass, field, fields, replace

from application.identity.organization_entries import organization_entries
from application.identity.ports import OrganizationStore
from application.policy.policy_checks import PolicyChecks
from application.system.changes import Changes, with_changes
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import existing, invalid, require_version
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.permission import Permission
from domain.ids import OrganizationId
from domain.json_value import JsonObject, JsonValue

_OF_PLATFORM = ("mcp_kinds", "queue_weight", "max_queued", "max_running")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOrganizationCommand:
    """`changes` are fields of `Organization` without limits; `limits` are fields of
    `LimitSettings`.

    `expected_version` is the version that the client last read; None skips the check.
    `organization_id` None means the caller's own.
    """

    principal: Principal
    organization_id: OrganizationId | None = None
    changes: Changes = field(default_factory=dict)
    limits: Changes = field(default_factory=dict)
    expected_version: int | None = None


class UpdateOrganization:
    """Rules:
    - Admins change their own organization; another one requires a platform key.
    - `mcp_kinds`, `queue_weight`, `max_queued` and `max_running` require a platform key.
    - Changes apply at once: after MCP is disabled the next call is refused, also in running runs.
    - A request that changes nothing creates no version and no audit entry.
    - Audited as `organization.updated` with the changed values.

    Raises: ServiceError role_insufficient, platform_key_required, organization_not_found,
    organization_invalid, version_conflict.
    """

    def __init__(
        self, *, organizations: OrganizationStore, policies: PolicyChecks, clock: Clock, ids: IdSource
    ) -> None:
        self._organizations = organizations
        self._policies = policies
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateOrganizationCommand) -> Organization:
        principal = command.principal
        principal.require(Permission.ORGANIZATION_MANAGE)
        if command.organization_id is not None:
            principal.require_platform()
        organization_id = command.organization_id or principal.organization_id
        organization = existing(await self._organizations.get(organization_id), "organization", organization_id)
        require_version("organization", organization.version, expected=command.expected_version)
        limits = with_changes(organization.limits, command.limits)
        changed = with_changes(organization, {**command.changes, "limits": limits})
        if changed == organization:
            return organization
        if any(getattr(changed, name) != getattr(organization, name) for name in _OF_PLATFORM):
            principal.require_platform()
        refuse_unusable(changed, self._policies)
        changed = replace(changed, version=organization.version + 1)
        details = _details(organization, changed)
        audit = organization_entries(
            principal,
            AuditAction.ORGANIZATION_UPDATED,
            organization.id,
            ids=self._ids,
            at=self._clock.now(),
            details={"version": changed.version, **details},
        )
        await self._organizations.save(changed, expected_version=organization.version, audit=audit)
        return changed


def refuse_unusable(organization: Organization, policies: PolicyChecks) -> None:
    """Raises INVALID `organization_invalid` for unusable schemas in its policies."""
    wrong = policies.violations(organization.tool_policies)
    if wrong:
        raise invalid("organization_invalid", "The organization is not valid.", *wrong)


def _details(before: Organization, after: Organization) -> JsonObject:
    """The names of the changed fields, with values where they are short."""
    shown: JsonObject = {"name": after.name, "mcp_enabled": after.mcp_enabled}
    names = [
        field.name
        for field in fields(before)
        if field.name != "version" and getattr(before, field.name) != getattr(after, field.name)
    ]
    details: JsonObject = {name: value for name, value in shown.items() if name in names}
    others: list[JsonValue] = [name for name in names if name not in shown]
    return {**details, "changed": others} if others else details
