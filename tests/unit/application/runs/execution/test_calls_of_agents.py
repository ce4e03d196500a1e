"""CallTools: calls of agents that are wired to the agent of a run."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.runs.execution.interruption import StopReason
from application.tools.agent_calls import AgentCaller
from application.tools.agents_as_tools import PARAMETERS
from domain.identity.role import Role
from domain.ids import AgentId
from domain.json_value import JsonObject
from domain.policy.rules import ToolRule
from domain.tools.capabilities import ToolType
from domain.tools.tool import AgentBinding, Tool
from tests.builders import AGENT, KEY, RUN, THREAD, a_tool_call
from tests.run_builders import a_toolset
from tests.unit.application.runs.execution.test_call_tools import Ports

SCOUT = "agent__scout"
ASKED: JsonObject = {"input": "Look."}
CALL = replace(a_tool_call(0), name=SCOUT, params=ASKED)
HELPER = Tool(
    name=SCOUT,
    type=ToolType.AGENT,
    description="",
    parameters=PARAMETERS,
    agent=AgentBinding(agent_id=AgentId("agt_scout"), name="scout", timeout_s=300),
)

pytestmark = pytest.mark.requirement("F5")


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def test_the_run_calls_for_its_own_key_and_agent_with_no_more_than_the_role_runner(ports: Ports) -> None:
    await ports.call(ports.session(CALL), a_toolset(HELPER))
    caller = ports.sent.caller
    assert isinstance(caller, AgentCaller)
    assert (caller.run_id, caller.agent_id, caller.depth, caller.gateway_session_id) == (RUN, AGENT, 0, None)
    assert (caller.principal.key_id, caller.principal.role) == (KEY, Role.RUNNER)


@pytest.mark.requirement("P2")
async def test_the_toolset_decides_whose_agents_are_called_and_the_thread_whose_the_run_is(ports: Ports) -> None:
    await ports.call(ports.session(CALL), a_toolset(HELPER))
    caller = ports.sent.caller
    assert isinstance(caller, AgentCaller)
    # The agent may be of the team of the run's agent: no team is asked for again, and the called
    # run gets that of this thread.
    assert caller.principal.visible_teams is None
    assert caller.principal.sees("finance")
    assert caller.thread_id == THREAD
    assert caller.principal.role is Role.RUNNER, "all that it sees besides it may only run"


async def test_limits_of_tools_do_not_end_an_agent_but_policy_and_the_time_of_the_run_do(ports: Ports) -> None:
    await ports.call(ports.session(CALL), a_toolset(HELPER))
    assert ports.sent.timeout_s == 300, "tool_timeout_s is 20"
    await ports.call(ports.session(CALL), a_toolset(HELPER, rules={SCOUT: ToolRule(timeout_s=7)}))
    assert ports.sent.timeout_s == 7
    patient = replace(HELPER, agent=AgentBinding(agent_id=AgentId("agt_scout"), name="scout", timeout_s=1e6))
    session = ports.session(CALL)
    left_s = session.work_time_left_s
    await ports.call(session, a_toolset(patient))
    assert ports.sent.timeout_s == left_s


@pytest.mark.parametrize(
    ("reason", "moves"),
    [(StopReason.SHUTDOWN, True), (StopReason.LEASE_LOST, True), (StopReason.CANCELLED, False)],
)
async def test_a_run_that_another_worker_continues_leaves_what_it_called(
    ports: Ports, reason: StopReason, moves: bool
) -> None:
    session = ports.session(CALL)
    await ports.call(session, a_toolset(HELPER))
    assert ports.sent.caller is not None
    assert not ports.sent.caller.moves()
    session.stop.fire(reason)
    assert ports.sent.caller.moves() is moves
