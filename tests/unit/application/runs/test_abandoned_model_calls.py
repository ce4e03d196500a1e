"""Model calls that are cut off after their reply has begun: providers bill them, so they are
counted, by an estimate."""

from dataclasses import replace
from typing import cast

import pytest

from application.models.ports import ModelError, ModelRetrying, TextDelta
from domain.json_value import JsonObject
from domain.runs.events import RunEventType
from domain.runs.limits import LimitSettings
from domain.runs.run import RunStatus
from domain.runs.usage import ModelSpending, ModelUsage
from tests.builders import an_agent
from tests.doubles.mcp_connections import InMemoryMcpServer, text_reply
from tests.doubles.scripted_model import Gate, ModelTurn
from tests.unit.application.runs.doubles import asks, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent
from tests.unit.application.runs.test_stopping_a_run import begun

READ = {"s": InMemoryMcpServer(tools={"read": text_reply("text")})}
TEXT = "x" * 400
REPORTED = 120
"""Tokens that the scripted model reports for a reply."""


def retrying(model: str, attempt: int) -> ModelRetrying:
    return ModelRetrying(model=model, attempt=attempt, reason="model_stalled")


def spendings(harness: RunHarness) -> list[ModelSpending]:
    return [spending for _, spending in harness.state.spent]


@pytest.mark.requirement("A10", "A11")
async def test_attempts_that_were_cut_off_are_counted_for_the_model_that_made_them() -> None:
    events = (
        TextDelta(text=TEXT),
        retrying("scripted:demo.yaml", 2),
        TextDelta(text=TEXT[:200]),
        TextDelta(text=TEXT[200:]),
        retrying("other:model", 3),
    )
    harness = RunHarness([ModelTurn(text="Right.", events=events)], agent=an_agent(fallback_models=("other:model",)))
    run_id = await harness.play()
    first, second, answer = spendings(harness)
    assert [spent.model for spent in (first, second)] == ["scripted:demo.yaml"] * 2
    assert first.usage == second.usage, "a reply costs the same in however many pieces it comes"
    assert first.usage.output_tokens == 101, "a token for every four bytes, and what is left over"
    assert first.usage.input_tokens > 0
    assert first.usage.cost_usd == harness.prices.cost_usd("scripted:demo.yaml", first.usage)
    run = harness.run(run_id)
    assert run.usage.turns == 1
    assert run.usage.tokens == REPORTED + 2 * (first.usage.input_tokens + first.usage.output_tokens)
    assert run.usage.cost_usd == sum(spent.usage.cost_usd or 0 for spent in (first, second, answer))
    taken_back = harness.of_type(run_id, RunEventType.MESSAGE_DISCARDED)
    assert [event["usage"] for event in taken_back] == [
        {
            "model": spent.model,
            "input_tokens": spent.usage.input_tokens,
            "output_tokens": spent.usage.output_tokens,
            "cached_tokens": 0,
            "reasoning_tokens": 0,
            "cost_usd": float(spent.usage.cost_usd or 0),
            "estimated": True,
        }
        for spent in (first, second)
    ]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A10", "A11")
async def test_attempts_that_never_began_to_answer_are_not_counted() -> None:
    turn = ModelTurn(text="Right.", events=(retrying("scripted:demo.yaml", 2), retrying("other:model", 3)))
    harness = RunHarness([turn], agent=an_agent(fallback_models=("other:model",)))
    run_id = await harness.play()
    assert harness.run(run_id).usage.tokens == REPORTED
    assert len(spendings(harness)) == 1


@pytest.mark.requirement("A10")
async def test_a_fallback_without_a_price_that_is_cut_off_counts_its_tokens_only() -> None:
    events = (retrying("free:local", 2), TextDelta(text=TEXT), retrying("scripted:demo.yaml", 3))
    harness = RunHarness([ModelTurn(text="Right.", events=events)], agent=an_agent(fallback_models=("free:local",)))
    run_id = await harness.play()
    cut, _ = spendings(harness)
    assert (cut.model, cut.usage.cost_usd) == ("free:local", None)
    assert harness.run(run_id).usage.tokens > REPORTED
    assert str(harness.run(run_id).usage.cost_usd) == "0.120"


@pytest.mark.requirement("A10", "A11")
async def test_a_model_that_fails_in_the_middle_of_its_last_attempt_is_counted_once_with_the_failed_run() -> None:
    error = ModelError("model_stalled", "The model fell silent.", retryable=True)
    harness = RunHarness([ModelTurn(text=TEXT, error=error)])
    run_id = await harness.play()
    run = harness.run(run_id)
    [cut] = spendings(harness)
    assert (run.status, run.usage.turns) == (RunStatus.FAILED, 0)
    assert run.usage.tokens == cut.usage.input_tokens + cut.usage.output_tokens
    assert run.usage.cost_usd == cut.usage.cost_usd
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A10", "A12")
async def test_a_call_that_is_cancelled_is_counted_once_with_the_cancelled_run() -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(text=TEXT, gate=gate)])
    run, executing = await begun(harness, gate)
    await harness.cancel(run.id)
    await executing
    ended = harness.run(run.id)
    [cut] = spendings(harness)
    assert (ended.status, ended.usage.turns) == (RunStatus.CANCELLED, 0)
    assert ended.usage.tokens == cut.usage.input_tokens + cut.usage.output_tokens > 100
    assert_consistent(harness, run.id)


@pytest.mark.requirement("A10", "E7")
async def test_a_call_that_a_shutdown_cuts_off_is_counted_before_the_run_is_handed_back() -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(text=TEXT, gate=gate), says()])
    run, executing = await begun(harness, gate)
    harness.worker.active_runs.stop_all()
    await executing
    assert harness.run(run.id).status is RunStatus.QUEUED
    [cut] = spendings(harness)
    await harness.new_worker().execute(run.id)
    usage = harness.run(run.id).usage
    assert (usage.turns, usage.tokens) == (1, REPORTED + cut.usage.input_tokens + cut.usage.output_tokens)
    assert len(spendings(harness)) == 2


@pytest.mark.requirement("A7", "A10")
async def test_a_call_whose_time_is_up_is_counted_with_the_closing_turn() -> None:
    harness = RunHarness([ModelTurn(text=TEXT, gate=Gate()), says("In short.")], limits=LimitSettings(timeout_s=0.1))
    run_id = await harness.play()
    run = harness.run(run_id)
    cut, _ = spendings(harness)
    assert (run.status, run.output, run.usage.turns) == (RunStatus.INCOMPLETE, "In short.", 1)
    assert run.usage.tokens == REPORTED + cut.usage.input_tokens + cut.usage.output_tokens


@pytest.mark.requirement("A7", "A10")
async def test_what_was_cut_off_counts_against_the_limits_of_the_run() -> None:
    turn = asks("mcp__s__read")
    cut = ModelTurn(calls=turn.calls, events=(TextDelta(text="y" * 8_000), retrying("scripted:demo.yaml", 2)))
    harness = RunHarness([cut, says("never")], servers=READ, limits=LimitSettings(max_tokens=4_000))
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.INCOMPLETE
    assert harness.server_calls() == [], "the calls of the reply that followed were not made"


@pytest.mark.requirement("H6", "A10")
async def test_a_reply_whose_provider_reports_no_tokens_is_estimated_priced_and_marked() -> None:
    turn = replace(asks("mcp__s__read", text=TEXT), usage=ModelUsage(estimated=True))
    harness = RunHarness([turn, says("Right.")], servers=READ)
    run_id = await harness.play()
    estimated, reported = spendings(harness)
    assert (estimated.usage.estimated, reported.usage.estimated) == (True, False)
    assert 100 < estimated.usage.output_tokens < 120
    assert estimated.usage.input_tokens > 0
    assert estimated.usage.cost_usd == harness.prices.cost_usd("scripted:demo.yaml", estimated.usage)
    usage = harness.run(run_id).usage
    assert usage.estimated
    assert usage.tokens == REPORTED + estimated.usage.input_tokens + estimated.usage.output_tokens
    told = [event["usage"] for event in harness.of_type(run_id, RunEventType.MESSAGE_COMPLETED) if "usage" in event]
    assert [entry["estimated"] for entry in cast("list[JsonObject]", told)] == [True, False]
