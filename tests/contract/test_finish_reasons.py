"""LanguageModel: why a reply ended, as each adapter learns it from real payloads of its wire,
streamed and whole."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from application.models.ports import LanguageModel, ModelError, ModelReply, RequestedCall
from domain.json_value import JsonObject, JsonValue
from domain.model_providers.provider import ProviderKind
from domain.runs.finish_reason import FinishReason
from infrastructure.llm.anthropic import AnthropicModels
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.scripted import ScriptedModels
from tests.unit.llm.answers import AnsweringHttp, SomeAnswer
from tests.unit.llm.model_requests import a_request, a_user_message, an_assistant_message, reply_of

Wire = Callable[[SomeAnswer], LanguageModel]
JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream"}


def chat(answer: SomeAnswer) -> LanguageModel:
    provider = ProviderConfig(name="openai", kind=ProviderKind.OPENAI, base_url="http://models.test/v1", api_key="k")
    return OpenAICompatibleModels(provider=provider, http=AnsweringHttp(answer))


def messages(answer: SomeAnswer) -> LanguageModel:
    provider = ProviderConfig(name="anthropic", kind=ProviderKind.ANTHROPIC, base_url="http://models.test", api_key="k")
    return AnthropicModels(provider=provider, http=AnsweringHttp(answer))


async def asked(wire: Wire, answer: SomeAnswer) -> ModelReply:
    return await reply_of(wire(answer).stream(a_request()))


def events(*data: JsonObject) -> SomeAnswer:
    return SomeAnswer(headers=EVENTS, pieces=[b"data: %s\n\n" % json.dumps(each).encode() for each in data])


def whole(body: JsonObject) -> SomeAnswer:
    return SomeAnswer(headers=JSON, whole=json.dumps(body).encode())


def chat_chunks(*deltas: JsonObject, reason: str) -> SomeAnswer:
    begun: JsonObject = {"role": "assistant", "content": ""}
    choices: list[JsonValue] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in (begun, *deltas)]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    chunks: list[JsonObject] = [{"choices": [choice]} for choice in choices]
    return events(*chunks)


def chat_whole(message: JsonObject, *, reason: str) -> SomeAnswer:
    body: JsonObject = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }
    return whole(body)


def message_events(*blocks: tuple[JsonObject, JsonObject | None], reason: str) -> SomeAnswer:
    data: list[JsonObject] = [
        {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": []}}
    ]
    for index, (block, delta) in enumerate(blocks):
        data.append({"type": "content_block_start", "index": index, "content_block": block})
        if delta is not None:
            data.append({"type": "content_block_delta", "index": index, "delta": delta})
        data.append({"type": "content_block_stop", "index": index})
    ending: JsonObject = {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 15},
    }
    return events(*data, ending, {"type": "message_stop"})


def message_whole(*blocks: JsonObject, reason: str) -> SomeAnswer:
    content: list[JsonValue] = list(blocks)
    body: JsonObject = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 15},
    }
    return whole(body)


CHAT_WORDS = [
    ("stop", FinishReason.STOP),
    ("length", FinishReason.LENGTH),
    ("content_filter", FinishReason.CONTENT_FILTER),
    ("content_filter: PROHIBITED_CONTENT", FinishReason.CONTENT_FILTER),
    ("model_length", FinishReason.CONTEXT_EXCEEDED),
    ("a_new_word", FinishReason.OTHER),
]
MESSAGES_WORDS = [
    ("end_turn", FinishReason.STOP),
    ("stop_sequence", FinishReason.STOP),
    ("max_tokens", FinishReason.LENGTH),
    ("refusal", FinishReason.REFUSAL),
    ("model_context_window_exceeded", FinishReason.CONTEXT_EXCEEDED),
    ("pause_turn", FinishReason.PAUSED),
    ("a_new_word", FinishReason.OTHER),
]
TEXT: tuple[JsonObject, JsonObject] = ({"type": "text", "text": ""}, {"type": "text_delta", "text": "So far"})


@pytest.mark.requirement("H2")
@pytest.mark.parametrize(("word", "reason"), CHAT_WORDS)
async def test_chat_completions_say_why_they_ended(word: str, reason: FinishReason) -> None:
    for answer in (chat_chunks({"content": "So far"}, reason=word), chat_whole({"content": "So far"}, reason=word)):
        reply = await asked(chat, answer)
        assert (reply.text, reply.finish_reason) == ("So far", reason)


@pytest.mark.requirement("H2")
@pytest.mark.parametrize(("word", "reason"), MESSAGES_WORDS)
async def test_messages_say_why_they_ended(word: str, reason: FinishReason) -> None:
    for answer in (
        message_events(TEXT, reason=word),
        message_whole({"type": "text", "text": "So far"}, reason=word),
    ):
        reply = await asked(messages, answer)
        assert (reply.text, reply.finish_reason) == ("So far", reason)


@pytest.mark.requirement("H2")
@pytest.mark.parametrize("reason", [each for each in FinishReason if each is not FinishReason.CANARY])
async def test_a_scripted_model_says_the_finish_reason_of_its_script(tmp_path: Path, reason: FinishReason) -> None:
    (tmp_path / "s.yaml").write_text(f"turns: [{{text: So far, finish_reason: {reason.value}}}]")
    reply = await reply_of(ScriptedModels([tmp_path]).stream(a_request("scripted:s.yaml")))
    assert (reply.text, reply.finish_reason) == ("So far", reason)


@pytest.mark.requirement("H2")
async def test_a_refusal_of_chat_completions_is_one_although_the_wire_says_stop() -> None:
    said = "I cannot help with that."
    for answer in (
        chat_chunks({"refusal": said}, reason="stop"),
        chat_whole({"content": None, "refusal": said}, reason="stop"),
    ):
        reply = await asked(chat, answer)
        assert (reply.text, reply.finish_reason) == (said, FinishReason.REFUSAL)


@pytest.mark.requirement("A11", "H2")
@pytest.mark.parametrize("word", ["error", "network_error", "insufficient_system_resource"])
async def test_a_reply_that_the_provider_gave_up_on_is_an_error_worth_retrying(word: str) -> None:
    with pytest.raises(ModelError) as raised:
        await asked(chat, chat_whole({"content": "So far"}, reason=word))
    assert (raised.value.code, raised.value.retryable) == ("model_unavailable", True)


def a_chat_call(index: int, arguments: str) -> JsonObject:
    return {
        "index": index,
        "id": f"call_{index}",
        "type": "function",
        "function": {"name": "save", "arguments": arguments},
    }


CHAT_CUTS = [
    ('{"text": "half a', RequestedCall(name="save", arguments={}, malformed='{"text": "half a')),
    ("", RequestedCall(name="save", arguments={}, malformed="")),
    ('{"text": "whole"}', RequestedCall(name="save", arguments={"text": "whole"})),
]


@pytest.mark.requirement("A9", "H2")
@pytest.mark.parametrize(("arguments", "last"), CHAT_CUTS)
async def test_the_call_in_which_a_chat_completion_was_cut_is_malformed(arguments: str, last: RequestedCall) -> None:
    calls: list[JsonValue] = [a_chat_call(0, "{}"), a_chat_call(1, arguments)]
    for answer in (
        chat_chunks({"tool_calls": calls}, reason="length"),
        chat_whole({"content": None, "tool_calls": calls}, reason="length"),
    ):
        reply = await asked(chat, answer)
        assert reply.calls == (RequestedCall(name="save", arguments={}), last)


@pytest.mark.requirement("A9", "H2")
async def test_the_call_in_which_a_message_was_cut_is_malformed() -> None:
    block: JsonObject = {"type": "tool_use", "id": "toolu_1", "name": "save", "input": {}}
    half: JsonObject = {"type": "input_json_delta", "partial_json": '{"text": "half a'}
    streamed = await asked(messages, message_events(TEXT, (block, half), reason="max_tokens"))
    assert streamed.calls == (RequestedCall(name="save", arguments={}, malformed='{"text": "half a'),)
    silent = await asked(messages, message_events(TEXT, (block, None), reason="max_tokens"))
    assert silent.calls == (RequestedCall(name="save", arguments={}, malformed=""),)


@pytest.mark.requirement("A9", "H2")
async def test_a_call_that_ends_a_whole_message_that_was_cut_is_malformed_although_it_is_an_object() -> None:
    block: JsonObject = {"type": "tool_use", "id": "toolu_1", "name": "save", "input": {"text": "half a"}}
    cut = await asked(messages, message_whole(block, reason="max_tokens"))
    assert cut.calls == (RequestedCall(name="save", arguments={}, malformed='{"text": "half a"}'),)
    before_text = await asked(messages, message_whole(block, {"type": "text", "text": "So"}, reason="max_tokens"))
    assert before_text.calls == (RequestedCall(name="save", arguments={"text": "half a"}),)


@pytest.mark.requirement("H2")
async def test_a_paused_reply_is_sent_back_as_the_last_message_without_space_at_its_end() -> None:
    http = AnsweringHttp(message_whole({"type": "text", "text": "Done."}, reason="end_turn"))
    provider = ProviderConfig(name="anthropic", kind=ProviderKind.ANTHROPIC, base_url="http://models.test", api_key="k")
    paused = a_request(messages=(a_user_message(), an_assistant_message(text="So far \n")))
    await reply_of(AnthropicModels(provider=provider, http=http).stream(paused))
    sent = json.loads(http.requests[0].body)["messages"]
    assert sent[-1] == {"role": "assistant", "content": [{"type": "text", "text": "So far"}]}
    assert [each["role"] for each in sent] == ["user", "assistant"]
