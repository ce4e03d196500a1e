"""What every store promises of tool calls whose server asks for input."""

from dataclasses import replace

import pytest

from application.runs.ports import ClaimedRun
from domain.errors import ServiceError
from domain.mcp.elicitation import Elicitation
from domain.runs.ledger import InputAnswer, ToolCall, ToolCallState
from domain.runs.run import MultitaskStrategy, RunStatus
from domain.runs.step import Step
from domain.tools.result import ToolResult
from tests.builders import KEY, ORG, RUN, a_displayable_call, a_settled_call, a_tool_call, after
from tests.contract.run_changes import cancel, messages_of, resume
from tests.contract.run_steps import asking_step, claim, reply_step, run_number, start, start_and_claim, stored
from tests.contract.stores import Stores

COLOUR = Elicitation(request_id="1.colour", message="Which colour?", schema={"type": "object", "properties": {}})
SIGN_IN = Elicitation(request_id="1.sign-in", message="Sign in.", url="https://example.org/sign-in")


def asking(call: ToolCall, question: Elicitation = COLOUR, sealed: bytes = b"\x00sealed") -> ToolCall:
    return replace(call, state=ToolCallState.AWAITING_INPUT, elicitation=question, input=sealed)


def an_answer(
    call: ToolCall, *, request_id: str = COLOUR.request_id, following: Elicitation | None = None
) -> InputAnswer:
    return InputAnswer(tool_call_id=call.id, request_id=request_id, input=b"answered", next=following)


async def a_waiting_run(stores: Stores, *, displayed: bool = False) -> tuple[ClaimedRun, ToolCall]:
    """A run with a call that asks for a colour, and perhaps one that is displayed."""
    claimed = await start_and_claim(stores)
    call = a_tool_call()
    shown = (a_displayable_call(1),) if displayed else ()
    await stores.journal.commit(claimed.lease, reply_step(claimed.run, call, *shown))
    await stores.journal.commit(claimed.lease, asking_step(claimed.run, asking(call), *shown))
    return claimed, asking(call)


@pytest.mark.requirement("A12", "E3")
async def test_a_call_that_asks_is_kept_with_its_question_and_what_was_sealed(run_stores: Stores) -> None:
    _, call = await a_waiting_run(run_stores)
    run = await stored(run_stores, RUN)
    assert run.status is RunStatus.REQUIRES_ACTION
    assert [use.elicitation for use in run.pending] == [COLOUR]
    assert await run_stores.runs.tool_calls(ORG, RUN) == (call,)


@pytest.mark.requirement("E3")
async def test_a_question_asked_while_siblings_still_run_outlives_its_worker(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    first, second = a_tool_call(index=0), a_tool_call(index=1)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, first, second))
    await run_stores.journal.commit(claimed.lease, Step(run=claimed.run, changed=(asking(first, SIGN_IN),)))
    assert await run_stores.leases.hand_back(claimed.lease, active_s=0, at=after(1))
    again = await claim(run_stores, RUN, at=after(2))
    assert again.open_calls == (asking(first, SIGN_IN), second)


@pytest.mark.requirement("E3")
async def test_the_run_goes_on_when_the_last_question_is_answered(run_stores: Stores) -> None:
    _, call = await a_waiting_run(run_stores)
    following = replace(COLOUR, request_id="1.size", message="Which size?")

    waiting = await resume(
        run_stores.runs, ORG, RUN, (), answers=(an_answer(call, following=following),), actor=KEY, at=after(3)
    )
    assert waiting.status is RunStatus.REQUIRES_ACTION
    assert [use.elicitation for use in waiting.pending] == [following]
    assert waiting == await stored(run_stores, RUN)

    resumed = await resume(
        run_stores.runs, ORG, RUN, (), answers=(an_answer(call, request_id="1.size"),), actor=KEY, at=after(4)
    )
    assert (resumed.status, resumed.pending) == (RunStatus.QUEUED, ())
    assert (await run_stores.runs.events(ORG, RUN, after_seq=resumed.last_seq - 1, limit=9))[0].type == "run.resumed"
    again = await claim(run_stores, RUN, at=after(5))
    given = replace(call, state=ToolCallState.INPUT_GIVEN, elicitation=None, input=b"answered")
    assert again.open_calls == (given,)
    await run_stores.journal.commit(
        again.lease, Step(run=again.run, changed=(replace(given, state=ToolCallState.RECORDED),))
    )
    assert [entry.state for entry in await run_stores.runs.tool_calls(ORG, RUN)] == [ToolCallState.RECORDED]


async def test_what_is_not_asked_cannot_be_answered_and_then_nothing_changes(run_stores: Stores) -> None:
    _, call = await a_waiting_run(run_stores, displayed=True)
    before = await stored(run_stores, RUN)
    shown = a_displayable_call(1)
    for settled, answers in (
        ((), (an_answer(call, request_id="1.size"),)),
        ((), (an_answer(shown),)),
        ((), (an_answer(call), an_answer(call))),
        ((a_settled_call(shown),), (an_answer(a_tool_call(index=7)),)),
        ((a_settled_call(call),), ()),
    ):
        with pytest.raises(ServiceError) as refused:
            await resume(run_stores.runs, ORG, RUN, settled, answers=answers, actor=KEY, at=after(3))
        assert refused.value.code == "tool_call_not_pending"
    assert await stored(run_stores, RUN) == before
    assert await run_stores.runs.tool_calls(ORG, RUN) == (call, shown)


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("answered", [False, True])
async def test_the_next_message_does_not_complete_a_run_with_a_call_that_asked(
    run_stores: Stores, answered: bool
) -> None:
    _, call = await a_waiting_run(run_stores, displayed=True)
    if answered:
        await resume(run_stores.runs, ORG, RUN, (), answers=(an_answer(call),), actor=KEY, at=after(3))
    await start(run_stores, run_number(2), strategy=MultitaskStrategy.ENQUEUE)
    left = (
        RunStatus.QUEUED if answered else RunStatus.REQUIRES_ACTION
    )  # an answered call is made before the run completes
    assert (await stored(run_stores, RUN)).status is left
    with pytest.raises(ServiceError) as busy:
        await start(run_stores, run_number(3), strategy=MultitaskStrategy.REJECT)
    assert busy.value.code == "thread_busy"


@pytest.mark.requirement("A12")
async def test_cancelling_answers_a_call_that_asks_and_forgets_what_was_sealed(run_stores: Stores) -> None:
    _, call = await a_waiting_run(run_stores)
    outcome = await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(3))
    assert outcome is not None
    assert outcome.run.status is RunStatus.CANCELLED
    [entry] = await run_stores.runs.tool_calls(ORG, RUN)
    assert (entry.state, entry.elicitation, entry.input) == (ToolCallState.SETTLED, None, None)
    assert (await messages_of(run_stores.runs, ORG, RUN))[-1].tool_results[0].tool_id == call.id


@pytest.mark.requirement("E3")
async def test_a_settled_or_unknown_call_does_not_begin_to_ask(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    call = a_tool_call()
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    settled = a_settled_call(call, ToolResult.succeeded("done"))
    await run_stores.journal.commit(claimed.lease, Step(run=claimed.run, settled=(settled,)))
    for stranger in (call, a_tool_call(index=5)):
        with pytest.raises(ValueError, match="to be changed"):
            await run_stores.journal.commit(claimed.lease, Step(run=claimed.run, changed=(asking(stranger),)))
    assert [entry.state for entry in await run_stores.runs.tool_calls(ORG, RUN)] == [ToolCallState.SETTLED]
