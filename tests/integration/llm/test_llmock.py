"""Both wires against llmock (PyPI), which breaks its answers and streams on demand and judges how
clients cope."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

import pytest
from llmock.pytest_plugin import LLMock
from llmock.scenarios import Reply, ToolCall

from application.models.ports import (
    LanguageModel,
    ModelError,
    ModelReply,
    ModelRetrying,
    RetryLimits,
    TextDelta,
    ToolChoice,
)
from domain.json_value import JsonObject
from domain.model_providers.provider import ProviderKind
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.exchange import ReplyLimits
from infrastructure.llm.provider_http import AiohttpProviders
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.retrying import RetryingModels, RetryPlan
from tests.builders import a_tool
from tests.unit.llm.model_requests import (
    PIXEL,
    a_request,
    a_result,
    a_tool_message,
    a_use,
    a_user_message,
    all_events,
    an_assistant_message,
    reply_of,
)

WIRES = (ProviderKind.OPENAI, ProviderKind.ANTHROPIC)
KEY = "sk-planted-key-1234567890"
LONG = "one two three four five six seven eight nine ten"
TOOL = a_tool("mcp__clock__now", description="What time is it?")


class Wire:
    """One provider of llmock, and a model of it over our adapter."""

    def __init__(self, kind: ProviderKind, llmock: LLMock, http: AiohttpProviders) -> None:
        self.name = f"{kind}:test-model"
        self.llmock = llmock
        self._provider = ProviderConfig(name=kind.value, kind=kind, base_url=llmock.base_url(kind.value), api_key=KEY)
        self._http = http

    def model(self, *, stall_s: float = 20.0) -> LanguageModel:
        reply_limits = ReplyLimits(stall_s=stall_s, reply_s=stall_s)
        return ProviderModels(
            http=self._http,
            guarded_http=self._http,
            outbound=EgressPolicy(),
            reply_limits=reply_limits,
        ).open(self._provider)

    async def error(self, model: LanguageModel | None = None) -> ModelError:
        with pytest.raises(ModelError) as raised:
            await all_events((model or self.model()).stream(a_request(self.name)))
        return raised.value


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest, llmock: LLMock, http: AiohttpProviders) -> Wire:
    return Wire(request.param, llmock, http)


@pytest.mark.requirement("A2")
async def test_text_and_usage_arrive(wire: Wire) -> None:
    wire.llmock.reply(LONG)
    reply = await reply_of(wire.model().stream(a_request(wire.name)))
    assert (reply.text, reply.finish_reason, reply.model) == (LONG, "stop", wire.name)
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    assert wire.llmock.last_request.stream is True


async def test_parallel_calls_arrive_with_their_arguments(wire: Wire) -> None:
    from_model: JsonObject = {"zone": "Europe/Berlin", "nested": {"list": [1, 2.5, None, "ü"]}}
    add_calls(wire.llmock, ("mcp__clock__now", from_model), ("mcp__files__echo", {}))
    reply = await reply_of(wire.model().stream(a_request(wire.name, tools=(TOOL,))))
    assert [(call.name, call.arguments, call.malformed) for call in reply.calls] == [
        ("mcp__clock__now", from_model, None),
        ("mcp__files__echo", {}, None),
    ]
    assert reply.finish_reason == "tool_calls"


async def test_a_conversation_goes_from_call_to_answer(wire: Wire) -> None:
    question = a_user_message("What time is it?")
    (call,) = (await reply_of(wire.model().stream(a_request(wire.name, messages=(question,), tools=(TOOL,))))).calls
    use = a_use(name=call.name, params=call.arguments)
    history = (question, an_assistant_message(use, text=""), a_tool_message(a_result(use, "noon", images=(PIXEL,))))
    reply = await reply_of(wire.model().stream(a_request(wire.name, turn=2, messages=history)))
    assert reply.text
    assert reply.calls == ()
    assert [record.status for record in wire.llmock.requests] == [200, 200]


@pytest.mark.requirement("A7")
async def test_tool_choice_none_brings_text_though_tools_are_offered(wire: Wire) -> None:
    request = a_request(wire.name, tools=(TOOL,), tool_choice=ToolChoice.NONE)
    reply = await reply_of(wire.model().stream(request))
    assert reply.text
    assert reply.calls == ()


@pytest.mark.requirement("A9")
async def test_arguments_that_are_not_json_are_kept_as_text(wire: Wire) -> None:
    wire.llmock.break_tool_call("malformed_arguments")
    (call,) = (await reply_of(wire.model().stream(a_request(wire.name, tools=(TOOL,))))).calls
    assert call.arguments == {}
    assert call.malformed


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "model_rejected", False),
        (401, "model_auth", False),
        (403, "model_auth", False),
        (404, "model_rejected", False),
        (429, "model_rate_limited", True),
        (500, "model_unavailable", True),
        (529, "model_unavailable", True),
    ],
)
async def test_an_error_has_its_code(wire: Wire, status: int, code: str, retryable: bool) -> None:
    wire.llmock.fail(status, message=f"secret {KEY}")
    error = await wire.error()
    assert (error.code, error.retryable) == (code, retryable)
    assert "secret" not in error.detail


async def test_how_long_to_wait_is_passed_on(wire: Wire) -> None:
    wire.llmock.rate_limit(retry_after=3)
    assert (await wire.error()).retry_after_s == 3.0


@pytest.mark.parametrize("overflow", ["scripted", "measured"])
async def test_too_long_a_conversation_is_told_apart(wire: Wire, overflow: str) -> None:
    if overflow == "scripted" and wire.name.startswith("openai"):
        wire.llmock.context_overflow()
    else:
        wire.llmock.limits(context_window=1)
    error = await wire.error()
    assert (error.code, error.retryable) == ("model_context_exceeded", False)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(
    ("break_stream", "code"),
    [
        (lambda llmock: llmock.disconnect(after_chunks=3), "model_unavailable"),
        (lambda llmock: llmock.disconnect(after_chunks=0), "model_unavailable"),
        (lambda llmock: llmock.truncate(after_chunks=3), "model_invalid_reply"),
        (lambda llmock: llmock.truncate(after_chunks=0), "model_invalid_reply"),
        (lambda llmock: llmock.corrupt(after_chunks=3), "model_invalid_reply"),
    ],
    ids=["disconnected", "disconnected at once", "truncated", "truncated at once", "malformed"],
)
async def test_a_broken_stream_is_an_error_worth_retrying(
    wire: Wire, break_stream: Callable[[LLMock], object], code: str
) -> None:
    wire.llmock.reply(LONG)
    break_stream(wire.llmock)
    error = await wire.error()
    assert (error.code, error.retryable) == (code, True)


@pytest.mark.requirement("A11")
async def test_a_silent_stream_is_ended(wire: Wire) -> None:
    async def stalled(stall_s: float) -> ModelError:
        wire.llmock.reply(LONG).stall(after_chunks=3, seconds=60)
        return await wire.error(wire.model(stall_s=stall_s))

    stall_s, error = 0.3, await stalled(0.3)
    while error.code == "model_timeout" and stall_s < 20:  # a busy machine may need longer to begin
        stall_s *= 2
        error = await stalled(stall_s)
    assert (error.code, error.retryable) == ("model_stalled", True)
    assert await cut_off(wire.llmock)


@pytest.mark.requirement("A11")
async def test_an_answer_that_never_begins_times_out(wire: Wire) -> None:
    wire.llmock.delay(6)
    error = await wire.error(wire.model(stall_s=0.3))
    assert (error.code, error.retryable) == ("model_timeout", True)


@pytest.mark.requirement("A12")
async def test_closing_the_stream_ends_the_request(wire: Wire) -> None:
    wire.llmock.reply(LONG).stall(after_chunks=5, seconds=30)
    events = wire.model().stream(a_request(wire.name))
    async with aclosing(events):  # type: ignore[type-var]
        assert isinstance(await anext(events), TextDelta)
    assert await cut_off(wire.llmock)


@pytest.mark.requirement("A12")
async def test_cancelling_the_reader_ends_the_request(wire: Wire) -> None:
    wire.llmock.reply(LONG).stall(after_chunks=5, seconds=30)
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in wire.model().stream(a_request(wire.name)):
            begun.set()

    reading = asyncio.create_task(read())
    await begun.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await cut_off(wire.llmock)


@pytest.mark.requirement("A11")
async def test_retries_get_through_every_kind_of_fault_and_llmock_finds_no_fault_with_us(wire: Wire) -> None:
    wire.llmock.rate_limit(retry_after=0.2).fail(503)
    wire.llmock.disconnect(after_chunks=2).truncate(after_chunks=2).corrupt(after_chunks=2)
    wire.llmock.reply(LONG, times=None)
    plan = RetryPlan(base_s=0.02, cap_s=1.0)
    retrying = RetryingModels(wire.model(), plan=plan, chance=lambda: 0.99)
    events = await all_events(retrying.stream(a_request(wire.name, retries=RetryLimits(attempts=8)), ()))
    assert [event.reason for event in events if isinstance(event, ModelRetrying)] == [
        "model_rate_limited",
        "model_unavailable",
        "model_unavailable",
        "model_invalid_reply",
        "model_invalid_reply",
    ]
    last_retry = max(index for index, event in enumerate(events) if isinstance(event, ModelRetrying))
    text = "".join(event.text for event in events[last_retry:] if isinstance(event, TextDelta))
    assert isinstance(events[-1], ModelReply)
    assert text == events[-1].text == LONG
    assert wire.llmock.verdict().errors == ()


@pytest.mark.parametrize("status", [200, 400, 401, 500])
async def test_the_key_is_in_no_log_and_no_error(wire: Wire, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    if status == 200:
        wire.llmock.reply(LONG).corrupt(after_chunks=2)
    else:
        wire.llmock.fail(status, message=f"Incorrect key {KEY}", code=KEY)
    retrying = RetryingModels(wire.model())
    with pytest.raises(ModelError) as raised:
        await all_events(retrying.stream(a_request(wire.name, retries=RetryLimits(attempts=1)), ()))
    chain: list[BaseException | None] = [raised.value, raised.value.__cause__, raised.value.__context__]
    shown = [repr(error) + str(error) + repr(vars(error)) for error in chain if error is not None]
    logged = [record.getMessage() + repr(vars(record)) for record in caplog.records]
    assert any("model call failed" in line for line in logged)
    assert not [text for text in (*shown, *logged) if KEY in text]


def add_calls(llmock: LLMock, *calls: tuple[str, JsonObject]) -> None:
    llmock.add(Reply(tool_calls=tuple(ToolCall(name, arguments) for name, arguments in calls)))


async def cut_off(llmock: LLMock) -> bool:
    """Whether the server noticed that its last stream was not wanted any more; waits for it to
    notice."""
    record = await asyncio.to_thread(lambda: llmock.last_request)
    return not record.completed
