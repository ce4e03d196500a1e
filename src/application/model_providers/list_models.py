"""ListModels: names of the models of a provider, as the provider lists them."""

import asyncio
import math
from dataclasses import dataclass, field

from application.model_providers.ports import ProviderPlaces
from application.models.ports import ModelError
from application.system.lru import LruCache
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError, not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId

VALID_S = 600.0
"""How long a list is shown without asking the provider again."""
FAILURE_VALID_S = 30.0
"""How long a provider that gave no list is not asked again."""
MAX_LISTS = 500
_AT_ONCE = 8


@dataclass(slots=True)
class _List:
    """What a provider said, `error` instead of names, until it is asked again. One caller asks, others wait for it."""

    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    names: tuple[str, ...] = ()
    error: ModelError | None = None
    until: float = -math.inf


class ListModels:
    """Rules:
    - Any role may read.
    - The provider is asked once in VALID_S, and after a failure once in FAILURE_VALID_S. The list is kept in memory, so
      a changed provider has its old list for so long.
    - The list is that of the first deployment.

    Raises: NOT_FOUND, UNAVAILABLE `model_list_unavailable`.
    """

    def __init__(self, *, places: ProviderPlaces, clock: Clock) -> None:
        self._places = places
        self._clock = clock
        self._lists: LruCache[tuple[OrganizationId, str], _List] = LruCache(MAX_LISTS)

    async def execute(self, principal: Principal, name: str) -> tuple[str, ...]:
        """Names of the provider's models, as `PROVIDER:NAME`."""
        principal.require(Role.VIEWER)
        listed = await self._list(principal.organization_id, name)
        if listed.error is not None:
            raise ServiceError(
                "model_list_unavailable",
                ErrorKind.UNAVAILABLE,
                f"The models of {name!r} cannot be listed. {listed.error.detail}",
            ) from listed.error
        return listed.names

    async def of_all(self, principal: Principal) -> tuple[str, ...]:
        """Models of all providers, without those of providers that give no list."""
        principal.require(Role.VIEWER)
        organization_id = principal.organization_id
        names = await self._places.names(organization_id)
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def one(name: str) -> tuple[str, ...]:
            async with at_once:
                return (await self._list(organization_id, name)).names

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(name)) for name in names]
        return tuple(model for task in tasks for model in task.result())

    async def _list(self, organization_id: OrganizationId, name: str) -> _List:
        place = (organization_id, name)
        known = self._lists.get(place)
        if known is None:
            known = _List()
            self._lists.put(place, known)
        async with known.asking:
            if self._clock.monotonic() < known.until:
                return known
            try:
                places = await self._places.places(organization_id, name)
                if not places:
                    self._lists.pop(place)
                    raise not_found("model provider", name)
                known.names = tuple(f"{name}:{model}" for model in await places[0].model_list.names())
                known.error, valid_s = None, VALID_S
            except ModelError as error:
                known.names, known.error, valid_s = (), error, FAILURE_VALID_S
            known.until = self._clock.monotonic() + valid_s
        return known
