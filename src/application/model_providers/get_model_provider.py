"""GetModelProvider: one provider, without its key."""

from dataclasses import dataclass

from application.model_providers.ports import ModelProviderStore
from application.model_providers.provider_lookup import existing_provider
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.model_providers.provider import ModelProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class GetModelProviderCommand:
    """Which provider."""

    principal: Principal
    name: str


class GetModelProvider:
    """Any role may read; views leave the key out."""

    def __init__(self, *, providers: ModelProviderStore) -> None:
        self._providers = providers

    async def execute(self, command: GetModelProviderCommand) -> ModelProvider:
        """The provider. Raises NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        return await existing_provider(self._providers, command.principal.organization_id, command.name)
