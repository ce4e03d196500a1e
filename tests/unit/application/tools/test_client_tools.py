"""with_client_tools: functions of the client among the tools of its run, under the same rules."""

import pytest

from application.tools.client_tools import with_client_tools
from application.tools.toolset import Toolset
from domain.policy.layers import PolicyLayers
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.tools.client_tool import MAX_CLIENT_TOOLS, ClientTool, require_valid
from tests.builders import a_tool
from tests.refusals import refused

WEATHER, NOW = ClientTool(name="weather"), ClientTool(name="now", description="The time.")


@pytest.mark.requirement("X1", "X2")
def test_functions_of_the_client_come_after_all_other_tools_and_are_settled_by_it() -> None:
    toolset = with_client_tools(Toolset(tools=(a_tool(),)), (WEATHER.as_tool(), NOW.as_tool()))
    assert [tool.name for tool in toolset.shown] == [a_tool().name, "weather", "now"]
    found = toolset.find("weather")
    assert found is not None
    assert found.is_displayable
    assert toolset.problems == ()


def test_a_toolset_without_functions_of_the_client_is_the_same() -> None:
    toolset = Toolset(tools=(a_tool(),))
    assert with_client_tools(toolset, ()) is toolset


@pytest.mark.requirement("X1", "X2")
@pytest.mark.parametrize("name", [a_tool().name, "search_tools", "call_tool"])
def test_a_function_never_takes_the_name_of_a_tool_of_the_service(name: str) -> None:
    toolset = with_client_tools(Toolset(tools=(a_tool(),)), (ClientTool(name=name).as_tool(),))
    assert toolset.tools == (a_tool(),)
    assert toolset.problems == (f"{name}: the name is already taken by another tool",)


@pytest.mark.requirement("X1", "X2", "C2")
def test_policies_and_allowlists_hold_for_functions_of_the_client() -> None:
    rules = ToolPolicies(rules=(("weather", ToolRule(decision=Verdict.DENY)),))
    layers = PolicyLayers(agent=rules, agent_allowlist=("weather",))
    toolset = with_client_tools(Toolset(tools=(), policies=layers), (WEATHER.as_tool(), NOW.as_tool()))
    assert toolset.tools == ()
    assert toolset.find_denied("weather") is not None
    assert toolset.problems == ("now: a tool of the client that no allowlist permits",)


@pytest.mark.requirement("X1", "X2")
@pytest.mark.parametrize(
    "tools",
    [
        (ClientTool(name="get weather"),),
        (ClientTool(name=""),),
        (WEATHER, WEATHER),
        tuple(ClientTool(name=f"f{number}") for number in range(MAX_CLIENT_TOOLS + 1)),
    ],
)
def test_functions_that_models_would_not_take_are_refused(tools: tuple[ClientTool, ...]) -> None:
    with refused("client_tools_invalid"):
        require_valid(tools)
