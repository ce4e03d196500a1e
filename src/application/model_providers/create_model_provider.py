"""CreateModelProvider: a provider under a name that models are named after."""

from dataclasses import dataclass, field

from application.audit.entries import audit_entry
from application.model_providers.ports import ModelProviderStore
from application.model_providers.provider_lookup import require_addresses
from application.system.ports import Clock, IdSource, OutboundPolicy
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.model_providers.cloud import NO_CLOUD, CloudSettings
from domain.model_providers.deployment import Deployment
from domain.model_providers.provider import (
    EchoReasoning,
    ModelProvider,
    ProviderKind,
    ProviderWire,
    default_base_url,
)
from domain.secrets.secret import SecretValue


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateModelProviderCommand:
    """`base_url` None is the vendor's own, in the region; without a key none is sent."""

    principal: Principal
    name: str
    kind: ProviderKind
    base_url: str | None = None
    wire: ProviderWire = ProviderWire.AUTO
    echo_reasoning: EchoReasoning = EchoReasoning.TOOL_LOOP
    api_key: SecretValue | None = field(default=None, repr=False)
    cloud: CloudSettings | None = None
    deployments: tuple[Deployment, ...] = ()


class CreateModelProvider:
    """Admins add providers to their organization; models are then `NAME:model`. The key cannot be
    read back. The address passes the egress guard, here and with every request. A provider of the
    organization goes before one of that name which the environment makes. Audited
    `model_provider.created`, without the key."""

    def __init__(self, *, providers: ModelProviderStore, outbound: OutboundPolicy, clock: Clock, ids: IdSource) -> None:
        self._providers = providers
        self._outbound = outbound
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateModelProviderCommand) -> ModelProvider:
        """The provider. Raises FORBIDDEN, INVALID `model_provider_invalid`, CONFLICT
        `model_provider_exists`, `too_many_model_providers`."""
        principal = command.principal
        principal.require(Permission.MODELS_MANAGE)
        now = self._clock.now()
        provider = ModelProvider(
            organization_id=principal.organization_id,
            name=command.name,
            kind=command.kind,
            base_url=default_base_url(command.kind, command.cloud or NO_CLOUD)
            if command.base_url is None
            else command.base_url,
            wire=command.wire,
            echo_reasoning=command.echo_reasoning,
            api_key=command.api_key,
            cloud=command.cloud,
            deployments=command.deployments,
            created_at=now,
            updated_at=now,
        )
        require_addresses(self._outbound, provider)
        audit = audit_entry(
            principal,
            AuditAction.MODEL_PROVIDER_CREATED,
            provider.name,
            ids=self._ids,
            at=now,
            details={"kind": provider.kind.value, "base_url": provider.base_url, "wire": provider.wire.value},
        )
        await self._providers.add(provider, audit)
        return provider
