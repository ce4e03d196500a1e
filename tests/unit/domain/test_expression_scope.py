"""Warnings about expressions that name nodes they do not see."""

import pytest

from domain.workflows.faults import FaultCode
from tests.workflow_builders import compiled, entrypoint, node, transform

CHAIN = ("start -> fetch", "fetch -> last")


def warned(expression: str, *edges: str, **config: object) -> list[tuple[str, ...]]:
    """The nodes of the warnings about a transform `last` with this expression."""
    compilation = compiled(entrypoint(), transform("fetch"), transform("last", expression, **config), *edges)
    assert compilation.faults == ()
    assert {fault.code for fault in compilation.warnings} <= {FaultCode.EXPRESSION_SCOPE}
    return [fault.node_ids for fault in compilation.warnings]


@pytest.mark.requirement("U4")
@pytest.mark.parametrize("expression", ["fetch", "fetch.body.items[?state=='open']", "length(fetch) > `0`", "!fetch"])
def test_an_expression_that_names_a_node_is_warned_about(expression: str) -> None:
    assert warned(expression, *CHAIN) == [("last", "fetch")]


@pytest.mark.parametrize(
    "expression",
    ["@", "body.fetch", "'fetch'", '`"fetch"`', "items[?fetch=='x']", "{fetch: body}", "fetched", "last"],
)
def test_names_of_something_else_are_not_warned_about(expression: str) -> None:
    assert warned(expression, *CHAIN) == []


def test_an_expression_with_an_input_or_after_several_nodes_is_not_warned_about() -> None:
    assert warned("fetch", *CHAIN, input={"fetch": "{{fetch}}"}) == []
    assert warned("fetch", *CHAIN, "start -> last") == []


def test_each_case_of_a_condition_is_looked_at() -> None:
    cases = [{"handle": "many", "expression": "length(fetch) > `9`"}, {"handle": "some", "expression": "@"}]
    compilation = compiled(
        entrypoint(), transform("fetch"), node("last", "condition", cases=cases), "start -> fetch", "fetch -> last"
    )
    [fault] = compilation.warnings
    assert 'input: "{{fetch}}"' in fault.message
