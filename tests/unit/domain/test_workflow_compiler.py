"""What the compiler makes of workflows, and what it says of those that are wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.json_value import JsonObject, JsonValue
from domain.secrets.secret import SecretRef
from domain.workflows.compiler import MAX_EXPRESSION_CHARACTERS, MAX_REFERENCES, compile_workflow
from domain.workflows.faults import FaultCode
from domain.workflows.graph import (
    ConditionConfig,
    Edge,
    HttpRequestConfig,
    JoinStrategy,
    NodeDefinition,
    NodeKind,
    WorkflowDefinition,
)
from domain.workflows.plan import Incoming
from domain.workflows.wiring import MAX_SUGGESTIONS
from tests.workflow_builders import WEATHER, agent, compiled, entrypoint, node, planned, tool, transform


def codes(*parts: NodeDefinition | str) -> list[FaultCode]:
    return [fault.code for fault in compiled(*parts).faults]


def only_fault(*parts: NodeDefinition | str) -> tuple[FaultCode, tuple[str, ...], str]:
    (fault,) = compiled(*parts).faults
    return fault.code, fault.node_ids, fault.path


@pytest.mark.requirement("F1", "F3")
def test_each_agent_has_exactly_the_tools_wired_to_its_tools_handle() -> None:
    plan = planned(
        entrypoint(),
        agent("researcher"),
        agent("writer"),
        agent("critic"),
        tool("weather"),
        tool("news", "news"),
        node("files", "mcp_server", "tool", server="files"),
        "start -> researcher",
        "researcher -> writer",
        "writer -> critic",
        "news -> researcher.tools",
        "weather.tool -> researcher.tools",
        "weather -> writer.tools",
        "files -> writer.tools",
    )
    assert plan.by_id["researcher"].connected_tool_node_ids == ("news", "weather")
    assert plan.by_id["writer"].connected_tool_node_ids == ("weather", "files")
    assert plan.by_id["critic"].connected_tool_node_ids == ()
    assert plan.by_id["writer"].incoming == (Incoming(source="researcher", handle="output"),)


@pytest.mark.requirement("F1")
def test_nodes_stand_in_an_order_in_which_each_comes_after_its_upstream_and_its_tools() -> None:
    plan = planned(
        transform("last"),
        agent("asked"),
        tool("weather"),
        entrypoint(),
        "start -> asked",
        "asked -> last",
        "weather -> asked.tools",
    )
    assert [step.id for step in plan.nodes] == ["weather", "start", "asked", "last"]
    assert plan.by_id["last"].upstream == {"start", "asked", "weather"}
    assert [step.id for step in plan.nodes if step.is_sink] == ["last"]


@pytest.mark.requirement("F1")
def test_every_fault_is_told_at_once_with_its_nodes() -> None:
    faults = compiled(
        entrypoint(),
        node("odd", "teleport"),
        node("bent", "transform", "sideways", expression="@"),
        agent("asked", input="{{strat.question}}"),
        agent("mute", ""),
        transform("a"),
        transform("b"),
        transform("island"),
        "start -> asked",
        "start -> nowhere",
        "asked.left -> mute",
        "asked -> a",
        "a -> b",
        "b -> a",
    ).faults
    assert {(fault.code, fault.node_ids) for fault in faults} == {
        (FaultCode.UNKNOWN_KIND, ("odd",)),
        (FaultCode.UNKNOWN_MODE, ("bent",)),
        (FaultCode.UNKNOWN_REFERENCE, ("asked",)),
        (FaultCode.CONFIG_INVALID, ("mute",)),
        (FaultCode.UNKNOWN_NODE, ("start",)),
        (FaultCode.UNKNOWN_HANDLE, ("asked", "mute")),
        (FaultCode.CYCLE, ("a", "b")),
        (FaultCode.UNREACHABLE, ("mute",)),
        (FaultCode.UNREACHABLE, ("island",)),
    }


@pytest.mark.requirement("F1")
def test_a_cycle_is_told_by_its_path_once_for_each_knot() -> None:
    faults = compiled(
        entrypoint(),
        transform("a"),
        transform("b"),
        transform("c"),
        transform("self"),
        "start -> a",
        "a -> b",
        "b -> c",
        "c -> a",
        "b -> a",
        "start -> self",
        "self -> self",
    ).faults
    assert [(fault.code, fault.node_ids) for fault in faults] == [
        (FaultCode.CYCLE, ("a", "b")),
        (FaultCode.CYCLE, ("self",)),
    ]
    assert "a → b → a" in faults[0].message


@pytest.mark.requirement("F1")
def test_a_tool_that_waits_for_its_own_agent_is_a_cycle() -> None:
    parts = (entrypoint(), agent("asked"), tool("weather"), "start -> asked", "asked -> weather")
    assert codes(*parts, "weather -> asked.tools") == [FaultCode.CYCLE]


@pytest.mark.parametrize("count", [0, 2])
def test_there_is_exactly_one_entrypoint(count: int) -> None:
    assert FaultCode.ENTRYPOINT_COUNT in codes(*(entrypoint(f"start{index}") for index in range(count)))


def test_no_edge_leads_to_the_entrypoint() -> None:
    found = compiled(entrypoint(), transform("a"), "start -> a", "a -> start").faults
    assert [fault.code for fault in found] == [FaultCode.EDGE_INTO_ENTRYPOINT]


def test_node_ids_are_distinct_and_legal() -> None:
    assert codes(entrypoint(), transform("a"), transform("a"), "start -> a") == [FaultCode.DUPLICATE_NODE]
    for illegal in ("inputs", "1st", "a b", "x" * 65, ""):
        assert codes(entrypoint(), transform(illegal), f"start -> {illegal}") == [FaultCode.NODE_ID_INVALID]


def test_an_edge_is_there_once() -> None:
    fault = only_fault(entrypoint(), transform("a"), "start -> a", "start.output -> a")
    assert fault == (FaultCode.DUPLICATE_EDGE, ("start", "a"), "edges.1")


@pytest.mark.requirement("F1")
def test_a_tools_edge_comes_from_a_tool_and_leads_to_an_agent() -> None:
    parts = (entrypoint(), agent("asked"), transform("step"), tool("weather"), "start -> asked", "asked -> step")
    assert only_fault(*parts, "start -> asked.tools")[0] == FaultCode.TOOL_EDGE_SOURCE
    assert only_fault(*parts, "weather -> step.tools")[0] == FaultCode.TOOL_EDGE_TARGET
    assert only_fault(*parts, "weather -> asked")[0] == FaultCode.TOOL_EDGE_HANDLE


def test_only_some_kinds_can_be_tools() -> None:
    fault = only_fault(entrypoint(), node("sum", "transform", "tool", expression="@"))
    assert fault == (FaultCode.NOT_A_TOOL, ("sum",), "mode")


@pytest.mark.requirement("F1")
def test_tools_of_one_agent_have_different_names() -> None:
    parts = (entrypoint(), agent("asked"), agent("other"), tool("one"), tool("two"), "start -> asked", "start -> other")
    assert codes(*parts, "one -> asked.tools", "two -> other.tools") == []
    clash = only_fault(*parts, "one -> asked.tools", "two -> asked.tools")
    assert clash[:2] == (FaultCode.TOOL_NAME_CLASH, ("one", "two", "asked"))


def test_a_servers_tools_clash_with_some_of_the_same_server() -> None:
    parts = (
        entrypoint(),
        agent("asked"),
        node("all", "mcp_server", "tool", server="files"),
        node("some", "mcp_server", "tool", server="files", tools=["read"]),
        "start -> asked",
        "all -> asked.tools",
    )
    assert codes(*parts) == []
    assert codes(*parts, "some -> asked.tools") == [FaultCode.TOOL_NAME_CLASH]


@pytest.mark.parametrize("name", ["send_email", "call_tool", "mcp__files__read", "agent__guide", "two words"])
def test_a_tools_name_is_not_that_of_another_kind_of_tool(name: str) -> None:
    assert compiled(entrypoint(), tool("weather", name)).faults


def test_a_tool_nobody_is_wired_to_is_a_warning() -> None:
    compilation = compiled(entrypoint(), tool("weather"))
    assert compilation.plan is not None
    assert [(warning.code, warning.node_ids) for warning in compilation.warnings] == [
        (FaultCode.TOOL_NOT_WIRED, ("weather",))
    ]


@pytest.mark.requirement("F1")
@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("{{later.text}}", FaultCode.REFERENCE_NOT_UPSTREAM),
        ("{{asked.text}}", FaultCode.REFERENCE_NOT_UPSTREAM),
        ("{{weather.text}}", FaultCode.REFERENCE_WITHOUT_OUTPUT),
        ("{{stat.text}}", FaultCode.UNKNOWN_REFERENCE),
        ("{{inputs.city}}", FaultCode.CONFIG_INVALID),
        ("{{start.", FaultCode.CONFIG_INVALID),
        ("{{1}}", FaultCode.CONFIG_INVALID),
    ],
)
def test_a_reference_names_a_node_that_comes_before(reference: str, code: FaultCode) -> None:
    fault = only_fault(
        entrypoint(),
        agent("asked", input={"question": ["?", reference]}),
        transform("later"),
        tool("weather"),
        "start -> asked",
        "asked -> later",
        "weather -> asked.tools",
    )
    assert fault[0] == code
    assert fault[1][0] == "asked"
    assert fault[2] == "config.input.question.1"


@pytest.mark.requirement("F1", "F2")
@pytest.mark.parametrize(
    ("change", "paths"),
    [
        ({"bound": {"town": "Ulm", "token": {"secret": "T"}}}, {"tool.bound.town"}),
        ({"exposed": ["city", "country"]}, {"tool.exposed.1"}),
        ({"exposed": ["city", "token"]}, {"tool.exposed.1"}),
        ({"bound": {}}, {"inputs.token"}),
        ({"exposed": []}, {"inputs.city"}),
        ({"bound": {"token": "{{inputs.city}}"}}, {"tool.bound.token"}),
        ({"exposed": "city"}, {"tool.exposed", "inputs.city"}),
        ({"limits": {}}, {"tool.limits"}),
        ({"name": None}, {"tool.name"}),
    ],
)
def test_every_input_has_one_value_and_nothing_else_is_bound_or_exposed(change: JsonObject, paths: set[str]) -> None:
    settings: JsonValue = {**WEATHER["tool"], **change} if isinstance(WEATHER["tool"], dict) else {}
    faults = compiled(entrypoint(), tool("weather", tool=settings)).faults
    assert {fault.path.removeprefix("config.") for fault in faults} == paths


def test_a_steps_inputs_are_bound_or_have_defaults() -> None:
    inputs: JsonObject = {"city": {"type": "string"}, "unit": {"type": "string", "default": "C"}}
    fetch = node("fetch", "http_request", url="https://a.example/{{inputs.city}}", inputs=inputs)
    assert only_fault(entrypoint(), fetch, "start -> fetch")[2] == "config.inputs.city"


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"url": "ftp://a.example"}, "url"),
        ({"url": "https://user:pass@a.example"}, "url"),
        ({"url": "https://a.example", "headers": {"Authorization": "Bearer abc"}}, "headers.Authorization"),
        ({"url": "https://a.example", "headers": {"X": "a\nb"}}, "headers.X"),
        ({"url": "https://a.example", "headers": {"Host": "b"}}, "headers.Host"),
        ({"url": "https://a.example", "body": {"token": {"secret": "T"}}}, "body"),
        ({"url": "{{start.url}}", "headers": {"X": {"secret": "T"}}}, "url"),
        ({"url": "https://{{start.host}}/", "headers": {"X": {"secret": "T"}}}, "url"),
        ({"url": "https://a.example", "verb": "GET"}, "verb"),
        ({"url": "https://a.example", "retry": {"attempts": 0}}, "retry.attempts"),
        ({"url": "https://a.example", "timeout_s": True}, "timeout_s"),
        ({"url": "https://a.example", "join": "most"}, "join"),
    ],
)
def test_a_request_that_is_wrong_is_told_by_path(config: JsonObject, path: str) -> None:
    fetch = NodeDefinition(id="fetch", kind="http_request", config={"method": "GET", **config})
    faults = compiled(entrypoint(), fetch, "start -> fetch").faults
    assert f"config.{path}" in {fault.path for fault in faults}


def test_what_others_must_check_is_handed_on_with_its_place() -> None:
    compilation = compiled(
        NodeDefinition(id="start", kind="entrypoint", config={"schema": {"type": "string"}}),
        transform("sum", "sum(@)", input="{{start.numbers[0]}}"),
        node("ask", "human_input", prompt="Is {{sum}} right?", schema={"type": "boolean"}),
        tool("weather"),
        "start -> sum",
        "sum -> ask",
    )
    expressions = {(found.node_id, found.path, found.text) for found in compilation.expressions}
    assert ("sum", "config.expression", "sum(@)") in expressions
    assert ("sum", "config.input", "numbers[0]") in expressions
    assert [(found.node_id, found.path) for found in compilation.schemas][0::3] == [
        ("start", "config.schema"),
        ("weather", "config.inputs.token"),
    ]
    assert [found.text for found in compilation.secrets] == ["WEATHER_TOKEN"]


def test_configurations_are_typed() -> None:
    plan = planned(
        entrypoint(),
        node("choose", "condition", expression="@.rich"),
        node("sort", "condition", cases=[{"handle": "big", "expression": "@.n > `9`"}], join="any", timeout_s=3),
        tool("weather"),
        "start -> choose",
        "choose.true -> sort",
        "choose.false -> sort",
    )
    weather, choose, sort = (plan.by_id[name] for name in ("weather", "choose", "sort"))
    assert isinstance(weather.config, HttpRequestConfig)
    assert weather.config.tool is not None
    assert dict(weather.config.tool.bound) == {"token": SecretRef("WEATHER_TOKEN")}
    assert isinstance(choose.config, ConditionConfig)
    assert isinstance(sort.config, ConditionConfig)
    assert choose.config.handles == ("true", "false")
    assert sort.config.handles == ("big", "else")
    assert (sort.join, sort.settings.timeout_s) == (JoinStrategy.ANY, 3.0)


def test_a_conditions_edge_names_its_handle() -> None:
    choose = node("choose", "condition", expression="@.rich")
    parts = (entrypoint(), choose, transform("a"), "start -> choose")
    assert FaultCode.UNKNOWN_HANDLE in codes(*parts, "choose -> a")
    assert codes(*parts, "choose.false -> a") == []


def test_deep_configurations_and_large_graphs_are_refused() -> None:
    deep: JsonValue = None
    for _ in range(10_000):
        deep = [deep]
    assert only_fault(entrypoint(), node("a", "transform", expression="@", input=deep), "start -> a")[2] == "config"
    many = tuple(transform(f"n{index}") for index in range(501))
    assert codes(entrypoint(), *many) == [FaultCode.TOO_LARGE]


_ids = st.sampled_from(["start", "a", "b", "c", "t"])
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["{{a.b}}", "{{inputs.x}}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_fields = st.sampled_from(
    ["url", "tool", "inputs", "bound", "expression", "cases", "agent", "input", "server", "tools", "retry", "headers"]
)
_nodes = st.builds(
    NodeDefinition,
    id=_ids,
    kind=st.sampled_from([*(kind.value for kind in NodeKind), "other"]),
    mode=st.sampled_from(["normal", "tool", "other"]),
    config=st.dictionaries(_fields, _json, max_size=4),
)
_edges = st.builds(
    Edge,
    source=_ids,
    target=_ids,
    source_handle=st.sampled_from(["", "output", "tool", "true"]),
    target_handle=st.sampled_from(["input", "tools", "x"]),
)


@given(st.lists(_nodes, max_size=6), st.lists(_edges, max_size=8))
def test_the_compiler_answers_whatever_it_is_given(nodes: list[NodeDefinition], edges: list[Edge]) -> None:
    compilation = compile_workflow(WorkflowDefinition(name="any", nodes=tuple(nodes), edges=tuple(edges)))
    assert (compilation.plan is None) == bool(compilation.faults)


def test_more_references_and_expressions_than_anybody_waits_for_are_refused() -> None:
    many = transform("many", "@", input="{{start}}" * (MAX_REFERENCES + 1))
    long = transform("long", "@", input=["{{start." + "a." * 2_000 + "a}}"] * (MAX_EXPRESSION_CHARACTERS // 4_000 + 1))
    for part in (many, long):
        compilation = compiled(entrypoint(), part, f"start -> {part.id}")
        assert FaultCode.TOO_LARGE in {fault.code for fault in compilation.faults}
        assert compilation.expressions == ()
    few = transform("few", "@", input="{{start}}" * (MAX_REFERENCES - 10))
    assert compiled(entrypoint(), few, "start -> few").faults == ()


def test_what_may_have_been_meant_is_said_of_the_first_faults_only() -> None:
    edges = ["start -> n1x"] * 100
    faults = compiled(entrypoint(), transform("n1"), "start -> n1", *edges).faults
    assert len(faults) == 100
    assert sum("did you mean" in fault.message for fault in faults) == MAX_SUGGESTIONS
