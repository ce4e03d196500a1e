"""Tool loops over chat completions of vendors that refuse what OpenAI takes."""

from dataclasses import replace

import pytest

from application.models.ports import LanguageModel, ModelError, ModelReply, ToolChoice
from domain.model_providers.provider import ProviderKind
from domain.runs.model_settings import Effort, ModelSettings
from domain.threads.message import FileContent, TextContent
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.exchange import ReplyLimits
from infrastructure.llm.provider_http import AiohttpProviders
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from tests.builders import a_message
from tests.integration.llm.strict.provider import Said, StrictProvider
from tests.integration.llm.strict.vendors import (
    AZURE_KEY,
    StrictAlibaba,
    StrictAzure,
    StrictCopilot,
    StrictMeta,
    StrictMistral,
    StrictSnowflake,
)
from tests.unit.llm.conversations import Conversation
from tests.unit.llm.model_requests import all_events
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = NEEDS_SDK_TYPES
ECHO, CLOCK = "mcp__files__echo", "mcp__clock__now"
LOOP = (Said(text="Let me look.", calls=((ECHO, {"text": "hi"}), (CLOCK, {}))), Said(text="It is noon."))


def models(http: AiohttpProviders, there: StrictProvider, kind: ProviderKind, *, key: str = "sk-test") -> LanguageModel:
    opening = ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy())
    return opening.open(ProviderConfig(name="acme", kind=kind, base_url=there.url, api_key=key))


@pytest.mark.requirement("H4")
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
async def test_mistral_gets_ids_and_fields_that_it_takes(http: AiohttpProviders, streams: bool) -> None:
    async with StrictProvider(StrictMistral()).serving() as there:
        there.say(*LOOP)
        there.streams = streams
        model, thread = models(http, there, ProviderKind.MISTRAL), Conversation()
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


@pytest.mark.requirement("H1", "H3", "H4")
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
async def test_claude_at_snowflake_thinks_in_a_loop_although_its_replies_have_no_reason_to_end(
    http: AiohttpProviders, streams: bool
) -> None:
    async with StrictProvider(StrictSnowflake(), prefix="/api/v2/cortex/v1").serving() as there:
        there.say(*LOOP)
        there.streams = streams
        model = models(http, there, ProviderKind.SNOWFLAKE)
        thread = Conversation(settings=ModelSettings(effort=Effort.XHIGH, max_output_tokens=500))
        await thread.ask(model, "acme:claude-sonnet-4-6")
        thread.answer("hi", "12:00")
        reply = await thread.ask(model, "acme:claude-sonnet-4-6")
    assert reply.text == "It is noon."
    assert there.refused == []
    assert [body["reasoning"] for body in there.bodies] == [{"effort": "high"}] * 2


@pytest.mark.requirement("H2", "H4")
async def test_a_reply_of_snowflake_that_breaks_off_is_no_complete_one(http: AiohttpProviders) -> None:
    async with StrictProvider(StrictSnowflake()).serving() as there:
        there.say(Said(text="It is noon, and more.", hangs_after=3))
        model = ProviderModels(
            http=http, guarded_http=http, outbound=EgressPolicy(), reply_limits=ReplyLimits(stall_s=0.2)
        ).open(ProviderConfig(name="acme", kind=ProviderKind.SNOWFLAKE, base_url=there.url, api_key="sk-test"))
        with pytest.raises(ModelError):
            await Conversation().ask(model, "acme:claude-sonnet-4-6")


@pytest.mark.requirement("H1", "H4")
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
async def test_copilot_gets_the_limit_and_the_reasoning_that_it_takes(http: AiohttpProviders, streams: bool) -> None:
    async with StrictProvider(StrictCopilot(), prefix="").serving() as there:
        there.say(*LOOP)
        there.streams = streams
        model = models(http, there, ProviderKind.GITHUB_COPILOT)
        thread = Conversation(settings=ModelSettings(max_output_tokens=500))
        await thread.ask(model, "acme:claude-haiku-4.5")
        assert thread.reasoning == "I think about it."
        thread.answer("hi", "12:00")
        assert (await thread.ask(model, "acme:claude-haiku-4.5")).text == "It is noon."
    assert there.refused == []
    assert there.bodies[1]["messages"][2]["reasoning_text"] == "I think about it."


@pytest.mark.requirement("H4")
async def test_a_last_turn_without_calls_has_no_tool_choice_at_meta(http: AiohttpProviders) -> None:
    async with StrictProvider(StrictMeta()).serving() as there:
        there.say(*LOOP)
        model, thread = models(http, there, ProviderKind.META), Conversation()
        await thread.ask(model, "acme:muse-spark-1.3")
        thread.answer("hi", "12:00")
        request = replace(thread.request("acme:muse-spark-1.3"), tool_choice=ToolChoice.NONE)
        *_, reply = await all_events(model.stream(request))
    assert isinstance(reply, ModelReply)
    assert reply.text == "It is noon."
    assert there.refused == []
    assert ["tools" in body for body in there.bodies] == [True, False]


@pytest.mark.requirement("H4", "H5")
async def test_audio_is_a_url_at_alibaba_and_a_pdf_is_described(http: AiohttpProviders) -> None:
    sound = FileContent(media_type="audio/wav", data="UklGRg==")
    paper = FileContent(media_type="application/pdf", data="JVBERi0=", name="a.pdf")
    async with StrictProvider(StrictAlibaba()).serving() as there:
        there.say(Said(text="A bell."))
        model, thread = models(http, there, ProviderKind.ALIBABA), Conversation()
        thread.messages = [a_message(1, content=(TextContent(text="What is this?"), sound, paper))]
        assert (await thread.ask(model, "acme:qwen3-omni-flash")).text == "A bell."
    assert there.refused == []
    assert there.bodies[0]["messages"][1]["content"][1]["input_audio"]["data"].startswith("data:audio/wav;base64,")
