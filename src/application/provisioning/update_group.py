"""UpdateGroup: a directory changes a group or its members."""

from dataclasses import dataclass, replace

from application.audit.entries import audit_entry
from application.provisioning.ports import GroupStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import require_version
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import Group, directory_principal, require_few_members
from domain.ids import GroupId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateGroupCommand:
    """All of the group as it is now. `expected_version` None skips the check."""

    provider: IdentityProvider
    group_id: GroupId
    name: str
    external_id: str | None = None
    members: tuple[UserId, ...] = ()
    expected_version: int | None = None


class UpdateGroup:
    """Rules:
    - Members are users of the organization of the identity provider; others are left out.
    - Rules decide by the new members with the next token and the next sign-in.
    - A change of nothing makes no version and no audit entry. Audited as `group.updated`.

    Raises: ServiceError group_not_found, group_name_taken, version_conflict, too_many_members.
    """

    def __init__(self, *, groups: GroupStore, clock: Clock, ids: IdSource) -> None:
        self._groups = groups
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateGroupCommand) -> Group:
        require_few_members(command.members)
        provider, now = command.provider, self._clock.now()

        def decide(stored: Group) -> tuple[Group, AuditEvent] | None:
            require_version("group", stored.version, expected=command.expected_version)
            changed = replace(
                stored, name=command.name, external_id=command.external_id, members=tuple(sorted(set(command.members)))
            )
            if changed == stored:
                return None
            audit = audit_entry(
                directory_principal(provider),
                AuditAction.GROUP_UPDATED,
                stored.id,
                ids=self._ids,
                at=now,
                details={"name": changed.name, "members": len(changed.members)},
            )
            return replace(changed, version=stored.version + 1, changed_at=now), audit

        return await self._groups.change_group(provider, command.group_id, decide)
