"""UpdateModelProvider: another address or key for a provider."""

from dataclasses import dataclass, field, replace

from application.audit.entries import audit_entry
from application.model_providers.ports import ModelProviderStore
from application.model_providers.provider_lookup import existing_provider, require_addresses
from application.system.changes import Changes, changed_fields, with_changes
from application.system.ports import Clock, IdSource, OutboundPolicy
from domain.audit.event import AuditAction
from domain.errors import require_version
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonValue
from domain.model_providers.cloud import NO_CLOUD, CloudSettings
from domain.model_providers.provider import ModelProvider, default_base_url, region_of


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateModelProviderCommand:
    """`changes` are fields of `ModelProvider`. `expected_version` is what the client last read,
    None if it does not care."""

    principal: Principal
    name: str
    changes: Changes = field(default_factory=dict, repr=False)
    expected_version: int | None = None


class UpdateModelProvider:
    """Admins change providers; the next model call sees the change. The name stays: agents' models
    are named after it.

    The vendor's own address follows a change of the region.

    A change of nothing makes no version and no audit entry; every other one is audited
    `model_provider.updated` with the names of the fields changed.
    """

    def __init__(self, *, providers: ModelProviderStore, outbound: OutboundPolicy, clock: Clock, ids: IdSource) -> None:
        self._providers = providers
        self._outbound = outbound
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateModelProviderCommand) -> ModelProvider:
        """The provider as it is now. Raises FORBIDDEN, NOT_FOUND, INVALID `model_provider_invalid`,
        PRECONDITION `version_conflict`."""
        principal = command.principal
        principal.require(Permission.MODELS_MANAGE)
        provider = await existing_provider(self._providers, principal.organization_id, command.name)
        require_version("model provider", provider.version, expected=command.expected_version)
        changed = with_changes(provider, _with_address(provider, command.changes))
        if changed == provider:
            return provider
        require_addresses(self._outbound, changed)
        now = self._clock.now()
        names: list[JsonValue] = [*changed_fields(provider, changed)]
        changed = replace(changed, version=provider.version + 1, updated_at=now)
        audit = audit_entry(
            principal,
            AuditAction.MODEL_PROVIDER_UPDATED,
            provider.name,
            ids=self._ids,
            at=now,
            details={"version": changed.version, "changed": names, "base_url": changed.base_url},
        )
        await self._providers.save(changed, expected_version=provider.version, audit=audit)
        return changed


def _with_address(provider: ModelProvider, changes: Changes) -> Changes:
    """The changes, with the vendor's own address in a new region, unless they say an address or the
    vendor's is not used."""
    cloud, kind = changes.get("cloud"), provider.kind
    if not isinstance(cloud, CloudSettings) or cloud.region is None:
        return changes
    present = CloudSettings(region=region_of(kind, provider.base_url, provider.cloud or NO_CLOUD))
    if provider.base_url != default_base_url(kind, present):
        return changes
    return {"base_url": default_base_url(kind, cloud), **changes}
