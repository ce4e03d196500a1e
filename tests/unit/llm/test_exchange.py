"""One exchange with a provider, at the edges that mock providers do not reach."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from application.models.ports import ModelError, ModelReply, TextDelta
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.anthropic import AnthropicModels
from infrastructure.llm.exchange import ModelExchange, ReplyLimits
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.openai_reply import OpenAIReply
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.responses import ResponsesModels
from tests.unit.llm.answers import AnsweringHttp, SomeAnswer
from tests.unit.llm.model_requests import a_request, all_events, reply_of

OPENAI = ProviderConfig(name="openai", kind=ProviderKind.OPENAI, base_url="http://models.test/v1/", api_key="k")
ANTHROPIC = ProviderConfig(name="anthropic", kind=ProviderKind.ANTHROPIC, base_url="http://models.test", api_key="k")

HELLO = b'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
WHOLE = b'{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}'


def an_openai_model(
    answer: SomeAnswer,
    *,
    reply_limits: ReplyLimits | None = None,
    monotonic: Callable[[], float] = lambda: 0.0,
) -> OpenAICompatibleModels:
    return OpenAICompatibleModels(
        provider=OPENAI, http=AnsweringHttp(answer), reply_limits=reply_limits, monotonic=monotonic
    )


def an_event_stream(*pieces: bytes, breaks_off: bool = False) -> SomeAnswer:
    return SomeAnswer(headers={"content-type": "text/event-stream"}, pieces=pieces, breaks_off=breaks_off)


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8"])
async def test_a_whole_answer_is_taken_from_a_server_that_does_not_stream(content_type: str) -> None:
    answer = SomeAnswer(headers={"content-type": content_type}, whole=WHOLE)
    reply = await reply_of(an_openai_model(answer).stream(a_request()))
    assert reply.text == "Hello"


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
async def test_a_stream_that_does_not_say_so_is_taken(headers: dict[str, str]) -> None:
    answer = SomeAnswer(headers=headers, pieces=[HELLO, STOP, DONE])
    assert (await reply_of(an_openai_model(answer).stream(a_request()))).text == "Hello"


async def test_an_event_without_data_says_nothing() -> None:
    answer = an_event_stream(b"id: 1\n\ndata:\n\n" + HELLO, STOP + DONE)
    assert (await reply_of(an_openai_model(answer).stream(a_request()))).text == "Hello"


LARGE = b'data: {"choices":[{"delta":{"content":"' + b"x" * 4_200_000 + b'"}}]}\n\n'


@pytest.mark.parametrize("pieces", [[LARGE], [LARGE[:-2], STOP]], ids=["whole", "without an end"])
async def test_an_event_that_is_too_large_ends_the_stream(pieces: list[bytes]) -> None:
    answer = an_event_stream(HELLO, *pieces, *[STOP] * 20)
    with pytest.raises(ModelError) as raised:
        await all_events(an_openai_model(answer).stream(a_request()))
    assert raised.value.code == "model_invalid_reply"
    assert answer.came <= 2
    assert answer.is_closed


async def test_pieces_that_arrive_together_are_one_delta() -> None:
    events = await all_events(an_openai_model(an_event_stream(HELLO + HELLO, STOP + DONE)).stream(a_request()))
    assert events[0] == TextDelta(text="HelloHello")
    assert len(events) == 2


async def test_a_reply_is_complete_without_the_closing_mark() -> None:
    assert (await reply_of(an_openai_model(an_event_stream(HELLO, STOP)).stream(a_request()))).text == "Hello"


async def test_events_whose_type_a_reader_does_not_need_are_not_decoded() -> None:
    completed = b'{"type":"response.completed","response":{"status":"completed","output":[]}}'
    answer = an_event_stream(
        b"event: response.in_progress\ndata: not decoded\n\n",
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"Hello"}\n\n'
        b"event: response.output_text.done\ndata: not decoded\n\n",
        b"event: response.completed\ndata: " + completed + b"\n\n",
    )
    model = ResponsesModels(provider=OPENAI, http=AnsweringHttp(answer))
    assert (await reply_of(model.stream(a_request()))).text == "Hello"


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("sign_of_life", [b": keep-alive\n\n", b": half a comm"])
async def test_a_stream_of_nothing_but_signs_of_life_is_ended(sign_of_life: bytes) -> None:
    now = 0.0

    def pass_ten_seconds() -> None:
        nonlocal now
        now += 10.0

    answer = SomeAnswer(
        headers={"content-type": "text/event-stream"},
        pieces=[HELLO, *[sign_of_life] * 100, STOP],
        before_each=pass_ten_seconds,
    )
    model = an_openai_model(answer, reply_limits=ReplyLimits(stall_s=60.0), monotonic=lambda: now)
    with pytest.raises(ModelError) as raised:
        await all_events(model.stream(a_request()))
    assert (raised.value.code, raised.value.retryable) == ("model_stalled", True)
    assert (answer.came, answer.is_closed) == (8, True)


class UnreadableReply(OpenAIReply):
    """Fails when it is put together."""

    def __init__(self, fault: Exception) -> None:
        super().__init__("openai:x")
        self._fault = fault

    def reply(self) -> ModelReply:
        raise self._fault


@pytest.mark.parametrize("fault", [RecursionError(), msgspec.DecodeError(), msgspec.ValidationError()], ids=repr)
async def test_a_reply_that_cannot_be_put_together_is_an_invalid_reply(fault: Exception) -> None:
    answer = an_event_stream(HELLO, STOP, DONE)
    exchange = ModelExchange(
        provider=AnsweringHttp(answer).to("http://models.test/v1", {}),
        reply_limits=ReplyLimits(),
        monotonic=lambda: 0.0,
        redactor=OPENAI.redactor(),
    )
    with pytest.raises(ModelError) as raised:
        await all_events(exchange.run(b"{}", UnreadableReply(fault)))
    assert (raised.value.code, raised.value.retryable) == ("model_invalid_reply", True)
    assert answer.is_closed


async def test_a_page_that_is_no_reply_is_an_invalid_reply() -> None:
    answer = SomeAnswer(headers={"content-type": "text/html"}, pieces=[b"<html>log in first</html>"])
    with pytest.raises(ModelError) as raised:
        await all_events(an_openai_model(answer).stream(a_request()))
    assert raised.value.code == "model_invalid_reply"


@pytest.mark.parametrize("content_type", ["text/event-stream", "application/json"])
async def test_a_reply_without_end_is_cut_off(content_type: str) -> None:
    headers = {"content-type": content_type}
    answer = SomeAnswer(headers=headers, pieces=[HELLO] * 1000)
    model = an_openai_model(
        answer,
        reply_limits=ReplyLimits(max_reply_bytes=10 * len(HELLO)),
    )
    with pytest.raises(ModelError) as raised:
        await all_events(model.stream(a_request()))
    assert raised.value.code == "model_invalid_reply"
    assert answer.came <= 12
    assert answer.is_closed


async def test_an_answer_that_is_still_compressed_is_none() -> None:
    answer = SomeAnswer(headers={"content-type": "application/json", "content-encoding": "br"}, whole=WHOLE)
    with pytest.raises(ModelError) as raised:
        await all_events(an_openai_model(answer).stream(a_request()))
    assert (raised.value.code, answer.is_closed) == ("model_invalid_reply", True)


async def test_a_reply_that_breaks_off_is_told_as_such_after_what_came_of_it() -> None:
    answer = an_event_stream(HELLO, breaks_off=True)
    stream = an_openai_model(answer).stream(a_request())
    assert await anext(stream) == TextDelta(text="Hello")
    with pytest.raises(ModelError) as raised:
        await anext(stream)
    assert (raised.value.code, raised.value.retryable) == ("model_unavailable", True)
    assert answer.is_closed


async def test_redirects_are_not_followed_so_that_keys_stay_where_they_belong() -> None:
    http = AnsweringHttp(SomeAnswer(307, headers={"location": "http://elsewhere.test/"}))
    with pytest.raises(ModelError) as raised:
        await all_events(OpenAICompatibleModels(provider=OPENAI, http=http).stream(a_request()))
    assert raised.value.code == "model_rejected"
    assert [sent.url for sent in http.requests] == ["http://models.test/v1/chat/completions"]


async def test_keys_and_versions_travel_in_their_headers() -> None:
    http = AnsweringHttp(SomeAnswer(500))
    openai = OpenAICompatibleModels(provider=OPENAI, http=http)
    for model in (openai, AnthropicModels(provider=ANTHROPIC, http=http)):
        with pytest.raises(ModelError):
            await all_events(model.stream(a_request()))
    assert [sent.url for sent in http.requests] == [
        "http://models.test/v1/chat/completions",
        "http://models.test/v1/messages",
    ]
    of_openai, of_anthropic = (sent.headers for sent in http.requests)
    assert of_openai["authorization"] == "Bearer k"
    assert (of_anthropic["x-api-key"], of_anthropic["anthropic-version"]) == ("k", "2023-06-01")
    assert {sent.headers["content-type"] for sent in http.requests} == {"application/json"}


@pytest.mark.requirement("H6", "C7")
@pytest.mark.parametrize("streamed", [True, False])
async def test_the_key_is_taken_out_of_what_the_provider_says(streamed: bool) -> None:
    key = "planted-provider-key-0f3b9e"
    error = b'{"error": {"type": "authentication_error", "message": "%s is no key"}}' % key.encode()
    headers = {"content-type": "text/event-stream"}
    answer = SomeAnswer(headers=headers, pieces=[b"data: %s\n\n" % error]) if streamed else SomeAnswer(401, whole=error)
    for kind, adapter in ((OPENAI, OpenAICompatibleModels), (ANTHROPIC, AnthropicModels)):
        if streamed and adapter is AnthropicModels:
            answer = SomeAnswer(headers=headers, pieces=[b'data: {"type": "error", %s\n\n' % error[1:]])
        model = adapter(provider=replace(kind, api_key=key), http=AnsweringHttp(answer))
        with pytest.raises(ModelError) as raised:
            await all_events(model.stream(a_request()))
        said = raised.value.provider_error
        assert said is not None
        assert (said.status, said.message) == (None if streamed else 401, "[redacted] is no key")
        answer = SomeAnswer(401, whole=error)
