"""ListModels: names of the models of a provider, as the provider lists them."""

import asyncio
import math
from dataclasses import dataclass, field

from application.model_providers.ports import ProviderPlace, ProviderPlaces
from application.models.ports import ModelError
from application.system.lru import LruCache
from application.system.ports import Clock
from application.system.together import together
from domain.errors import ErrorKind, ServiceError, not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
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
    """What a place said, `error` instead of names, until it is asked again. One caller asks, others
    wait for it."""

    identity: object
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    names: tuple[str, ...] = ()
    error: ModelError | None = None
    until: float = -math.inf


class ListModels:
    """Rules:
    - Any role may read.
    - The provider is asked once in VALID_S, and after a failure once in FAILURE_VALID_S, unless its
      address or key changes. Lists are kept in memory.
    - The list is that of the first deployment.
    - Operators and admins read what a provider said that gave no list.

    Raises: NOT_FOUND, UNAVAILABLE `model_list_unavailable`.
    """

    def __init__(self, *, places: ProviderPlaces, clock: Clock) -> None:
        self._places = places
        self._clock = clock
        self._lists: LruCache[tuple[OrganizationId, str], _List] = LruCache(MAX_LISTS)

    async def execute(self, principal: Principal, name: str) -> tuple[str, ...]:
        """Names of the provider's models, as `PROVIDER:NAME`."""
        principal.require(Role.VIEWER)
        try:
            return await self._names(principal.organization_id, name)
        except ModelError as error:
            detail = f"The models of {name!r} cannot be listed. {error.detail}"
            said = error.provider_error
            if said is not None and said.message and principal.may(Permission.RUNS_CONTROL):
                detail += f" The provider said: {said.message}"
            raise ServiceError("model_list_unavailable", ErrorKind.UNAVAILABLE, detail) from error

    async def of_all(self, principal: Principal) -> tuple[str, ...]:
        """Models of all providers, without those of providers that give no list."""
        principal.require(Role.VIEWER)
        organization_id = principal.organization_id
        names = await self._places.names(organization_id)
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def one(name: str) -> tuple[str, ...]:
            async with at_once:
                try:
                    return await self._names(organization_id, name)
                except ModelError:
                    return ()
                except ServiceError as error:
                    if error.kind is not ErrorKind.NOT_FOUND:
                        raise
                    return ()  # deleted meanwhile

        return tuple(model for models in await together(map(one, names)) for model in models)

    async def _names(self, organization_id: OrganizationId, name: str) -> tuple[str, ...]:
        """Raises NOT_FOUND, ModelError."""
        places = await self._places.places(organization_id, name)
        if not places:
            raise not_found("model provider", name)
        listed = self._lists.get((organization_id, name))
        if listed is None or listed.identity != places[0].identity:
            listed = _List(identity=places[0].identity)
            self._lists.put((organization_id, name), listed)
        async with listed.asking:
            if self._clock.monotonic() >= listed.until:
                await self._ask(listed, name, places[0])
        if listed.error is not None:
            raise listed.error
        return listed.names

    async def _ask(self, listed: _List, name: str, place: ProviderPlace) -> None:
        try:
            listed.names = tuple(f"{name}:{model}" for model in await place.model_list.names())
            listed.error, valid_s = None, VALID_S
        except ModelError as error:
            listed.names, listed.error, valid_s = (), error, FAILURE_VALID_S
        listed.until = self._clock.monotonic() + valid_s
