"""CreateOrganizationGroup: an admin adds a group."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.groups.group_checks import GroupChecks
from application.groups.ports import OrganizationGroupStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.organization_group import GroupClaim, OrganizationGroup
from domain.identity.permission import Permission
from domain.ids import GroupId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOrganizationGroupCommand:
    """`claims` name their identity providers by id or name."""

    principal: Principal
    name: str
    members: tuple[UserId, ...] = ()
    claims: tuple[GroupClaim, ...] = ()


class CreateOrganizationGroup:
    """Rules:
    - Admins create groups of their organization; `GroupChecks` has the rules of names, members and
      claims.
    - People whose claims match become members at their next sign-in.
    - Not in the name of another person: a group decides who approves and who sees a team's things.
    - Audited as `group.created`.

    Raises: ServiceError role_insufficient, group_invalid, group_name_taken, too_many_groups,
    impersonation_refused.
    """

    def __init__(
        self, *, organization_groups: OrganizationGroupStore, checks: GroupChecks, clock: Clock, ids: IdSource
    ) -> None:
        self._groups = organization_groups
        self._checks = checks
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateOrganizationGroupCommand) -> OrganizationGroup:
        principal, now = command.principal, self._clock.now()
        principal.require(Permission.GROUPS_MANAGE)
        principal.require_self()
        organization_id = principal.organization_id
        group = OrganizationGroup(
            id=GroupId(self._ids.new("grp")),
            organization_id=organization_id,
            name=command.name,
            members=tuple(sorted(set(command.members))),
            claims=await self._checks.resolved(organization_id, command.claims),
            created_at=now,
            changed_at=now,
        )
        await self._checks.require_users(organization_id, command.members, "members")
        await self._checks.require_free(organization_id, group.name)
        audit = audit_entry(
            principal,
            AuditAction.GROUP_CREATED,
            group.id,
            ids=self._ids,
            at=now,
            details={"name": group.name, "members": len(group.members), "claims": len(group.claims)},
        )
        await self._groups.add(group, audit)
        return group
