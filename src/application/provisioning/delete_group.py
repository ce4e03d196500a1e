"""DeleteGroup: a directory deletes a group."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.provisioning.ports import GroupStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import directory_principal
from domain.ids import GroupId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupCommand:
    provider: IdentityProvider
    group_id: GroupId


class DeleteGroup:
    """Rules:
    - Its members stay users. Audited as `group.deleted`.

    Raises: ServiceError group_not_found.
    """

    def __init__(self, *, groups: GroupStore, clock: Clock, ids: IdSource) -> None:
        self._groups = groups
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteGroupCommand) -> None:
        audit = audit_entry(
            directory_principal(command.provider),
            AuditAction.GROUP_DELETED,
            command.group_id,
            ids=self._ids,
            at=self._clock.now(),
        )
        if not await self._groups.delete_group(command.provider, command.group_id, audit):
            raise not_found("group", command.group_id)
