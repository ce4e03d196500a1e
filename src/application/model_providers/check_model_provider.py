"""CheckModelProvider: test the key of a provider, one of its models, a tool call and streaming. A
provider that does not work is a result, not an error."""

import asyncio
from dataclasses import dataclass

from application.agents.ports import AgentStore
from application.audit.entries import audit_entry
from application.audit.ports import AuditLog
from application.model_providers.place_check import PlaceCheck
from application.model_providers.ports import ProviderPlace, ProviderPlaces
from application.models.ports import ModelError
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock, IdSource
from application.system.together import together
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import OrganizationId
from domain.model_providers.provider_check import (
    ProviderCheck,
    ProviderCheckName,
    ProviderCheckOutcome,
    ProviderCheckResult,
)

DEFAULT_ANSWER_S = 20.0
"""The longest wait for each of the four answers of a test."""
_AT_ONCE = 8
"""Places that are tested at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckModelProviderCommand:
    """`model` is the name without the provider; None is the first that an agent uses."""

    principal: Principal
    name: str
    model: str | None = None


class CheckModelProvider:
    """Rules:
    - Admins test providers, those of the environment too: a test costs tokens.
    - Each deployment is tested, whether calls would go to it or not.
    - Without a model, the first one is tested that an agent has as its model or fallback model.
    - Nothing is retried, and a provider that does not work raises nothing.
    - The provider's own words are in the result, without its key.
    - Audited `model_provider.tested` with the outcome.

    Raises: FORBIDDEN, NOT_FOUND.
    """

    def __init__(
        self,
        *,
        places: ProviderPlaces,
        agents: AgentStore,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
        answer_s: float = DEFAULT_ANSWER_S,
    ) -> None:
        self._places = places
        self._agents = agents
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids
        self._answer_s = answer_s

    async def execute(self, command: CheckModelProviderCommand) -> ProviderCheckResult:
        principal = command.principal
        principal.require(Permission.MODELS_MANAGE)
        organization_id, name = principal.organization_id, command.name
        if command.model is None:
            model = await self._used_model(organization_id, name)
        else:
            model = f"{name}:{command.model}"
        checks = await self._checks(organization_id, name, model)
        result = ProviderCheckResult(provider=name, model=model, checks=checks)
        await self._audit_log.record(
            audit_entry(
                principal,
                AuditAction.MODEL_PROVIDER_TESTED,
                name,
                ids=self._ids,
                at=self._clock.now(),
                details={"ok": result.ok, "model": model},
            )
        )
        return result

    async def _checks(self, organization_id: OrganizationId, name: str, model: str | None) -> tuple[ProviderCheck, ...]:
        try:
            places = await self._places.places(organization_id, name)
        except ModelError as error:
            return (_unusable(error),)
        if not places:
            raise not_found("model provider", name)
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def check(place: ProviderPlace) -> tuple[ProviderCheck, ...]:
            async with at_once:
                return await PlaceCheck(
                    place,
                    organization_id=organization_id,
                    model=model,
                    clock=self._clock,
                    ids=self._ids,
                    answer_s=self._answer_s,
                ).run()

        return tuple(line for lines in await together(map(check, places)) for line in lines)

    async def _used_model(self, organization_id: OrganizationId, provider: str) -> str | None:
        cursor: str | None = None
        while True:
            page = await self._agents.page(organization_id, PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor))
            for agent in page.items:
                for model in agent.config.models:
                    if model.startswith(f"{provider}:"):
                        return model
            if (cursor := page.next_cursor) is None:
                return None


def _unusable(error: ModelError) -> ProviderCheck:
    return ProviderCheck(
        deployment=None,
        check=ProviderCheckName.CREDENTIALS,
        outcome=ProviderCheckOutcome.FAILED,
        detail=error.detail,
    )
