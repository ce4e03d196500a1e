"""Tool loops against a provider that refuses what OpenAI refuses on its Responses API."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

import pytest

from application.models.ports import LanguageModel, ModelError, TextDelta
from domain.model_providers.provider import ProviderKind, ProviderWire
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.provider_http import AiohttpProviders
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import DeploymentConfig, ProviderConfig
from tests.integration.llm.strict.provider import Refusal, Said, StrictProvider
from tests.integration.llm.strict.responses import StrictResponses, invalid_request
from tests.unit.llm.conversations import Conversation
from tests.unit.llm.model_requests import PIXEL, all_events
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = NEEDS_SDK_TYPES

MODEL = "openai:gpt-test"
ECHO, CLOCK = "mcp__files__echo", "mcp__clock__now"
BUSY = Refusal(
    status=429,
    body={"error": {"message": "Rate limit reached.", "type": "requests", "code": "rate_limit_exceeded"}},
    headers={"retry-after": "30"},
)


@pytest.fixture
async def there() -> AsyncIterator[StrictProvider]:
    async with StrictProvider(StrictResponses(plain=frozenset({"gpt-plain"}))).serving() as provider:
        yield provider


def models(http: AiohttpProviders, provider: ProviderConfig) -> LanguageModel:
    opening = ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy())
    return opening.open(provider)


def a_provider(
    there: StrictProvider, *, key: str = "sk-test", wire: ProviderWire = ProviderWire.RESPONSES
) -> ProviderConfig:
    return ProviderConfig(name="openai", kind=ProviderKind.OPENAI, base_url=there.url, api_key=key, wire=wire)


@pytest.mark.requirement("H1", "H2")
@pytest.mark.parametrize("streams", [True, False])
async def test_a_tool_loop_of_three_turns_with_parallel_calls(
    there: StrictProvider, http: AiohttpProviders, streams: bool
) -> None:
    model, thread = models(http, a_provider(there)), Conversation()
    there.streams = streams
    there.say(
        Said(text="Let me look.", calls=((ECHO, {"text": "hi"}), (CLOCK, {}))),
        Said(calls=((CLOCK, {}),)),
        Said(text="It is noon."),
        Said(text="You are welcome."),
    )
    reply = await thread.ask(model, MODEL)
    assert [(call.name, call.arguments) for call in reply.calls] == [(ECHO, {"text": "hi"}), (CLOCK, {})]
    thread.answer("hi", "11:59")
    assert [call.name for call in (await thread.ask(model, MODEL)).calls] == [CLOCK]
    thread.answer("12:00", images=(PIXEL,))
    assert (await thread.ask(model, MODEL)).text == "It is noon."
    thread.say("Thanks.")
    assert (await thread.ask(model, MODEL)).text == "You are welcome."
    assert there.refused == []
    assert all(body["store"] is False for body in there.bodies)
    assert {body["prompt_cache_key"] for body in there.bodies} == {thread.messages[0].thread_id}
    usage = thread.replies[-1].usage
    assert usage.cached_tokens > 0
    assert usage.reasoning_tokens > 0


@pytest.mark.requirement("H2")
async def test_over_chat_completions_the_same_model_refuses_tools(
    there: StrictProvider, http: AiohttpProviders
) -> None:
    with pytest.raises(ModelError) as raised:
        await Conversation().ask(models(http, a_provider(there, wire=ProviderWire.CHAT)), MODEL)
    said = raised.value.provider_error
    assert said is not None
    assert "use /v1/responses" in said.message


@pytest.mark.requirement("H1", "H2")
async def test_another_model_gets_the_thread_neutrally_and_the_first_one_gets_its_own_back(
    there: StrictProvider, http: AiohttpProviders
) -> None:
    model, thread = models(http, a_provider(there)), Conversation()
    there.say(Said(calls=((CLOCK, {}),)), Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    await thread.ask(model, MODEL)
    thread.answer("11:59")
    await thread.ask(model, "openai:other-test")
    thread.answer("12:00")
    assert (await thread.ask(model, MODEL)).text == "It is noon."
    assert there.refused == []
    kinds = [[item.get("type") for item in body["input"] if item.get("type") == "reasoning"] for body in there.bodies]
    assert [len(of_request) for of_request in kinds] == [0, 0, 1]


@pytest.mark.requirement("H1")
async def test_reasoning_that_the_provider_cannot_decrypt_is_left_out(
    there: StrictProvider, http: AiohttpProviders
) -> None:
    thread = Conversation()
    there.say(Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    await thread.ask(models(http, a_provider(there, key="sk-one")), MODEL)
    thread.answer("12:00")
    assert (await thread.ask(models(http, a_provider(there, key="sk-two")), MODEL)).text == "It is noon."
    assert [refusal.code for refusal in there.refused] == ["invalid_encrypted_content"]


@pytest.mark.requirement("H2")
async def test_a_model_without_reasoning_is_asked_for_none_from_its_first_refusal_on(
    there: StrictProvider, http: AiohttpProviders
) -> None:
    model, thread = models(http, a_provider(there)), Conversation()
    there.say(Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    reply = await thread.ask(model, "openai:gpt-plain")
    assert reply.items is None
    thread.answer("12:00")
    assert (await thread.ask(model, "openai:gpt-plain")).text == "It is noon."
    assert len(there.refused) == 1


@pytest.mark.requirement("H2")
async def test_other_refusals_are_told_and_not_sent_again(there: StrictProvider, http: AiohttpProviders) -> None:
    there.refuse(invalid_request("The model 'gpt-test' does not exist or you do not have access to it.", param="model"))
    with pytest.raises(ModelError) as raised:
        await Conversation().ask(models(http, a_provider(there)), MODEL)
    assert raised.value.code == "model_rejected"
    assert len(there.bodies) == 1


@pytest.mark.requirement("H2")
async def test_summaries_of_the_reasoning_come_before_the_text(there: StrictProvider, http: AiohttpProviders) -> None:
    thread = Conversation()
    there.say(Said(reasoning="I look at the clock.", text="It is noon."))
    await thread.ask(models(http, a_provider(there)), MODEL, reasoning_summary=True)
    assert thread.reasoning == "I look at the clock."
    assert there.bodies[0]["reasoning"] == {"summary": "auto"}


@pytest.mark.requirement("H2")
async def test_a_model_without_summaries_is_asked_for_none_from_its_first_refusals_on(
    there: StrictProvider, http: AiohttpProviders
) -> None:
    model, thread = models(http, a_provider(there)), Conversation()
    there.say(Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    await thread.ask(model, "openai:gpt-plain", reasoning_summary=True)
    thread.answer("12:00")
    assert (await thread.ask(model, "openai:gpt-plain", reasoning_summary=True)).text == "It is noon."
    assert len(there.refused) == 2, "one for the encrypted form, one for the summary"


@pytest.mark.requirement("H2")
async def test_an_account_without_summaries_gets_its_answers_without_them(http: AiohttpProviders) -> None:
    async with StrictProvider(StrictResponses(unverified=True)).serving() as provider:
        provider.say(Said(reasoning="I look.", text="It is noon."))
        reply = await Conversation().ask(models(http, a_provider(provider)), MODEL, reasoning_summary=True)
    assert reply.text == "It is noon."
    assert reply.items is not None
    assert len(provider.refused) == 1


@pytest.mark.requirement("A12", "H2")
async def test_closing_the_stream_ends_the_request(there: StrictProvider, http: AiohttpProviders) -> None:
    there.say(Said(text="It is noon, as it often is.", hangs_after=7))
    events = models(http, a_provider(there)).stream(Conversation().request(MODEL))
    async with aclosing(events):  # type: ignore[type-var]
        assert isinstance(await anext(events), TextDelta)
    await asyncio.wait_for(there.cut_off.wait(), 60)


@pytest.mark.requirement("H6")
async def test_a_deployment_at_its_limit_pauses_and_the_thread_goes_on_at_the_other(
    there: StrictProvider, http: AiohttpProviders
) -> None:
    deployments = tuple(DeploymentConfig(name=name, base_url=there.url, api_key=f"sk-{name}") for name in ("eu", "us"))
    model, thread = models(http, replace(a_provider(there), deployments=deployments)), Conversation()
    there.say(Said(calls=((CLOCK, {}),)), Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    await thread.ask(model, MODEL)
    thread.answer("11:59")
    first = there.keys[-1]
    there.refuse(BUSY)
    await thread.ask(model, MODEL)
    thread.answer("12:00")
    assert (await thread.ask(model, MODEL)).text == "It is noon."
    # The other key cannot decrypt the reasoning of the first, which is then left out.
    assert [refusal.status for refusal in there.refused] == [429, 400, 400]
    assert first not in there.keys[2:]
    assert len(set(there.keys)) == 2


@pytest.mark.requirement("H6")
async def test_if_all_deployments_are_at_their_limit_the_error_says_when_to_return(
    there: StrictProvider, http: AiohttpProviders
) -> None:
    deployments = tuple(DeploymentConfig(name=name, base_url=there.url, api_key="sk") for name in ("eu", "us"))
    there.refuse(BUSY, BUSY)
    with pytest.raises(ModelError) as raised:
        await all_events(
            models(http, replace(a_provider(there), deployments=deployments)).stream(Conversation().request(MODEL))
        )
    assert (raised.value.code, raised.value.retry_after_s, len(there.bodies)) == ("model_rate_limited", 30, 2)
