"""CreateOrganizationKey: create an admin key for an organization that has none left. Its token is
shown only once."""

from dataclasses import dataclass

from application.identity.admin_key import new_admin_key
from application.identity.create_api_key import CreatedApiKey
from application.identity.organization_entries import organization_entries
from application.identity.ports import OrganizationStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import Violation, invalid, not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOrganizationKeyCommand:
    principal: Principal
    organization_id: OrganizationId
    name: str


class CreateOrganizationKey:
    """Rules:
    - Requires a platform key; works for any organization.
    - Audited as `key.created` in the trails of both organizations.

    Raises: ServiceError role_insufficient, platform_key_required, organization_not_found,
    api_key_invalid.
    """

    def __init__(self, *, organizations: OrganizationStore, clock: Clock, ids: IdSource) -> None:
        self._organizations = organizations
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateOrganizationKeyCommand) -> CreatedApiKey:
        principal = command.principal
        principal.require(Role.ADMIN)
        principal.require_platform()
        if not command.name.strip():
            wrong = Violation(path="name", message="must not be empty")
            raise invalid("api_key_invalid", "The API key is not valid.", wrong)
        if await self._organizations.get(command.organization_id) is None:
            raise not_found("organization", command.organization_id)
        now = self._clock.now()
        created = new_admin_key(command.organization_id, command.name, ids=self._ids, at=now)
        audit = organization_entries(
            principal,
            AuditAction.KEY_CREATED,
            command.organization_id,
            ids=self._ids,
            at=now,
            details={"name": created.key.name, "role": created.key.role.value},
            resource=created.key.id,
        )
        await self._organizations.add_key(created.key, audit)
        return created
