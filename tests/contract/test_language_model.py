"""What holds for every LanguageModel: scripted, and over all wires against a mock provider that
others wrote."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import pytest
from llmock.pytest_plugin import LLMock
from llmock.scenarios import Reply, ToolCall

from application.models.ports import LanguageModel, ModelError, ModelEvent, ModelReply, TextDelta, ToolChoice
from domain.json_value import JsonObject
from domain.model_providers.provider import ProviderKind, ProviderWire
from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.provider_http import AiohttpProviders, provider_http
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.routing import RoutedModels
from infrastructure.llm.scripted import ScriptedModels
from tests.builders import a_tool
from tests.unit.llm.model_requests import SomeProviders, a_request, all_events

TEXT = "one two three four five six seven eight nine ten eleven twelve"
CALLS: tuple[tuple[str, JsonObject], ...] = (
    ("mcp__files__echo", {"text": "hi", "n": [1, {"deep": None}]}),
    ("other", {}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A model under test. `say` prepares its next reply; `say_and_hang` one that stops in the
    middle; `was_cut_off` tells whether the other side noticed that nobody reads any more; `refuse`
    makes the next request fail."""

    name: str
    model: LanguageModel
    say: Callable[[str, tuple[tuple[str, JsonObject], ...]], None]
    say_and_hang: Callable[[str], None]
    was_cut_off: Callable[[], Awaitable[bool]]
    refuse: Callable[[], None]


class HangingSleep:
    """Stands in for the pauses between pieces: the third one never ends, and is told when it is
    given up."""

    def __init__(self) -> None:
        self.calls = 0
        self.given_up = asyncio.Event()

    async def __call__(self, _seconds: float) -> None:
        self.calls += 1
        if self.calls > 2:
            try:
                await asyncio.Event().wait()
            finally:
                self.given_up.set()


def scripted_backend(folder: Path) -> Backend:
    sleep = HangingSleep()
    script = folder / "s.yaml"

    def write(text: str, calls: tuple[tuple[str, JsonObject], ...] = (), delay_ms: int = 0) -> None:
        turn = {"text": text, "calls": [{"tool": name, "arguments": arguments} for name, arguments in calls]}
        script.write_text(json.dumps({"delay_ms": delay_ms, "chunk_chars": 5, "turns": [turn]}))

    async def was_cut_off() -> bool:
        # Between two pieces nothing is going on that could be cut off.
        return sleep.calls <= 2 or await asyncio.wait_for(sleep.given_up.wait(), 60)

    scripted = ScriptedModels([folder], sleep=sleep)
    return Backend(
        name="scripted:s.yaml",
        model=RoutedModels(providers=SomeProviders(), open_provider=_no_provider, scripted=scripted),
        say=write,
        say_and_hang=lambda text: write(text, delay_ms=1),
        was_cut_off=was_cut_off,
        refuse=lambda: _void(script.write_text("turns: 7")),
    )


def _no_provider(provider: ProviderConfig) -> LanguageModel:
    raise AssertionError(provider)


def provider_backend(
    kind: ProviderKind, wire: ProviderWire, llmock: LLMock, http: AiohttpProviders, folder: Path
) -> Backend:
    provider = ProviderConfig(
        name=kind.value, kind=kind, wire=wire, base_url=llmock.base_url(kind.value), api_key="any"
    )

    def say(text: str, calls: tuple[tuple[str, JsonObject], ...]) -> None:
        llmock.add(Reply(text=text, tool_calls=tuple(ToolCall(name, arguments) for name, arguments in calls)))

    async def was_cut_off() -> bool:
        record = await asyncio.to_thread(lambda: llmock.last_request)
        return not record.completed

    return Backend(
        name=f"{kind}:test",
        model=RoutedModels(
            providers=SomeProviders(provider),
            open_provider=ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy()).open,
            scripted=ScriptedModels([folder]),
        ),
        say=say,
        say_and_hang=lambda text: _void(llmock.reply(text).stall(after_chunks=6, seconds=30)),
        was_cut_off=was_cut_off,
        refuse=lambda: _void(llmock.fail(400)),
    )


def _void(_: object) -> None:
    return None


WIRES = {
    "openai-chat": (ProviderKind.OPENAI, ProviderWire.CHAT),
    "openai-responses": (ProviderKind.OPENAI, ProviderWire.RESPONSES),
    "anthropic": (ProviderKind.ANTHROPIC, ProviderWire.AUTO),
}


@pytest.fixture(params=["scripted", *WIRES])
async def backend(request: pytest.FixtureRequest, tmp_path: Path, llmock: LLMock) -> AsyncIterator[Backend]:
    if request.param == "scripted":
        yield scripted_backend(tmp_path)
        return
    async with aclosing(provider_http(HttpClients())) as http:
        yield provider_backend(*WIRES[request.param], llmock, http, tmp_path)


async def events_of(backend: Backend) -> list[ModelEvent]:
    return await all_events(backend.model.stream(a_request(backend.name, tools=(a_tool(),))))


async def test_the_reply_comes_last_and_once_and_the_deltas_make_up_its_text(backend: Backend) -> None:
    backend.say(TEXT, ())
    *deltas, reply = await events_of(backend)
    assert isinstance(reply, ModelReply)
    assert len(deltas) > 0
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == reply.text == TEXT
    assert all(isinstance(delta, TextDelta) and delta.text for delta in deltas)
    assert (reply.model, reply.calls, reply.finish_reason) == (backend.name, (), "stop")
    assert reply.usage.cost_usd is None


async def test_text_and_calls_come_in_one_reply_with_the_calls_in_order(backend: Backend) -> None:
    backend.say(TEXT, CALLS)
    reply = (await events_of(backend))[-1]
    assert isinstance(reply, ModelReply)
    assert reply.text == TEXT
    assert [(call.name, call.arguments) for call in reply.calls] == list(CALLS)
    assert reply.finish_reason == "tool_calls"


async def test_calls_alone_have_no_text(backend: Backend) -> None:
    backend.say("", CALLS)
    assert [type(event) for event in await events_of(backend)] == [ModelReply]


@pytest.mark.requirement("A7")
async def test_with_tool_choice_none_the_reply_is_text(backend: Backend) -> None:
    if backend.name.startswith("scripted"):
        backend.say("", CALLS)
    request = a_request(backend.name, tools=(a_tool(),), tool_choice=ToolChoice.NONE)
    reply = (await all_events(backend.model.stream(request)))[-1]
    assert isinstance(reply, ModelReply)
    assert reply.text
    assert reply.calls == ()


async def test_one_model_serves_several_requests_at_once(backend: Backend) -> None:
    for _ in range(8):
        backend.say(TEXT, CALLS)
    replies = [events[-1] for events in await asyncio.gather(*(events_of(backend) for _ in range(8)))]
    assert [(reply.text, len(reply.calls)) for reply in replies if isinstance(reply, ModelReply)] == [(TEXT, 2)] * 8


@pytest.mark.requirement("A11")
async def test_what_fails_raises_a_model_error(backend: Backend) -> None:
    backend.refuse()
    with pytest.raises(ModelError) as raised:
        await events_of(backend)
    assert (raised.value.code, raised.value.retryable) == ("model_rejected", False)
    assert raised.value.detail


@pytest.mark.requirement("A12")
async def test_closing_the_iterator_ends_the_request(backend: Backend) -> None:
    backend.say_and_hang(TEXT)
    events = backend.model.stream(a_request(backend.name))
    async with aclosing(events):  # type: ignore[type-var]
        assert isinstance(await anext(events), TextDelta)
    assert await backend.was_cut_off()
    with pytest.raises(StopAsyncIteration):
        await anext(events)


@pytest.mark.requirement("A12")
async def test_cancelling_the_reader_ends_the_request(backend: Backend) -> None:
    backend.say_and_hang(TEXT)
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in backend.model.stream(a_request(backend.name)):
            begun.set()

    reading = asyncio.create_task(read())
    await begun.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await backend.was_cut_off()
