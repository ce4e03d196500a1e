"""Model providers of an organization: its own, and those of the environment for the default
organization. Above: model routing. Below: cached stores of providers, secrets and organizations."""

from collections.abc import Callable, Iterable

from application.identity.ports import OrganizationStore
from application.model_providers.ports import ModelProviderStore
from application.secrets.ports import SecretStore
from domain.errors import ServiceError
from domain.ids import OrganizationId
from domain.model_providers.cloud import NO_CLOUD, CloudIdentity
from domain.model_providers.provider import ModelProvider, is_legal_api_key, is_native
from domain.secrets.secret import SECRET_UNAVAILABLE, SecretRef, SecretValue
from infrastructure.llm.providers import DeploymentConfig, ProviderConfig
from infrastructure.llm.providers_extra import EXTRA_MISSING, is_extra_installed


class ProviderUnusableError(Exception):
    """The provider exists but is unusable. `reason` is safe to show."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class OrganizationProviders:
    """Rules:
    - The organization's providers take precedence over those of the environment.
    - The machine's identity is the operator's: only providers of the default organization have it,
      and only if the operator permits it (`cloud_identity`).
    - Models over vendors' own APIs need the extra `providers`.
    """

    def __init__(
        self,
        *,
        environment: Iterable[ProviderConfig],
        providers: ModelProviderStore,
        secrets: SecretStore,
        organizations: OrganizationStore,
        cloud_identity: bool = False,
        has_extra: Callable[[], bool] = is_extra_installed,
    ) -> None:
        self._environment = {provider.name: provider for provider in environment}
        self._providers = providers
        self._secrets = secrets
        self._organizations = organizations
        self._cloud_identity = cloud_identity
        self._has_extra = has_extra
        self._default: OrganizationId | None = None

    async def find(self, organization_id: OrganizationId, name: str) -> ProviderConfig | None:
        """The provider with its key; None if there is none. Raises ProviderUnusableError if its key
        is unavailable."""
        for provider in await self._providers.all(organization_id):
            if provider.name == name:
                return await self._config(provider)
        if name in self._environment and await self._is_default(organization_id):
            return self._environment[name]
        return None

    async def names(self, organization_id: OrganizationId) -> tuple[str, ...]:
        names = {provider.name for provider in await self._providers.all(organization_id)}
        if await self._is_default(organization_id):
            names |= set(self._environment)
        return tuple(sorted(names))

    async def _is_default(self, organization_id: OrganizationId) -> bool:
        """The default organization is the first one, under any name."""
        if self._default is None:
            first = await self._organizations.first()
            self._default = None if first is None else first.id
        return organization_id == self._default

    async def _config(self, provider: ModelProvider) -> ProviderConfig:
        place = f"The model provider {provider.name!r}"
        cloud = provider.cloud or NO_CLOUD
        if cloud.identity is CloudIdentity.SERVICE:
            await self._require_cloud_identity(provider.organization_id, place)
        if is_native(provider.kind, provider.wire, provider.base_url) and not self._has_extra():
            raise ProviderUnusableError(f"{place} {EXTRA_MISSING}")
        api_key = await self._key(provider, provider.api_key, place)
        deployments = [
            DeploymentConfig(
                name=deployment.name,
                base_url=deployment.base_url or provider.base_url,
                api_key=await self._key(provider, deployment.api_key, f"{place}, deployment {deployment.name!r},")
                or api_key,
                weight=deployment.weight,
            )
            for deployment in provider.deployments
        ]
        return ProviderConfig(
            name=provider.name,
            kind=provider.kind,
            base_url=provider.base_url,
            wire=provider.wire,
            echo_reasoning=provider.echo_reasoning,
            api_key=api_key,
            cloud=cloud,
            guarded=True,
            deployments=tuple(deployments),
        )

    async def _require_cloud_identity(self, organization_id: OrganizationId, place: str) -> None:
        if not self._cloud_identity:
            reason = f"{place} has the identity of this machine, which the operator has not permitted."
            raise ProviderUnusableError(f"{reason} Set DRAGOMAN_CLOUD_IDENTITY=true to permit it.")
        if not await self._is_default(organization_id):
            raise ProviderUnusableError(
                f"{place} has the identity of this machine, which only the default organization may use. Give it a key."
            )

    async def _key(self, provider: ModelProvider, key: SecretValue | None, place: str) -> str | None:
        """The key, or the value of its secret. Raises ProviderUnusableError; `place` begins its
        sentence."""
        if not isinstance(key, SecretRef):
            return key
        try:
            value = await self._secrets.value(provider.organization_id, key.name)
        except ServiceError as error:
            if error.code != SECRET_UNAVAILABLE:
                raise
            raise ProviderUnusableError(f"{place} has no key. {error.detail}") from error
        if value is None:
            raise ProviderUnusableError(f"{place} takes its key from the secret {key.name!r}, which does not exist.")
        value = value.strip()
        if not is_legal_api_key(value, provider.kind):
            raise ProviderUnusableError(f"{place} takes its key from the secret {key.name!r}, which holds no API key.")
        return value
