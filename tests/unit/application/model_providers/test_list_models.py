"""ListModels: who reads, how often the provider is asked, and what a failure shows."""

import asyncio

import pytest

from application.model_providers.list_models import FAILURE_VALID_S, VALID_S, ListModels
from application.model_providers.ports import ProviderPlace
from application.models.ports import ModelError
from domain.errors import ServiceError
from domain.identity.role import Role
from domain.ids import OrganizationId
from domain.runs.provider_error import ProviderError
from tests.doubles.provider_places import InMemoryProviderPlaces, TalkingPlace
from tests.doubles.surroundings import StepClock
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

BROKEN = ModelError("model_unavailable", "The model provider is unavailable.", retryable=True)


def listing(clock: StepClock | None = None, **providers: TalkingPlace) -> ListModels:
    places = InMemoryProviderPlaces({name: {None: place} for name, place in providers.items()})
    return ListModels(places=places, clock=clock or StepClock())


@pytest.mark.requirement("C6", "H4")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_the_models_by_their_full_names(role: Role) -> None:
    assert await listing(acme=TalkingPlace()).execute(a_principal(role), "acme") == ("acme:large", "acme:small")


@pytest.mark.requirement("H4")
async def test_the_provider_is_asked_again_only_when_its_list_is_old() -> None:
    clock, place = StepClock(), TalkingPlace()
    models = listing(clock, acme=place)
    await asyncio.gather(*(models.execute(a_principal(), "acme") for _ in range(3)))
    clock.advance(VALID_S - 1)
    await models.execute(a_principal(), "acme")
    assert place.listings == 1
    clock.advance(2)
    place.models = ("new",)
    assert await models.execute(a_principal(), "acme") == ("acme:new",)


@pytest.mark.requirement("H4")
async def test_another_address_or_key_is_asked_at_once() -> None:
    providers: dict[str, dict[str | None, TalkingPlace] | ModelError] = {"acme": {None: TalkingPlace()}}
    models = ListModels(places=InMemoryProviderPlaces(providers), clock=StepClock())
    await models.execute(a_principal(), "acme")
    providers["acme"] = {None: TalkingPlace(models=("new",))}
    assert await models.execute(a_principal(), "acme") == ("acme:new",)


@pytest.mark.requirement("H4")
async def test_a_failure_is_told_and_the_provider_left_alone_for_a_while() -> None:
    clock, place = StepClock(), TalkingPlace(models=BROKEN)
    models = listing(clock, acme=place)
    for _ in range(2):
        with refused("model_list_unavailable"):
            await models.execute(a_principal(), "acme")
    assert place.listings == 1
    clock.advance(FAILURE_VALID_S + 1)
    place.models = ("small",)
    assert await models.execute(a_principal(), "acme") == ("acme:small",)


@pytest.mark.requirement("H4")
async def test_each_organization_has_its_own_lists() -> None:
    place = TalkingPlace()
    models = listing(acme=place)
    await models.execute(a_principal(), "acme")
    await models.execute(a_stranger(), "acme")
    assert place.listings == 2


@pytest.mark.requirement("H4")
async def test_models_of_all_providers_leave_out_those_that_list_none() -> None:
    models = listing(acme=TalkingPlace(models=("one",)), broken=TalkingPlace(models=BROKEN), zed=TalkingPlace())
    assert await models.of_all(a_principal()) == ("acme:one", "zed:large", "zed:small")


class NamedPlaces(InMemoryProviderPlaces):
    """Names a provider more, whose places are gone or cannot be read."""

    def __init__(self, *, unreadable: bool = False) -> None:
        super().__init__({"acme": {None: TalkingPlace(models=("one",))}})
        self._unreadable = unreadable

    async def names(self, organization_id: OrganizationId) -> tuple[str, ...]:
        return ("acme", "gone")

    async def places(self, organization_id: OrganizationId, name: str) -> tuple[ProviderPlace, ...]:
        if name == "gone" and self._unreadable:
            raise storage_away()
        return await super().places(organization_id, name)


@pytest.mark.requirement("H4")
async def test_a_provider_that_is_deleted_meanwhile_is_left_out() -> None:
    models = ListModels(places=NamedPlaces(), clock=StepClock())
    assert await models.of_all(a_principal()) == ("acme:one",)


async def test_models_of_all_providers_need_the_storage() -> None:
    with refused("storage_unavailable"):
        await ListModels(places=NamedPlaces(unreadable=True), clock=StepClock()).of_all(a_principal())


async def test_an_unknown_provider_is_not_found() -> None:
    with refused("model_provider_not_found"):
        await listing().execute(a_principal(), "acme")


@pytest.mark.requirement("H6")
@pytest.mark.parametrize("role", list(Role))
async def test_what_a_provider_said_is_for_operators_and_admins(role: Role) -> None:
    said = ProviderError(status=401, code=None, message="Your key was disabled on Monday.")
    refusal = ModelError("model_auth", "The key was refused.", retryable=False, provider_error=said)
    with pytest.raises(ServiceError) as raised:
        await listing(acme=TalkingPlace(models=refusal)).execute(a_principal(role), "acme")
    assert ("Monday" in raised.value.detail) is role.includes(Role.OPERATOR)
