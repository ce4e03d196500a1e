"""Tool loops over chat completions of vendors that refuse what OpenAI takes."""

import pytest

from application.models.ports import LanguageModel, ModelError
from domain.model_providers.provider import ProviderKind
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.provider_http import AiohttpProviders
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from tests.integration.llm.strict.provider import Said, StrictProvider
from tests.integration.llm.strict.vendors import AZURE_KEY, StrictAzure, StrictMistral
from tests.unit.llm.conversations import Conversation
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = NEEDS_SDK_TYPES
ECHO, CLOCK = "mcp__files__echo", "mcp__clock__now"
LOOP = (Said(text="Let me look.", calls=((ECHO, {"text": "hi"}), (CLOCK, {}))), Said(text="It is noon."))


def models(
    http: AiohttpProviders, there: StrictProvider, kind: ProviderKind, *, key: str = "sk-test", streaming: bool = True
) -> LanguageModel:
    opening = ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy(), streaming=streaming)
    return opening.open(ProviderConfig(name="acme", kind=kind, base_url=there.url, api_key=key))


@pytest.mark.requirement("H4")
@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "whole"])
async def test_mistral_gets_ids_and_fields_that_it_takes(http: AiohttpProviders, streaming: bool) -> None:
    async with StrictProvider(StrictMistral()).serving() as there:
        there.say(*LOOP)
        model, thread = models(http, there, ProviderKind.MISTRAL, streaming=streaming), Conversation()
        await thread.ask(model, "acme:mistral-large-latest")
        thread.answer("hi", "12:00")
        reply = await thread.ask(model, "acme:mistral-large-latest")
    assert reply.text == "It is noon."
    assert there.refused == []
    assert reply.usage.input_tokens > 0


@pytest.mark.requirement("H1", "H4")
async def test_mistral_takes_a_thread_that_began_with_a_model_that_thinks(http: AiohttpProviders) -> None:
    async with StrictProvider(StrictMistral()).serving() as there:
        there.say(*LOOP)
        model, thread = models(http, there, ProviderKind.MISTRAL), Conversation()
        async with StrictProvider(StrictAzure(), prefix="/openai/v1", key_header="api-key").serving() as other:
            other.say(Said(calls=((CLOCK, {}),)))
            await thread.ask(models(http, other, ProviderKind.AZURE, key=AZURE_KEY), "azure:deepseek")
        thread.answer("11:59")
        await thread.ask(model, "acme:mistral-large-latest")
        thread.answer("hi", "12:00")
        assert (await thread.ask(model, "acme:mistral-large-latest")).text == "It is noon."
    assert there.refused == []


@pytest.mark.requirement("H4")
async def test_azure_gets_its_key_in_its_own_header_below_its_own_path(http: AiohttpProviders) -> None:
    async with StrictProvider(StrictAzure(), prefix="/openai/v1", key_header="api-key").serving() as there:
        there.say(*LOOP)
        model, thread = models(http, there, ProviderKind.AZURE, key=AZURE_KEY), Conversation()
        await thread.ask(model, "acme:our-deployment")
        thread.answer("hi", "12:00")
        assert (await thread.ask(model, "acme:our-deployment")).text == "It is noon."
        assert there.refused == []
        assert {body["model"] for body in there.bodies} == {"our-deployment"}
        with pytest.raises(ModelError) as raised:
            await Conversation().ask(models(http, there, ProviderKind.AZURE, key="other"), "acme:our-deployment")
    assert raised.value.code == "model_auth"
    assert raised.value.provider_error is not None
    assert raised.value.provider_error.message.startswith("Access denied")
