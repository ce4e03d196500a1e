"""AskModel: what is asked, what is published while the model answers, and what a cut answer
costs."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal

import pytest
from pytest_mock import MockerFixture, MockType

from application.models.ports import (
    FallbackModels,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRetrying,
    PriceTable,
    ReasoningDelta,
    RequestedCall,
    TextDelta,
    ToolChoice,
)
from application.policy.canary_guard import CanaryFound
from application.runs.execution.ask_model import (
    BUDGETED_OUTPUT_TOKENS,
    CLOSING_OUTPUT_TOKENS,
    MAX_CALLS_OF_REPLY,
    Answer,
    AskModel,
)
from application.runs.execution.interruption import Interrupted, StopReason, TimeUp
from application.runs.execution.prepare_prompt import Prompt
from application.runs.execution.run_session import RunSession
from application.tracing.ports import GenerationRecord, Tracer
from domain.agents.agent import Agent
from domain.runs.events import NewEvent, RunEventType
from domain.runs.finish_reason import FinishReason
from domain.runs.limits import LimitSettings
from domain.runs.usage import ModelUsage
from tests.builders import a_message, an_agent
from tests.doubles.scripted_model import Gate, ModelTurn, ScriptedModel
from tests.doubles.surroundings import FixedClock
from tests.run_builders import CANARY, ECHO, a_guarded_agent, a_session, a_toolset, some_usage

FALLBACK = "scripted:other.yaml"
MESSAGES = (a_message(),)
UNPRICED = some_usage(cost_usd=None)
CUT_OFF = ModelError("model_stalled", "The model sent nothing more.", retryable=True)
PROMPT = Prompt(toolset=a_toolset(), system=f"Never say {CANARY}.", fixed_bytes=400)


class Ports:
    """A model that plays turns, a price, and a mock of tracing."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.models: FallbackModels = ScriptedModel()
        self.prices: MockType = mocker.create_autospec(PriceTable, instance=True)
        self.prices.cost_usd.return_value = Decimal("0.5")
        self.tracer: MockType = mocker.create_autospec(Tracer, instance=True)
        self.use(an_agent(fallback_models=(FALLBACK,)))

    def use(self, agent: Agent) -> None:
        self.session: RunSession = a_session(agent=agent, tracer=self.tracer)

    def play(self, turn: ModelTurn) -> ScriptedModel:
        self.models = model = ScriptedModel([turn])
        return model

    async def ask(self, *, closing: bool = False) -> Answer:
        asking = AskModel(models=self.models, prices=self.prices, tracer=self.tracer, clock=FixedClock())
        return await asking.execute(self.session, PROMPT, MESSAGES, closing=closing)

    async def published(self) -> list[NewEvent]:
        return list(await self.session.buffer.take())

    @property
    def traced(self) -> GenerationRecord:
        [call] = self.tracer.generation.call_args_list
        record: GenerationRecord = call.args[0]
        return record


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- the request ---


@pytest.mark.requirement("A2", "A11")
async def test_the_model_is_asked_with_the_tools_and_the_fallbacks_of_the_agent(ports: Ports) -> None:
    model = ports.play(ModelTurn(text="Hi."))

    await ports.ask()

    [request] = model.requests
    assert (request.model, request.system, request.messages) == (ports.session.model, PROMPT.system, MESSAGES)
    assert (request.tools, request.tool_choice) == (PROMPT.toolset.shown, ToolChoice.AUTO)
    assert (request.turn, request.max_output_tokens) == (1, None)
    assert model.fallbacks == [(FALLBACK,)]


@pytest.mark.requirement("A7")
@pytest.mark.parametrize(
    ("closing", "limits", "reserved", "cap"),
    [
        (True, LimitSettings(), None, None),
        (True, LimitSettings(max_tokens=9), None, CLOSING_OUTPUT_TOKENS),
        (True, LimitSettings(max_cost_usd=Decimal(1)), None, CLOSING_OUTPUT_TOKENS),
        (True, LimitSettings(), Decimal(1), CLOSING_OUTPUT_TOKENS),
        (False, LimitSettings(max_tokens=9), None, None),
        (False, LimitSettings(), Decimal(1), BUDGETED_OUTPUT_TOKENS),
    ],
    ids=["closing", "closing, tokens", "closing, cost", "closing, budget", "tokens", "budget"],
)
async def test_the_output_is_bounded_where_it_must_be_paid_from_a_reserve(
    ports: Ports, closing: bool, limits: LimitSettings, reserved: Decimal | None, cap: int | None
) -> None:
    ports.use(an_agent(limits=limits))
    ports.session.kept_reserve_usd = reserved
    model = ports.play(ModelTurn(text="Hi."))

    await ports.ask(closing=closing)

    [request] = model.requests
    assert request.max_output_tokens == cap
    assert request.tool_choice is (ToolChoice.NONE if closing else ToolChoice.AUTO)


# --- the answer ---


@pytest.mark.requirement("A2", "A10")
async def test_the_text_is_published_under_the_id_of_the_message_and_the_reply_has_its_price(ports: Ports) -> None:
    ports.play(ModelTurn(text="It is noon.", usage=UNPRICED))

    answer = await ports.ask()

    [event] = await ports.published()
    assert (event.type, event.data) == (
        RunEventType.MESSAGE_DELTA,
        {"message_id": answer.message_id, "text": "It is noon."},
    )
    assert answer.reply.usage == some_usage(cost_usd="0.5")
    assert ports.session.abandoned == ()


@pytest.mark.requirement("A10")
@pytest.mark.parametrize(
    ("usage", "price", "cost_usd"),
    [(some_usage(cost_usd="0.2"), Decimal("0.5"), Decimal("0.2")), (UNPRICED, None, None)],
    ids=["priced by the provider", "no price"],
)
async def test_the_price_of_the_provider_comes_first_and_an_unpriced_model_has_none(
    ports: Ports, usage: ModelUsage, price: Decimal | None, cost_usd: Decimal | None
) -> None:
    ports.prices.cost_usd.return_value = price
    ports.play(ModelTurn(text="Hi.", usage=usage))

    assert (await ports.ask()).reply.usage.cost_usd == cost_usd


@pytest.mark.requirement("G1")
async def test_the_model_call_is_traced_with_its_reply(ports: Ports) -> None:
    ports.play(ModelTurn(text="Hi."))

    answer = await ports.ask()

    assert (ports.traced.reply, ports.traced.error_code, ports.traced.turn) == (answer.reply, None, 1)


# --- attempts that fail ---


@pytest.mark.requirement("A10", "A11")
async def test_text_of_an_attempt_that_fails_is_taken_back_and_paid_for_by_an_estimate(ports: Ports) -> None:
    retrying = ModelRetrying(model=FALLBACK, attempt=2, reason="model_stalled", wait_s=7.25)
    ports.play(ModelTurn(events=(TextDelta(text="It is"), retrying), text="It is noon."))

    answer = await ports.ask()

    first, discarded, retried, second = await ports.published()
    assert discarded.type is RunEventType.MESSAGE_DISCARDED
    assert (discarded.data["message_id"], discarded.data["reason"]) == (first.data["message_id"], "model_stalled")
    assert (retried.type, retried.data) == (
        RunEventType.MODEL_RETRYING,
        {"model": FALLBACK, "attempt": 2, "wait_s": 7.25},
    )
    assert second.data["message_id"] == answer.message_id != first.data["message_id"]
    [spent] = ports.session.abandoned
    assert (spent.model, spent.usage.cost_usd) == (ports.session.model, Decimal("0.5"))
    assert spent.usage.input_tokens > 0


@pytest.mark.requirement("A10", "A11")
async def test_an_attempt_that_fails_before_its_reply_begins_costs_nothing(ports: Ports) -> None:
    ports.play(ModelTurn(error=CUT_OFF))

    with pytest.raises(ModelError):
        await ports.ask()

    assert ports.session.abandoned == ()
    assert await ports.published() == []


@pytest.mark.requirement("A11", "G1")
async def test_when_all_models_fail_the_text_is_taken_back_and_the_error_is_raised_and_traced(ports: Ports) -> None:
    ports.play(ModelTurn(text="It is", error=CUT_OFF))

    with pytest.raises(ModelError) as raised:
        await ports.ask()

    assert raised.value is CUT_OFF
    assert [event.type for event in await ports.published()] == [
        RunEventType.MESSAGE_DELTA,
        RunEventType.MESSAGE_DISCARDED,
    ]
    assert (ports.traced.reply, ports.traced.error_code) == (None, "model_stalled")
    assert len(ports.session.abandoned) == 1
    assert ports.session.unfinished is None


async def test_a_stream_without_a_reply_is_an_error_of_the_model(ports: Ports, mocker: MockerFixture) -> None:
    async def stream(*_: object) -> AsyncIterator[ModelEvent]:
        yield TextDelta(text="It is")

    ports.models = models = mocker.create_autospec(FallbackModels, instance=True)
    models.stream.side_effect = stream

    with pytest.raises(ModelError) as raised:
        await ports.ask()

    assert raised.value.code == "model_invalid_reply"


@pytest.mark.requirement("A7")
async def test_a_reply_with_thousands_of_calls_is_refused_whole(ports: Ports, mocker: MockerFixture) -> None:
    call = RequestedCall(name="mcp__s__read", arguments={})
    reply = ModelReply(
        model="scripted:demo.yaml",
        text="",
        calls=(call,) * (MAX_CALLS_OF_REPLY + 1),
        usage=ModelUsage(),
        finish_reason=FinishReason.TOOL_CALLS,
    )

    async def stream(*_: object) -> AsyncIterator[ModelEvent]:
        yield reply

    ports.models = models = mocker.create_autospec(FallbackModels, instance=True)
    models.stream.side_effect = stream

    with pytest.raises(ModelError) as raised:
        await ports.ask()

    assert (raised.value.code, raised.value.retryable) == ("model_invalid_reply", False)


# --- stops ---


@pytest.mark.requirement("A12")
async def test_a_stop_ends_the_wait_on_the_model_at_once(ports: Ports) -> None:
    gate = Gate()
    model = ports.play(ModelTurn(text="It is", gate=gate))

    async with asyncio.timeout(10):
        asking = asyncio.create_task(ports.ask())
        await gate.reached.wait()
        ports.session.stop.fire(StopReason.CANCELLED)
        with pytest.raises(Interrupted):
            await asking

    assert (model.cancelled, ports.traced.error_code) == (1, "run_cancelled")
    assert (await ports.published())[-1].type is RunEventType.MESSAGE_DISCARDED


@pytest.mark.requirement("A7")
async def test_a_model_that_does_not_answer_in_the_time_of_the_run_is_given_up(ports: Ports) -> None:
    ports.use(an_agent(limits=LimitSettings(timeout_s=0.01)))
    model = ports.play(ModelTurn(gate=Gate()))

    async with asyncio.timeout(10):
        with pytest.raises(TimeUp):
            await ports.ask()

    assert (model.cancelled, ports.traced.error_code) == (1, "run_timeout")


@pytest.mark.requirement("A12")
async def test_a_run_that_was_stopped_before_asks_no_model(ports: Ports) -> None:
    model = ports.play(ModelTurn(text="Hi."))
    ports.session.stop.fire(StopReason.CANCELLED)

    with pytest.raises(Interrupted):
        await ports.ask()

    assert model.requests == []


# --- canary tokens ---


@pytest.mark.requirement("C4")
async def test_a_canary_token_in_the_text_ends_the_stream_and_is_not_published(ports: Ports) -> None:
    ports.use(a_guarded_agent())
    ports.play(ModelTurn(events=(TextDelta(text="It is " + CANARY[:9]), TextDelta(text=CANARY[9:])), text="unread"))

    with pytest.raises(CanaryFound) as found:
        await ports.ask()

    published = "".join(str(event.data["text"]) for event in await ports.published())
    assert (found.value.canary_id, published) == ("vault", "It is [canary:vault]")
    assert found.value.reply is not None
    assert found.value.reply.text == published
    assert CANARY not in ports.traced.request.system


@pytest.mark.requirement("C4")
async def test_a_canary_token_in_the_arguments_of_a_call_is_raised_with_the_clean_reply(ports: Ports) -> None:
    ports.use(a_guarded_agent())
    ports.play(ModelTurn(calls=(RequestedCall(name=ECHO, arguments={"text": CANARY}),)))

    with pytest.raises(CanaryFound) as found:
        await ports.ask()

    reply = found.value.reply
    assert isinstance(reply, ModelReply)
    assert (found.value.call_index, reply.calls[0].arguments) == (0, {"text": "[canary:vault]"})


# --- reasoning ---

REASONED = (ReasoningDelta(text="I look at "), ReasoningDelta(text="the clock."))


@pytest.mark.requirement("H1", "H2")
async def test_reasoning_has_events_of_its_own_if_the_agent_wants_summaries(ports: Ports) -> None:
    ports.use(an_agent(reasoning_summary=True))
    model = ports.play(ModelTurn(text="It is noon.", events=REASONED))

    answer = await ports.ask()

    assert model.requests[0].reasoning_summary
    assert [(event.type, event.data) for event in await ports.published()] == [
        (RunEventType.REASONING_DELTA, {"message_id": answer.message_id, "text": "I look at the clock."}),
        (RunEventType.MESSAGE_DELTA, {"message_id": answer.message_id, "text": "It is noon."}),
    ]
    assert answer.reply.text == "It is noon."


@pytest.mark.requirement("H1", "H2")
async def test_reasoning_is_neither_wanted_nor_shown_unless_the_agent_says_so(ports: Ports) -> None:
    model = ports.play(ModelTurn(text="It is noon.", events=REASONED))

    await ports.ask()

    assert not model.requests[0].reasoning_summary
    assert [event.type for event in await ports.published()] == [RunEventType.MESSAGE_DELTA]


@pytest.mark.requirement("H1", "C4")
async def test_a_canary_token_in_shown_reasoning_ends_the_stream_and_is_not_published(ports: Ports) -> None:
    guarded = a_guarded_agent()
    ports.use(replace(guarded, config=replace(guarded.config, reasoning_summary=True)))
    pieces = (ReasoningDelta(text=f"The word is {CANARY[:6]}"), ReasoningDelta(text=f"{CANARY[6:]}, I think."))
    model = ports.play(ModelTurn(text="Never read.", events=pieces))

    with pytest.raises(CanaryFound) as found:
        await ports.ask()

    assert found.value.canary_id == "vault"
    assert found.value.reply is not None
    usage = found.value.reply.usage
    streamed = len(f"The word is {CANARY}, I think.")
    assert (usage.output_tokens, usage.estimated) == (ports.session.window.tokens_of(streamed), True)
    [event] = await ports.published()
    assert (event.type, event.data["text"]) == (RunEventType.REASONING_DELTA, "The word is [canary:vault]")
    assert model.closed == 0


@pytest.mark.requirement("H1", "A11")
async def test_reasoning_of_an_attempt_that_fails_is_taken_back_with_its_message(ports: Ports) -> None:
    ports.use(an_agent(reasoning_summary=True))
    retry = ModelRetrying(model=FALLBACK, attempt=2, reason="model_stalled")
    ports.play(ModelTurn(text="It is noon.", events=(*REASONED, retry)))

    await ports.ask()

    events = await ports.published()
    assert [event.type for event in events] == [
        RunEventType.REASONING_DELTA,
        RunEventType.MESSAGE_DISCARDED,
        RunEventType.MODEL_RETRYING,
        RunEventType.MESSAGE_DELTA,
    ]
    assert events[0].data["message_id"] == events[1].data["message_id"] != events[3].data["message_id"]
