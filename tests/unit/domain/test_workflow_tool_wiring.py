"""Agents that only tools lead to, and native tools as nodes."""

import pytest

from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from domain.workflows.faults import FaultCode
from domain.workflows.graph import AgentNodeConfig, NativeToolConfig
from domain.workflows.plan import Incoming
from tests.unit.domain.test_workflow_compiler import codes, only_fault
from tests.workflow_builders import agent, entrypoint, node, planned, tool, transform


@pytest.mark.requirement("F1")
def test_an_agent_that_only_tools_lead_to_begins_with_the_input_of_the_run() -> None:
    plan = planned(entrypoint(), tool("abuseipdb"), agent("analyst"), "abuseipdb.tools -> analyst.tools")
    assert plan.by_id["analyst"].connected_tool_node_ids == ("abuseipdb",)
    assert plan.by_id["analyst"].incoming == (Incoming(source="start", handle="output"),)
    assert [step.id for step in plan.nodes if step.is_sink] == ["analyst"]
    behind = planned(
        *(entrypoint(), tool("abuseipdb"), agent("analyst"), transform("clean")),
        *("start -> clean", "clean -> analyst", "abuseipdb.tools -> analyst.tools"),
    )
    assert behind.by_id["analyst"].predecessors == ("clean",), "an edge that is written is the only one"


def test_an_agent_without_any_edge_is_still_out_of_reach() -> None:
    assert only_fault(entrypoint(), agent("alone"))[:2] == (FaultCode.UNREACHABLE, ("alone",))


@pytest.mark.requirement("F1", "F3")
def test_a_native_tool_is_wired_like_any_other_tool() -> None:
    native = node("interpreter", "native_tool", "tool", tool="code_execution")
    plan = planned(entrypoint(), native, agent("analyst"), "interpreter -> analyst.tools")
    assert plan.by_id["interpreter"].config == NativeToolConfig(tool=ToolType.CODE_EXECUTION)
    assert plan.by_id["analyst"].connected_tool_node_ids == ("interpreter",)
    twice = node("again", "native_tool", "tool", tool="code_execution")
    ways = ("interpreter -> analyst.tools", "again -> analyst.tools")
    assert codes(entrypoint(), native, twice, agent("analyst"), *ways) == [FaultCode.TOOL_NAME_CLASH]


@pytest.mark.parametrize("config", [{}, {"tool": "mcp_tool"}, {"tool": "agent"}, {"tool": 1}])
def test_a_native_tool_is_one_that_there_is(config: JsonObject) -> None:
    parts = (entrypoint(), node("interpreter", "native_tool", "tool", **config), agent("analyst"))
    fault = only_fault(*parts, "interpreter -> analyst.tools")
    assert fault == (FaultCode.CONFIG_INVALID, ("interpreter",), "config.tool")


def test_a_native_tool_is_no_step() -> None:
    step = node("interpreter", "native_tool", tool="code_execution")
    assert FaultCode.UNKNOWN_MODE in codes(entrypoint(), step, "start -> interpreter")


@pytest.mark.requirement("F1", "F3")
def test_an_agent_is_wired_to_an_agent_and_has_what_is_wired_to_itself() -> None:
    helper = node("helper", "agent", "tool", agent="scout", description="Asks.", tools_timeout_s=5)
    parts = (entrypoint(), tool("weather"), helper, agent("lead"))
    plan = planned(*parts, "weather -> helper.tools", "helper -> lead.tools")
    assert plan.by_id["helper"].config == AgentNodeConfig(agent="scout", description="Asks.", tools_timeout_s=5)
    assert plan.by_id["helper"].connected_tool_node_ids == ("weather",)
    assert plan.by_id["lead"].connected_tool_node_ids == ("helper",)
    assert [step.id for step, _ in plan.agents] == ["lead"]
    assert [step.id for step in plan.nodes if step.is_sink] == ["lead"]
    again = node("again", "agent", "tool", agent="scout")
    ways = ("helper -> lead.tools", "again -> lead.tools")
    assert codes(*parts, again, "weather -> helper.tools", *ways) == [FaultCode.TOOL_NAME_CLASH]


@pytest.mark.requirement("F1")
def test_an_agent_that_is_a_tool_has_no_agents_as_tools_and_no_input_of_the_workflow() -> None:
    deeper = node("deeper", "agent", "tool", agent="clerk")
    parts = (entrypoint(), node("helper", "agent", "tool", agent="scout"), agent("lead"), "helper -> lead.tools")
    fault = only_fault(*parts, deeper, "deeper -> helper.tools")
    assert fault == (FaultCode.TOOL_EDGE_TARGET, ("deeper", "helper"), "edges.1.target")
    assert only_fault(*parts, "lead -> helper")[:2] == (FaultCode.CYCLE, ("helper", "lead"))
    told = (entrypoint(), node("helper", "agent", "tool", agent="scout", input="{{start}}"), agent("lead"))
    assert only_fault(*told, "helper -> lead.tools") == (FaultCode.CONFIG_INVALID, ("helper",), "config.input")
