"""Agents in tool mode: what is registered, what the model of their caller sees, and whom policies
keep from them."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.agents.ports import AgentStore
from application.policy.ports import SchemaValidator
from application.secrets.ports import SecretStore
from application.system.ports import OutboundPolicy
from application.tools.agents_as_tools import PARAMETERS
from application.workflows.node_execution import NodeFailed
from application.workflows.ports import Expressions
from application.workflows.workflow_checks import CheckedWorkflow, WorkflowChecks
from domain.agents.agent import Agent, AgentConfig
from domain.ids import AgentId, WorkflowRunId
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.runs.limits import LimitSettings
from domain.tools.capabilities import ToolType
from domain.tools.tool import AgentBinding
from domain.tools.wired import WiredNodes
from domain.workflows.faults import FaultCode
from domain.workflows.graph import NodeDefinition
from tests.builders import ORG, an_agent, an_organization
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal
from tests.unit.application.team_ports import team_checks
from tests.unit.application.workflows.test_tool_step import RUN, Harness
from tests.workflow_builders import agent, entrypoint, node, workflow

SCOUT = AgentId("agt_scout")
DENIES = ToolPolicies(rules=(("agent__scout", ToolRule(decision=Verdict.DENY)),))


def scout(**settings: object) -> Agent:
    config = AgentConfig(name="scout", model="scripted:x.yaml", description="Finds things out.", **settings)  # type: ignore[arg-type]  # fields by name
    return replace(an_agent(SCOUT), config=config)


@pytest.fixture
async def harness() -> Harness:
    harness = await Harness().with_token()
    harness.state.agents[SCOUT] = [scout(limits=LimitSettings(timeout_s=30))]
    return harness


def helper(**config: object) -> NodeDefinition:
    return node("helper", "agent", "tool", agent="scout", **config)


@pytest.mark.requirement("F3", "F5")
async def test_the_caller_sees_the_agent_as_a_tool_that_starts_a_run_with_the_tools_of_its_node(
    harness: Harness,
) -> None:
    made = await harness.register(helper())
    assert (made.kind, made.bound, made.expires_at) == ("agent", None, None)
    assert b"scout" not in made.sealed
    own = AgentConfig(name="lead", model="m:x", tools=(ToolType.CODE_EXECUTION,), agents=("other",))
    (shown,) = (await harness.seen("helper", config=own)).tools
    assert (shown.name, shown.type, shown.parameters) == ("agent__scout", ToolType.AGENT, PARAMETERS)
    assert shown.description == "Starts the agent 'scout' and gives its answer. Finds things out."
    assert shown.agent == AgentBinding(
        agent_id=SCOUT, name="scout", timeout_s=90, wired=WiredNodes(workflow_run_id=RUN, node_ids=())
    )
    assert shown.repeatable, "a call that is made again finds its run"
    assert (await harness.seen(config=own)).tools == ()


@pytest.mark.requirement("F3")
async def test_a_node_describes_its_agent_and_bounds_its_calls(harness: Harness) -> None:
    other = WorkflowRunId("wfr_other")
    await harness.register(helper(description="Ask it for the weather.", timeout_s=5), run_id=other)
    (shown,) = (await harness.seen("helper", run_id=other)).tools
    assert shown.description == "Ask it for the weather."
    assert shown.agent is not None
    assert (shown.agent.timeout_s, shown.agent.wired) == (5, WiredNodes(workflow_run_id=other, node_ids=()))


@pytest.mark.requirement("F3", "C2")
async def test_policies_and_allowlist_of_the_caller_decide_about_the_agent(harness: Harness) -> None:
    await harness.register(helper())
    denied = await harness.seen("helper", config=AgentConfig(name="lead", model="m:x", tool_policies=DENIES))
    assert (denied.tools, denied.find_denied("agent__scout") is not None) == ((), True)
    hidden = await harness.seen("helper", config=AgentConfig(name="lead", model="m:x", tool_allowlist=("mcp__*",)))
    assert (hidden.tools, hidden.denied) == ((), ())


@pytest.mark.requirement("F2")
async def test_an_agent_that_is_gone_or_disabled_is_no_tool(harness: Harness, mocker: MockerFixture) -> None:
    harness.state.agents[SCOUT].append(replace(scout(enabled=False), version=2))
    with pytest.raises(NodeFailed) as failed:
        await harness.register(helper())
    assert failed.value.error.code == "agent_disabled"
    del harness.state.agents[SCOUT]
    with pytest.raises(NodeFailed) as failed:
        await harness.register(helper())
    assert failed.value.error.code == "agent_not_found"
    agents = mocker.create_autospec(AgentStore, instance=True)
    agents.find.side_effect = storage_away()
    harness.step._agents = agents
    with refused("storage_unavailable"):
        await harness.register(helper())


async def checked(harness: Harness, mocker: MockerFixture, caller: AgentConfig) -> CheckedWorkflow:
    agents = mocker.create_autospec(AgentStore, instance=True)
    lead = replace(an_agent(), config=caller)
    agents.find.side_effect = lambda _, name: {"lead": lead, "scout": scout()}.get(name)
    schemas = mocker.create_autospec(SchemaValidator, instance=True)
    schemas.problem_with.return_value = None
    checks = WorkflowChecks(
        expressions=mocker.create_autospec(Expressions, instance=True),
        schemas=schemas,
        agents=agents,
        organizations=InMemoryOrganizationStore(harness.state),
        servers=InMemoryMcpServerStore(harness.state),
        secrets=mocker.create_autospec(SecretStore, instance=True),
        outbound=mocker.create_autospec(OutboundPolicy, instance=True),
        team_checks=team_checks(harness.state),
    )
    return await checks.check(
        a_principal(), workflow(entrypoint(), helper(), agent("front", "lead"), "helper -> front.tools")
    )


@pytest.mark.requirement("F2")
async def test_an_agent_that_its_caller_would_never_see_is_a_fault(harness: Harness, mocker: MockerFixture) -> None:
    plain = AgentConfig(name="lead", model="m:x")
    assert (await checked(harness, mocker, plain)).faults == ()
    for caller in (replace(plain, tool_policies=DENIES), replace(plain, tool_allowlist=("mcp__*",))):
        (fault,) = (await checked(harness, mocker, caller)).faults
        assert (fault.code, fault.node_ids, fault.path) == (
            FaultCode.TOOL_NOT_PERMITTED,
            ("helper", "front"),
            "config.agent",
        )
    harness.state.organizations[ORG] = replace(an_organization(ORG), tool_policies=DENIES)
    assert [fault.code for fault in (await checked(harness, mocker, plain)).faults] == [FaultCode.TOOL_NOT_PERMITTED]
