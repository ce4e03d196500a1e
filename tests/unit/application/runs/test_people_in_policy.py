"""Rules for people and times, through the real loop."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_mock import MockerFixture

from application.runs.execution.interruption import Interrupted, StopReason, TimeUp
from application.tools.toolset import Toolset
from domain.identity.organization_group import OrganizationGroup
from domain.ids import ApiKeyId, GroupId
from domain.policy.condition import Condition
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.runs.events import RunEventType
from domain.runs.limits import IncompleteReason
from domain.runs.run import RunStatus
from tests.builders import ORG, START
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, text_reply
from tests.doubles.scripted_model import Gate
from tests.people_builders import USER, a_user
from tests.unit.application.runs.doubles import asks, says
from tests.unit.application.runs.harness import ADMIN, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

pytestmark = pytest.mark.requirement("P6")
PAY = "mcp__s__pay"
ANN = replace(ADMIN, key_id=ApiKeyId(a_user().id))
DENY = ToolRule(decision=Verdict.DENY)


def a_harness(when: Condition, *turns: object) -> RunHarness:
    """An agent with a tool that is denied, but for the condition; ann is a lead."""
    tools = {"pay": InMemoryTool(answer=text_reply("paid"), description="Pays.")}
    harness = RunHarness([*turns], servers={"s": InMemoryMcpServer(tools=tools)})  # type: ignore[list-item]
    rules = (("mcp__s__*", DENY), (PAY, ToolRule(decision=Verdict.ALLOW, when=when)))
    harness.change_agent(tool_policies=ToolPolicies(rules=rules))
    group = OrganizationGroup(
        id=GroupId("grp_1"), organization_id=ORG, name="Leads", members=(USER,), created_at=START, changed_at=START
    )
    harness.state.organization_groups[group.id] = group
    return harness


def shown(harness: RunHarness) -> list[bool]:
    """Whether each request to the model shows the tool."""
    return [PAY in [tool.name for tool in request.tools] for request in harness.model.requests]


async def test_a_member_is_shown_the_tool_and_calls_it_and_a_person_outside_neither() -> None:
    for principal, may in ((ANN, True), (ADMIN, False)):
        harness = a_harness(Condition(groups=("Leads",)), asks(PAY), says())
        await harness.warm_up()
        run_id = await harness.start(principal=principal)
        await harness.worker.execute(run_id)

        assert shown(harness) == [may, may]
        assert harness.server_calls() == (["pay"] if may else [])
        assert_consistent(harness, run_id)


async def test_a_member_who_is_removed_while_the_model_answers_has_the_call_refused() -> None:
    gate = Gate()
    harness = a_harness(Condition(groups=("Leads",)), replace(asks(PAY), gate=gate), says())
    await harness.warm_up()
    run_id = await harness.start(principal=ANN)
    running = harness.worker.begin(run_id)
    await gate.reached.wait()

    harness.state.organization_groups.clear()
    gate.open.set()
    await running

    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert shown(harness) == [True, False]
    assert harness.server_calls() == []
    [blocked] = harness.of_type(run_id, RunEventType.TOOL_BLOCKED)
    assert (blocked["name"], blocked["reason"]) == (PAY, "tool_denied")
    assert_consistent(harness, run_id)


async def test_hours_that_end_while_the_model_answers_end_the_permission() -> None:
    gate = Gate()
    harness = a_harness(Condition(hours="08:00-12:30"), replace(asks(PAY), gate=gate), says())
    await harness.warm_up()
    run_id = await harness.start(principal=ANN)
    running = harness.worker.begin(run_id)
    await gate.reached.wait()

    harness.clock.advance(3_600)
    gate.open.set()
    await running

    assert shown(harness)[0]
    assert harness.server_calls() == []


async def test_a_run_of_a_schedule_is_restricted_by_a_rule_for_people_and_permitted_nothing_by_one() -> None:
    harness = a_harness(Condition(groups=("Leads",)), asks(PAY), says())
    await harness.warm_up()
    run_id = await harness.start(principal=replace(ADMIN, key_id=ApiKeyId("schedule:sch_1")))
    await harness.worker.execute(run_id)
    assert harness.server_calls() == []

    harness = a_harness(Condition(groups=("Leads",)), asks(PAY), says())
    rule = ToolRule(decision=Verdict.DENY, when=Condition(groups=("Contractors",)))
    harness.change_agent(tool_policies=ToolPolicies(rules=((PAY, rule),)))
    await harness.warm_up()
    run_id = await harness.start(principal=replace(ADMIN, key_id=ApiKeyId("schedule:sch_1")))
    await harness.worker.execute(run_id)
    assert harness.server_calls() == []


def stopping_before_calls_are_decided(harness: RunHarness, reason: Exception, mocker: MockerFixture) -> None:
    """What policy says after a reply is not found out in time, or before the run is stopped."""
    toolset = harness.catalog.toolset

    async def late(*args: Any, **kwargs: Any) -> Toolset:
        if harness.model.requests:
            raise reason
        return await toolset(*args, **kwargs)

    mocker.patch.object(harness.catalog, "toolset", side_effect=late)


@pytest.mark.requirement("A7", "A10")
async def test_a_reply_whose_time_is_up_before_its_calls_are_decided_is_stored_and_counted(
    mocker: MockerFixture,
) -> None:
    harness = a_harness(Condition(groups=("Leads",)), replace(asks(PAY), text="I pay."))
    await harness.warm_up()
    stopping_before_calls_are_decided(harness, TimeUp(), mocker)
    run_id = await harness.start(principal=ANN)
    await harness.worker.execute(run_id)

    run = harness.run(run_id)
    assert (run.status, run.incomplete_reason, run.output) == (
        RunStatus.INCOMPLETE,
        IncompleteReason.TIMEOUT,
        "I pay.",
    )
    [(_, spent)] = harness.state.spent
    assert (run.usage.tokens, run.usage.cost_usd) == (
        spent.usage.input_tokens + spent.usage.output_tokens,
        spent.usage.cost_usd,
    )
    assert run.usage.tokens > 0
    assert harness.server_calls() == []
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A10", "A12")
async def test_a_reply_whose_run_is_cancelled_before_its_calls_are_decided_is_counted_and_discarded(
    mocker: MockerFixture,
) -> None:
    harness = a_harness(Condition(groups=("Leads",)), replace(asks(PAY), text="I pay."))
    await harness.warm_up()
    stopping_before_calls_are_decided(harness, Interrupted(StopReason.CANCELLED), mocker)
    run_id = await harness.start(principal=ANN)
    await harness.worker.execute(run_id)

    run = harness.run(run_id)
    assert run.status is RunStatus.CANCELLED
    [(_, spent)] = harness.state.spent
    assert (run.usage.tokens, run.usage.cost_usd) == (
        spent.usage.input_tokens + spent.usage.output_tokens,
        spent.usage.cost_usd,
    )
    [discarded] = harness.of_type(run_id, RunEventType.MESSAGE_DISCARDED)
    assert discarded["reason"] == "run_cancelled"
    assert_consistent(harness, run_id)
