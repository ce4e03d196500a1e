"""DeleteOrganizationGroup: an admin deletes a group."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.groups.group_checks import GroupChecks
from application.groups.ports import OrganizationGroupStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOrganizationGroupCommand:
    """`group` is its id or its name."""

    principal: Principal
    group: str


class DeleteOrganizationGroup:
    """Rules:
    - Admins delete groups of their organization. A group that a directory manages is refused, and
      so is who acts as another user.
    - Its members stay users. Audited as `group.deleted`.

    Raises: ServiceError role_insufficient, group_not_found, group_managed_by_directory,
    impersonation_refused.
    """

    def __init__(
        self, *, organization_groups: OrganizationGroupStore, checks: GroupChecks, clock: Clock, ids: IdSource
    ) -> None:
        self._groups = organization_groups
        self._checks = checks
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteOrganizationGroupCommand) -> None:
        principal = command.principal
        principal.require(Permission.GROUPS_MANAGE)
        principal.require_self()
        group_id = await self._checks.own_group(principal.organization_id, command.group)
        audit = audit_entry(principal, AuditAction.GROUP_DELETED, group_id, ids=self._ids, at=self._clock.now())
        teams = principal.visible_teams
        if not await self._groups.delete(principal.organization_id, group_id, audit, teams=teams):
            raise not_found("group", command.group)
