"""Runs of agents that another agent's client called: what the caller may not do, they may not do
for it."""

from dataclasses import replace

import pytest

from application.agents.calling_agent import caller_rules
from application.mcp.ports import McpReply
from domain.agents.agent import Agent
from domain.approvals.decision import CallDecision
from domain.errors import ServiceError
from domain.ids import AgentId, GatewaySessionId, RunId, ToolCallId
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.runs.called_by import CalledBy
from domain.runs.run import RunStatus
from tests.builders import ORG
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.approving import approvals, decide
from tests.unit.application.runs.doubles import asks, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent

DROP = "mcp__s__drop"
CALLER = AgentId("agt_caller")

pytestmark = pytest.mark.requirement("C2", "F5", "S5")


def a_harness(*turns: ModelTurn) -> RunHarness:
    tools = {"drop": InMemoryTool(answer=text_reply("dropped"), description="Drops a table.")}
    return RunHarness([*turns], servers={"s": InMemoryMcpServer(tools=tools)})


def a_caller(harness: RunHarness, *, version: int = 1, **settings: object) -> Agent:
    """The agent that calls the harness's agent."""
    called = harness.agent.config.name
    config = replace(harness.agent.config, name="front", agents=(called,), mcp_servers=(), **settings)  # type: ignore[arg-type]  # fields by name
    agent = replace(harness.agent, id=CALLER, version=version, config=config)
    harness.state.agents.setdefault(CALLER, []).append(agent)
    return agent


def rule(**fields: object) -> ToolPolicies:
    return ToolPolicies(rules=((DROP, ToolRule(**fields)),))  # type: ignore[arg-type]  # fields by name


async def called(harness: RunHarness) -> RunId:
    """A run that the caller's client started."""
    await harness.warm_up()
    run_id = await harness.start()
    called_by = CalledBy(
        gateway_session_id=GatewaySessionId("gws_1"), tool_call_id=ToolCallId("call_1"), depth=1, agent_id=CALLER
    )
    stored = harness.state.runs[run_id]
    stored.run = replace(stored.run, metadata=called_by.metadata())
    return run_id


async def test_a_tool_that_the_caller_denies_is_not_called_by_its_helper() -> None:
    harness = a_harness(asks(DROP), says("Then not."))
    a_caller(harness, tool_policies=rule(decision=Verdict.DENY))
    run_id = await called(harness)
    await harness.worker.execute(run_id)
    assert harness.server_calls() == []
    assert [entry.details["decision"] for entry in harness.audit(run_id) if entry.action == "tool.blocked"] == [
        {"verdict": "deny", "reason": "tool_denied", "layer": "caller", "pattern": DROP}
    ]
    assert_consistent(harness, run_id)


async def test_a_tool_outside_the_callers_allowlist_does_not_exist_for_its_helper() -> None:
    harness = a_harness(asks(DROP), says("Then not."))
    a_caller(harness, tool_allowlist=("agent__*",))
    run_id = await called(harness)
    await harness.worker.execute(run_id)
    assert harness.server_calls() == []
    assert DROP not in [tool.name for tool in harness.model.requests[0].tools]


async def test_an_approval_that_the_caller_requires_is_required_of_its_helper() -> None:
    harness = a_harness(asks(DROP), says("Done."))
    a_caller(harness, tool_policies=rule(decision=Verdict.REQUIRE_APPROVAL))
    run_id = await called(harness)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.REQUIRES_ACTION
    (asked,) = approvals(harness, run_id)
    assert "caller" in asked.cause
    await decide(harness, run_id, CallDecision(tool_call_id=asked.tool_call_id, approve=True))
    await harness.worker.execute(run_id)
    assert harness.server_calls() == ["drop"]


async def test_edited_arguments_stay_within_the_callers_policy() -> None:
    harness = a_harness(asks(DROP), says("Done."))
    a_caller(harness, tool_policies=rule(decision=Verdict.REQUIRE_APPROVAL, allowed_params=()))
    run_id = await called(harness)
    await harness.worker.execute(run_id)
    (asked,) = approvals(harness, run_id)
    with pytest.raises(ServiceError) as refused:
        await decide(
            harness, run_id, CallDecision(tool_call_id=asked.tool_call_id, approve=True, arguments={"table": "all"})
        )
    assert refused.value.code == "arguments_denied"


async def test_a_caller_that_changes_while_its_helper_runs_holds_at_the_next_turn() -> None:
    async def deny(_: Invocation) -> McpReply:
        a_caller(harness, version=2, tool_policies=rule(decision=Verdict.DENY))
        return text_reply("dropped")

    harness = a_harness(asks(DROP), asks(DROP), says("Then not."))
    harness.connections.servers["s"].tools = {"drop": InMemoryTool(answer=deny, description="Drops a table.")}
    a_caller(harness)
    run_id = await called(harness)
    await harness.worker.execute(run_id)
    assert harness.server_calls() == ["drop"]


async def test_a_helper_that_its_caller_leaves_independent_has_its_own_policies_only() -> None:
    harness = a_harness(asks(DROP), says("Done."))
    a_caller(harness, tool_policies=rule(decision=Verdict.DENY), independent_agents=(harness.agent.config.name,))
    run_id = await called(harness)
    await harness.worker.execute(run_id)
    assert harness.server_calls() == ["drop"]


async def test_a_deleted_caller_permits_nothing_to_its_helper() -> None:
    harness = a_harness(asks(DROP), says("Then not."))
    run_id = await called(harness)
    await harness.worker.execute(run_id)
    assert harness.server_calls() == []


async def test_runs_that_no_agent_called_have_no_caller() -> None:
    harness = a_harness()
    assert await caller_rules(harness.agents, ORG, None, harness.agent.config) is None
