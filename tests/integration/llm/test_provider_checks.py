"""Tests and lists of providers over real HTTP, against a provider that refuses what its vendor
refuses."""

from collections.abc import AsyncIterator

import pytest
from pytest_mock import MockerFixture

from application.agents.ports import AgentStore
from application.audit.ports import AuditLog
from application.model_providers.check_model_provider import CheckModelProvider, CheckModelProviderCommand
from application.models.ports import ModelError
from domain.ids import OrganizationId
from domain.model_providers.provider import ProviderKind, ProviderWire
from domain.model_providers.provider_check import ProviderCheckResult
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.organization_providers import ProviderUnusableError
from infrastructure.llm.provider_http import AiohttpProviders, provider_http
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.provider_places import OpenProviderPlaces
from infrastructure.llm.providers import ProviderConfig
from tests.builders import ORG
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.integration.llm.strict.provider import Refusal, Said, StrictProvider
from tests.integration.llm.strict.responses import StrictResponses
from tests.unit.application.actors import a_principal
from tests.unit.llm.model_requests import SomeProviders
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = NEEDS_SDK_TYPES
WORKS = (Said(text="1 2 3"), Said(calls=(("echo", {"text": "pong"}),)), Said(text="pong"))


@pytest.fixture
async def there() -> AsyncIterator[StrictProvider]:
    async with StrictProvider(StrictResponses()).serving() as provider:
        yield provider


def places(http: AiohttpProviders, provider: ProviderConfig) -> OpenProviderPlaces:
    opening = ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy())
    return OpenProviderPlaces(providers=SomeProviders(provider), open_providers=lambda: opening)


def a_provider(there: StrictProvider, *, guarded: bool = False) -> ProviderConfig:
    return ProviderConfig(
        name="acme",
        kind=ProviderKind.OPENAI,
        base_url=there.url,
        api_key="sk-secret",
        wire=ProviderWire.RESPONSES,
        guarded=guarded,
    )


async def outcome_of(places: OpenProviderPlaces, mocker: MockerFixture) -> ProviderCheckResult:
    check = CheckModelProvider(
        places=places,
        agents=mocker.create_autospec(AgentStore, instance=True),
        audit_log=mocker.create_autospec(AuditLog, instance=True),
        clock=StepClock(),
        ids=SequentialIds(),
    )
    return await check.execute(CheckModelProviderCommand(principal=a_principal(), name="acme", model="gpt-test"))


@pytest.mark.requirement("H4")
async def test_a_strict_provider_passes_its_test_and_its_reasoning_goes_back(
    there: StrictProvider, http: AiohttpProviders, mocker: MockerFixture
) -> None:
    there.say(*WORKS)
    result = await outcome_of(places(http, a_provider(there)), mocker)
    assert [(check.check.value, check.outcome.value) for check in result.checks] == [
        ("credentials", "ok"),
        ("model", "ok"),
        ("tool_call", "ok"),
        ("streaming", "ok"),
    ]
    assert there.refused == []
    assert len(there.bodies) == 3


@pytest.mark.requirement("H4")
async def test_a_provider_that_does_not_stream_is_found_out(
    there: StrictProvider, http: AiohttpProviders, mocker: MockerFixture
) -> None:
    there.say(*WORKS)
    there.streams = False
    result = await outcome_of(places(http, a_provider(there)), mocker)
    assert [check.outcome.value for check in result.checks] == ["ok", "ok", "ok", "failed"]


@pytest.mark.requirement("H4", "H6")
async def test_a_refusal_of_the_tool_loop_is_in_the_providers_words_without_the_key(
    there: StrictProvider, http: AiohttpProviders, mocker: MockerFixture
) -> None:
    there.say(Said(text="1 2 3"))
    message = "Function tools are not supported for the key sk-secret."
    there.refuse()
    check = places(http, a_provider(there))
    family_refusal = there.family.refusal

    def refuses_tools(path: str, body: dict[str, object], key: str) -> Refusal | None:
        if body.get("tools"):
            return Refusal(status=400, body={"error": {"message": message, "type": "invalid_request_error"}})
        return family_refusal(path, body, key)

    mocker.patch.object(there.family, "refusal", refuses_tools)
    result = await outcome_of(check, mocker)
    tool_call = result.checks[2]
    assert (tool_call.outcome.value, result.ok) == ("failed", False)
    assert tool_call.provider_error is not None
    assert tool_call.provider_error.message.startswith("Function tools are not supported for the key")
    assert "sk-secret" not in repr(result)


@pytest.mark.requirement("B16", "H4")
async def test_lists_and_tests_are_held_to_the_egress_guard(there: StrictProvider, mocker: MockerFixture) -> None:
    egress = EgressPolicy()
    clients = HttpClients()
    opening = ProviderModels(
        http=provider_http(clients), guarded_http=provider_http(clients, egress=egress), outbound=egress
    )
    by_number = OpenProviderPlaces(
        providers=SomeProviders(a_provider(there, guarded=True)), open_providers=lambda: opening
    )
    by_name = ProviderConfig(
        name="acme",
        kind=ProviderKind.OPENAI,
        base_url=there.url.replace("127.0.0.1", "localhost"),
        api_key="sk",
        guarded=True,
    )
    try:
        [line] = (await outcome_of(by_number, mocker)).checks
        assert "not public" in line.detail
        with pytest.raises(ModelError) as raised:
            await opening.model_list(by_name).names()
        assert raised.value.code == "model_rejected"
    finally:
        await opening.close()
    assert there.bodies == []


@pytest.mark.requirement("H4")
async def test_places_are_those_of_the_deployments_and_problems_with_keys_are_told() -> None:
    keyless = ProviderConfig(name="openai", kind=ProviderKind.OPENAI, base_url="https://api.openai.com/v1")
    opening = ProviderModels(
        http=provider_http(HttpClients()), guarded_http=provider_http(HttpClients()), outbound=EgressPolicy()
    )
    access = OpenProviderPlaces(providers=SomeProviders(keyless), open_providers=lambda: opening)
    with pytest.raises(ModelError) as raised:
        await access.places(ORG, "openai")
    assert raised.value.code == "model_auth"
    assert await access.places(ORG, "other") == ()
    assert await access.names(ORG) == ("openai",)

    class WithoutSecret(SomeProviders):
        async def find(self, organization_id: OrganizationId, name: str) -> ProviderConfig | None:
            raise ProviderUnusableError("The secret does not exist.")

    with pytest.raises(ModelError) as missing:
        await OpenProviderPlaces(providers=WithoutSecret(), open_providers=lambda: opening).places(ORG, "acme")
    assert (missing.value.code, missing.value.detail) == ("model_rejected", "The secret does not exist.")
    await opening.close()
