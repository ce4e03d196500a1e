"""CreateGroup: a directory adds a group."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.provisioning.ports import GroupStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import Group, directory_principal, require_few_members
from domain.ids import GroupId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateGroupCommand:
    provider: IdentityProvider
    name: str
    external_id: str | None = None
    members: tuple[UserId, ...] = ()


class CreateGroup:
    """Rules:
    - Members are users of the organization of the identity provider; others are left out.
    - Audited as `group.created`.

    Raises: ServiceError group_name_taken (CONFLICT), too_many_members (INVALID).
    """

    def __init__(self, *, groups: GroupStore, clock: Clock, ids: IdSource) -> None:
        self._groups = groups
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateGroupCommand) -> Group:
        require_few_members(command.members)
        provider, now = command.provider, self._clock.now()
        group = Group(
            id=GroupId(self._ids.new("grp")),
            organization_id=provider.organization_id,
            provider_id=provider.id,
            name=command.name,
            external_id=command.external_id,
            members=command.members,
            created_at=now,
            changed_at=now,
        )
        audit = audit_entry(
            directory_principal(provider),
            AuditAction.GROUP_CREATED,
            group.id,
            ids=self._ids,
            at=now,
            details={"name": group.name, "members": len(group.members)},
        )
        return await self._groups.add_group(group, audit)
