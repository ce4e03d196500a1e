"""One exchange with a provider, at the edges that mock providers do not reach."""

from collections.abc import AsyncIterator, Callable, Iterable

import httpx
import pytest

from application.models.ports import ModelError, TextDelta
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.anthropic import AnthropicModels
from infrastructure.llm.exchange import Patience
from infrastructure.llm.openai_compatible import OpenAICompatibleModels
from infrastructure.llm.providers import ProviderConfig
from tests.unit.llm.model_requests import a_request, all_events, reply_of

OPENAI = ProviderConfig(name="openai", kind=ProviderKind.OPENAI, base_url="http://models.test/v1/", api_key="k")
ANTHROPIC = ProviderConfig(name="anthropic", kind=ProviderKind.ANTHROPIC, base_url="http://models.test", api_key="k")

HELLO = b'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
WHOLE = b'{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}'


class Chunks(httpx.AsyncByteStream):
    """A body that comes in pieces, with something happening before each."""

    def __init__(self, chunks: Iterable[bytes], before_each: Callable[[], None] = lambda: None) -> None:
        self._chunks = chunks
        self._before_each = before_each
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            self._before_each()
            self.taken += 1
            yield chunk


def an_openai_model(
    response: httpx.Response,
    *,
    streaming: bool = True,
    patience: Patience | None = None,
    monotonic: Callable[[], float] = lambda: 0.0,
) -> OpenAICompatibleModels:
    http = httpx.MockTransport(lambda _: response)
    return OpenAICompatibleModels(
        provider=OPENAI, http=http, streaming=streaming, patience=patience, monotonic=monotonic
    )


def an_event_stream(*chunks: bytes) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Chunks(chunks))


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8"])
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_whole_answer_is_taken_whatever_was_asked_for(content_type: str, streaming: bool) -> None:
    response = httpx.Response(200, headers={"content-type": content_type}, content=WHOLE)
    reply = await reply_of(an_openai_model(response, streaming=streaming).stream(a_request()))
    assert reply.text == "Hello"


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
async def test_a_stream_that_does_not_say_so_is_taken(headers: dict[str, str]) -> None:
    response = httpx.Response(200, headers=headers, stream=Chunks([HELLO, STOP, DONE]))
    assert (await reply_of(an_openai_model(response).stream(a_request()))).text == "Hello"


async def test_pieces_that_arrive_together_are_one_delta() -> None:
    events = await all_events(an_openai_model(an_event_stream(HELLO + HELLO, STOP + DONE)).stream(a_request()))
    assert events[0] == TextDelta(text="HelloHello")
    assert len(events) == 2


async def test_a_reply_is_complete_without_the_closing_mark() -> None:
    assert (await reply_of(an_openai_model(an_event_stream(HELLO, STOP)).stream(a_request()))).text == "Hello"


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("sign_of_life", [b": keep-alive\n\n", b": half a comm"])
async def test_a_stream_of_nothing_but_signs_of_life_is_ended(sign_of_life: bytes) -> None:
    now = 0.0

    def pass_ten_seconds() -> None:
        nonlocal now
        now += 10.0

    body = Chunks([HELLO, *[sign_of_life] * 100, STOP], pass_ten_seconds)
    model = an_openai_model(
        httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=body),
        patience=Patience(stall_s=60.0),
        monotonic=lambda: now,
    )
    with pytest.raises(ModelError) as raised:
        await all_events(model.stream(a_request()))
    assert (raised.value.code, raised.value.retryable) == ("model_stalled", True)
    assert body.taken == 8


async def test_a_page_that_is_no_reply_is_an_invalid_reply() -> None:
    response = httpx.Response(200, headers={"content-type": "text/html"}, content=b"<html>log in first</html>")
    with pytest.raises(ModelError) as raised:
        await all_events(an_openai_model(response).stream(a_request()))
    assert raised.value.code == "model_invalid_reply"


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_reply_without_end_is_cut_off(streaming: bool) -> None:
    headers = {"content-type": "text/event-stream" if streaming else "application/json"}
    body = Chunks([HELLO] * 1000)
    model = an_openai_model(
        httpx.Response(200, headers=headers, stream=body),
        streaming=streaming,
        patience=Patience(max_reply_bytes=10 * len(HELLO)),
    )
    with pytest.raises(ModelError) as raised:
        await all_events(model.stream(a_request()))
    assert raised.value.code == "model_invalid_reply"
    assert body.taken <= 12


async def test_redirects_are_not_followed_so_that_keys_stay_where_they_belong() -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.host)
        return httpx.Response(307, headers={"location": "http://elsewhere.test/"})

    http = httpx.MockTransport(answer)
    with pytest.raises(ModelError) as raised:
        await all_events(OpenAICompatibleModels(provider=OPENAI, http=http).stream(a_request()))
    assert raised.value.code == "model_rejected"
    assert seen == ["models.test"]


async def test_keys_and_versions_travel_in_their_headers() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(500)

    http = httpx.MockTransport(answer)
    openai = OpenAICompatibleModels(provider=OPENAI, http=http)
    for model in (openai, AnthropicModels(provider=ANTHROPIC, http=http)):
        with pytest.raises(ModelError):
            await all_events(model.stream(a_request()))
    assert [str(request.url) for request in seen] == [
        "http://models.test/v1/chat/completions",
        "http://models.test/v1/messages",
    ]
    assert seen[0].headers["authorization"] == "Bearer k"
    assert (seen[1].headers["x-api-key"], seen[1].headers["anthropic-version"]) == ("k", "2023-06-01")
    assert {request.headers["content-type"] for request in seen} == {"application/json"}
