"""DeleteModelProvider: forget a provider and its key."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.model_providers.ports import ModelProviderStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteModelProviderCommand:
    """Which provider."""

    principal: Principal
    name: str


class DeleteModelProvider:
    """Admins delete providers, at once even if agents name one: a key that leaked must not wait for
    them. Their next model call goes to the fallbacks, else the run fails saying that there is no
    such provider. Audited `model_provider.deleted`."""

    def __init__(self, *, providers: ModelProviderStore, clock: Clock, ids: IdSource) -> None:
        self._providers = providers
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteModelProviderCommand) -> None:
        """Delete. Raises FORBIDDEN, NOT_FOUND."""
        principal = command.principal
        principal.require(Permission.MODELS_MANAGE)
        audit = audit_entry(
            principal, AuditAction.MODEL_PROVIDER_DELETED, command.name, ids=self._ids, at=self._clock.now()
        )
        if not await self._providers.delete(principal.organization_id, command.name, audit):
            raise not_found("model provider", command.name)
