"""Daily budgets of organizations and agents: reserved before each model call, settled after."""

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest
from pytest_mock import MockerFixture

from application.models.ports import ToolChoice
from application.runs.execution.ask_model import BUDGETED_OUTPUT_TOKENS, CLOSING_OUTPUT_TOKENS
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, RunId, UserId
from domain.runs.limits import IncompleteReason
from domain.runs.run import RunStatus
from domain.runs.usage import ModelUsage
from tests.builders import ORG, a_key, a_thread, a_thread_id
from tests.doubles.mcp_connections import InMemoryMcpServer, text_reply
from tests.doubles.scripted_model import Gate, ModelTurn
from tests.doubles.state import StoredThread
from tests.people_builders import USER, a_person, an_impersonation
from tests.unit.application.actors import a_principal
from tests.unit.application.runs.doubles import asks, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent

READ = {"s": InMemoryMcpServer(tools={"read": text_reply("text")})}
TURN_USD = (BUDGETED_OUTPUT_TOKENS + CLOSING_OUTPUT_TOKENS) * Decimal("0.001")
"""What is reserved for a turn over an empty context, at the least; a token costs a tenth of a cent
here."""
CONTEXT_USD = Decimal(1)
"""More than any context of these tests costs."""


def organization_budget(harness: RunHarness, usd: Decimal) -> None:
    harness.state.organizations[ORG] = replace(harness.state.organizations[ORG], daily_budget_usd=usd)


async def played(harness: RunHarness, principal: Principal) -> RunId:
    await harness.warm_up()
    run_id = await harness.start(principal=principal)
    await harness.worker.execute(run_id)
    return run_id


@pytest.mark.requirement("A7")
async def test_a_run_ends_incomplete_when_the_day_s_budget_is_used_up() -> None:
    spent = ModelUsage(input_tokens=500, output_tokens=1_500)
    harness = RunHarness([asks("mcp__s__read", usage=spent), says("So far."), says("never")], servers=READ)
    organization_budget(harness, TURN_USD + CONTEXT_USD)
    run_id = await harness.play()
    run = harness.run(run_id)
    assert (run.status, run.incomplete_reason) == (RunStatus.INCOMPLETE, IncompleteReason.DAILY_BUDGET)
    assert run.output == "So far.", "the closing turn was paid for from what was kept for it"
    assert harness.model.requests[-1].tool_choice is ToolChoice.NONE
    assert harness.model.requests[0].max_output_tokens == BUDGETED_OUTPUT_TOKENS
    assert harness.model.requests[-1].max_output_tokens == CLOSING_OUTPUT_TOKENS
    assert harness.server_calls() == ["read"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
async def test_without_anything_left_no_model_is_asked() -> None:
    harness = RunHarness([says("never")])
    organization_budget(harness, Decimal(0))
    run_id = await harness.play()
    assert harness.run(run_id).incomplete_reason is IncompleteReason.DAILY_BUDGET
    assert harness.run(run_id).output is None
    assert harness.model.requests == []
    assert harness.events(run_id)[-1].data == {"reason": "daily_budget_usd"}


async def test_without_a_budget_nothing_is_priced_but_what_was_used(mocker: MockerFixture) -> None:
    harness = RunHarness([asks("mcp__s__read"), says("Done.")], servers=READ)
    asked = mocker.spy(harness.prices, "cost_usd")
    assert harness.run(await harness.play()).status is RunStatus.COMPLETED
    assert asked.call_count == 2, "once for each reply"


@pytest.mark.requirement("A7")
async def test_an_agent_has_a_budget_of_its_own() -> None:
    harness = RunHarness([says("never")])
    harness.change_agent(daily_budget_usd=Decimal("0.5"))
    run_id = await harness.play()
    assert harness.run(run_id).incomplete_reason is IncompleteReason.DAILY_BUDGET


@pytest.mark.requirement("P2")
async def test_runs_of_one_user_stay_within_the_budget_of_the_user_together() -> None:
    spent = ModelUsage(input_tokens=9_000)
    harness = RunHarness([ModelTurn(text="First.", usage=spent), says("Another user's."), says("never")])
    organization = harness.state.organizations[ORG]
    harness.state.organizations[ORG] = replace(organization, user_daily_budget_usd=TURN_USD + CONTEXT_USD)
    ann, bob = a_person(Role.OPERATOR), a_person(Role.OPERATOR, id=UserId("usr_bob"))
    of_ann, of_bob = await played(harness, ann), await played(harness, bob)
    assert [harness.run(each).output for each in (of_ann, of_bob)] == ["First.", "Another user's."]
    as_bob = replace(ann, key_id=an_impersonation(actor=ann.key_id, user_id=UserId("usr_bob")).acting)
    for again in (ann, as_bob):
        assert harness.run(await played(harness, again)).incomplete_reason is IncompleteReason.DAILY_BUDGET


@pytest.mark.requirement("P2")
async def test_a_budget_by_the_id_of_a_user_replaces_the_one_for_all() -> None:
    harness = RunHarness([says("Allowed.")])
    organization = harness.state.organizations[ORG]
    harness.state.organizations[ORG] = replace(
        organization, user_daily_budget_usd=Decimal(0), user_daily_budgets_usd={USER: Decimal(1_000)}
    )
    assert harness.run(await played(harness, a_person(Role.OPERATOR))).output == "Allowed."
    other = a_person(Role.OPERATOR, id=UserId("usr_bob"))
    assert harness.run(await played(harness, other)).incomplete_reason is IncompleteReason.DAILY_BUDGET


@pytest.mark.requirement("A7")
async def test_runs_side_by_side_do_not_overspend_together() -> None:
    gate = Gate()
    harness = RunHarness([ModelTurn(text="First.", gate=gate), says("Second.")])
    organization_budget(harness, TURN_USD + CONTEXT_USD)
    other = a_thread_id(7)
    harness.state.threads[other] = StoredThread(thread=a_thread(other))
    first, second = await harness.start(), await harness.start(thread_id=other)
    working = harness.worker.begin(first)
    await asyncio.wait_for(gate.reached.wait(), 10)
    await harness.worker.execute(second)
    assert harness.run(second).incomplete_reason is IncompleteReason.DAILY_BUDGET
    gate.open.set()
    await asyncio.wait_for(working, 10)
    assert harness.run(first).status is RunStatus.COMPLETED


@pytest.mark.requirement("A7")
async def test_a_new_day_has_a_new_budget() -> None:
    dear = ModelTurn(text="Yesterday.", usage=ModelUsage(input_tokens=9_000))
    harness = RunHarness([dear, says("Today.")])
    organization_budget(harness, TURN_USD + CONTEXT_USD)
    first = await harness.play()
    harness.clock.advance(24 * 3600)
    second = await harness.play()
    assert [harness.run(run_id).output for run_id in (first, second)] == ["Yesterday.", "Today."]


async def test_without_a_budget_nothing_is_reserved_and_answers_are_not_capped() -> None:
    harness = RunHarness([says("Long.")])
    await harness.play()
    assert harness.state.reservations == {}
    assert harness.model.requests[0].max_output_tokens is None


@pytest.mark.requirement("A10")
async def test_every_model_call_counts_for_its_day() -> None:
    spent = ModelUsage(input_tokens=30, output_tokens=10)
    harness = RunHarness([asks("mcp__s__read", usage=spent), says("Done.")], servers=READ)
    run_id = await harness.play()
    booked = [spending for _, spending in harness.state.spent]
    assert [spending.model for spending in booked] == [harness.run(run_id).model] * 2
    assert sum(spending.usage.input_tokens for spending in booked) == harness.run(run_id).usage.input_tokens
    assert sum(spending.usage.cost_usd or 0 for spending in booked) == harness.run(run_id).usage.cost_usd


@pytest.mark.requirement("P2")
async def test_runs_with_a_key_count_for_the_user_who_made_it_only_where_the_organization_says_so() -> None:
    harness = RunHarness([says("Nobody's."), says("Also nobody's.")])
    key = ApiKeyId("key_of_ann")
    harness.state.keys[key] = replace(a_key(key, token="dgm_of_ann"), person_id=USER)
    with_key = replace(a_principal(Role.OPERATOR), key_id=key, key_of=USER)
    of_nobody = a_principal(Role.OPERATOR)
    organization = replace(harness.state.organizations[ORG], user_daily_budget_usd=Decimal(0))
    harness.state.organizations[ORG] = organization
    assert harness.run(await played(harness, with_key)).output == "Nobody's."
    harness.state.organizations[ORG] = replace(organization, keys_count_for_users=True)
    assert harness.run(await played(harness, with_key)).incomplete_reason is IncompleteReason.DAILY_BUDGET
    assert harness.run(await played(harness, of_nobody)).output == "Also nobody's."
