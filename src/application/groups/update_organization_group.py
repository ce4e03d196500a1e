"""UpdateOrganizationGroup: an admin changes a group, its members or its claims."""

from dataclasses import dataclass, replace
from datetime import datetime

from application.audit.entries import audit_entry
from application.groups.group_checks import GroupChecks
from application.groups.ports import OrganizationGroupStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import require_version
from domain.identity.api_key import Principal
from domain.identity.organization_group import GroupClaim, OrganizationGroup
from domain.identity.permission import Permission
from domain.ids import UserId
from domain.json_value import JsonObject

_MAX_NAMED = 100
"""Users whom an audit entry names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOrganizationGroupCommand:
    """`group` is its id or its name. None changes nothing. `add_members` and `remove_members`
    change the members that are stored then. `expected_version` None skips the check."""

    principal: Principal
    group: str
    name: str | None = None
    members: tuple[UserId, ...] | None = None
    claims: tuple[GroupClaim, ...] | None = None
    add_members: tuple[UserId, ...] = ()
    remove_members: tuple[UserId, ...] = ()
    expected_version: int | None = None


class UpdateOrganizationGroup:
    """Rules:
    - Admins change groups of their organization; `GroupChecks` has the rules of names, members and
      claims.
    - A group that a directory manages is refused, and so is who acts as another user.
    - With other claims, members by claim are members again when they next sign in.
    - A change of nothing makes no version and no audit entry. Audited as `group.updated`, with the
      users added and removed.

    Raises: ServiceError role_insufficient, group_not_found, group_managed_by_directory,
    group_invalid, group_name_taken, version_conflict, impersonation_refused.
    """

    def __init__(
        self, *, organization_groups: OrganizationGroupStore, checks: GroupChecks, clock: Clock, ids: IdSource
    ) -> None:
        self._groups = organization_groups
        self._checks = checks
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateOrganizationGroupCommand) -> OrganizationGroup:
        principal, now = command.principal, self._clock.now()
        principal.require(Permission.GROUPS_MANAGE)
        principal.require_self()
        organization_id = principal.organization_id
        group_id = await self._checks.own_group(organization_id, command.group)
        if command.name is not None:
            await self._checks.require_free(organization_id, command.name, but=group_id)
        await self._checks.require_users(organization_id, command.members or (), "members")
        await self._checks.require_users(organization_id, command.add_members, "add_members")
        claims = None if command.claims is None else await self._checks.resolved(organization_id, command.claims)

        def decide(stored: OrganizationGroup) -> tuple[OrganizationGroup, AuditEvent] | None:
            require_version("group", stored.version, expected=command.expected_version)
            changed = _changed(stored, command, claims)
            if changed == stored:
                return None
            changed = replace(changed, version=stored.version + 1, changed_at=now)
            return changed, self._entry(principal, stored, changed, now)

        return await self._groups.change(organization_id, group_id, decide, teams=principal.visible_teams)

    def _entry(
        self, principal: Principal, before: OrganizationGroup, after: OrganizationGroup, now: datetime
    ) -> AuditEvent:
        was, members = set(before.members), set(after.members)
        details: JsonObject = {
            "name": after.name,
            "members": len(members),
            "claims": len(after.claims),
            "added": [*sorted(members - was)[:_MAX_NAMED]],
            "removed": [*sorted(was - members)[:_MAX_NAMED]],
        }
        return audit_entry(principal, AuditAction.GROUP_UPDATED, after.id, ids=self._ids, at=now, details=details)


def _changed(
    stored: OrganizationGroup, command: UpdateOrganizationGroupCommand, claims: tuple[GroupClaim, ...] | None
) -> OrganizationGroup:
    members = set(stored.members if command.members is None else command.members)
    members = (members | set(command.add_members)) - set(command.remove_members)
    changed = replace(stored, name=command.name or stored.name, members=tuple(sorted(members)))
    if claims is None or claims == stored.claims:
        return changed
    return replace(changed, claims=claims, members_by_claim=())
