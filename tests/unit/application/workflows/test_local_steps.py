"""LocalSteps: entrypoint, transform, condition and human input."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.workflows.local_steps import LocalSteps
from application.workflows.node_execution import AwaitsAnswer, NodeContext, NodeFailed, Succeeded
from application.workflows.ports import EXPRESSION_TOO_COSTLY, ExpressionFailed, Expressions
from domain.ids import RunId
from domain.json_value import JsonValue
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.graph import NodeDefinition
from infrastructure.expressions.jmespath_expressions import JmesPathExpressions
from tests.builders import KEY, ORG, after
from tests.doubles.surroundings import FixedClock
from tests.workflow_builders import WORKFLOW_RUN, agent, entrypoint, node, planned, transform

ULM: JsonValue = {"city": "Ulm", "sights": 3}
CASES = node(
    "choose",
    "condition",
    cases=[{"handle": "many", "expression": "sights > `2`"}, {"handle": "some", "expression": "sights"}],
    otherwise="none",
)


@pytest.fixture
def expressions(mocker: MockerFixture) -> MockType:
    """Expressions with values that a test gives."""
    mock: MockType = mocker.create_autospec(Expressions, instance=True)
    return mock


async def no_run(node_id: str, run_id: RunId) -> None:
    raise AssertionError("a local step has no run of an agent")


async def executed(
    definition: NodeDefinition, given: JsonValue = ULM, *, expressions: Expressions | None = None
) -> Succeeded | AwaitsAnswer:
    """The outcome of a node right after the entrypoint, whose output is `given`."""
    parts = () if definition.kind == "entrypoint" else (entrypoint(), f"start -> {definition.id}")
    context = NodeContext(
        organization_id=ORG,
        workflow_run_id=WORKFLOW_RUN,
        requested_by=KEY,
        run_input=given,
        nodes={"start": NodeRun(node_id="start", status=NodeStatus.SUCCEEDED, output=given)},
        note_run=no_run,
        note_audit=lambda entry: None,
    )
    steps = LocalSteps(expressions=expressions or JmesPathExpressions(), clock=FixedClock(after(60)))
    planned_node = planned(definition, *parts).by_id[definition.id]
    return await steps.execute(planned_node, NodeRun(node_id=definition.id), context)


@pytest.mark.parametrize("given", [None, "text", ULM])
async def test_an_entrypoint_puts_out_the_input_of_the_run(given: JsonValue) -> None:
    assert await executed(entrypoint(), given) == Succeeded(output=given)


async def test_a_transform_puts_out_the_value_of_its_expression_over_the_output_before_it() -> None:
    assert await executed(transform("end", "city")) == Succeeded(output="Ulm")


async def test_a_transform_with_an_input_has_that_and_not_the_output_before_it() -> None:
    definition = transform("end", "@", input={"text": "To {{start.city}}"})
    assert await executed(definition) == Succeeded(output={"text": "To Ulm"})


@pytest.mark.parametrize(
    ("sights", "handle"), [(3, "many"), (1, "some"), (None, "none")], ids=["both hold", "second", "neither"]
)
async def test_a_condition_takes_the_first_case_that_holds_and_puts_out_what_it_was_given(
    sights: JsonValue, handle: str
) -> None:
    given: JsonValue = {"sights": sights}
    assert await executed(CASES, given) == Succeeded(output=given, handle=handle)


async def test_cases_after_the_first_that_holds_are_not_evaluated(expressions: MockType) -> None:
    expressions.evaluate.return_value = True
    await executed(CASES, expressions=expressions)
    expressions.evaluate.assert_awaited_once_with("sights > `2`", ULM)


@pytest.mark.parametrize("value", [True, 0, 0.0, 1, "false", [None], {"a": None}], ids=repr)
async def test_numbers_and_all_that_is_not_empty_hold(expressions: MockType, value: JsonValue) -> None:
    expressions.evaluate.return_value = value
    assert await executed(CASES, expressions=expressions) == Succeeded(output=ULM, handle="many")


@pytest.mark.parametrize("value", [False, None, "", [], {}], ids=repr)
async def test_false_null_and_empty_values_do_not_hold(expressions: MockType, value: JsonValue) -> None:
    expressions.evaluate.return_value = value
    assert await executed(CASES, expressions=expressions) == Succeeded(output=ULM, handle="none")


async def test_a_person_is_asked_the_filled_prompt_with_the_schema_of_the_answer() -> None:
    schema: JsonValue = {"type": "boolean"}
    asked = await executed(node("ask", "human_input", prompt="Publish {{start.city}}?", schema=schema))
    assert asked == AwaitsAnswer(asked={"prompt": "Publish Ulm?", "schema": schema}, due_at=None)


async def test_a_person_has_the_time_of_the_node_from_now() -> None:
    asked = await executed(node("ask", "human_input", prompt="?", timeout_s=30))
    assert asked == AwaitsAnswer(asked={"prompt": "?", "schema": None}, due_at=after(90))


@pytest.mark.parametrize("code", ["expression_failed", EXPRESSION_TOO_COSTLY])
@pytest.mark.parametrize(
    "definition",
    [
        transform("end", "sum(@)"),
        transform("end", "@", input="{{start.city}}"),
        CASES,
        node("choose", "condition", expression="@", input="{{start.city}}"),
        node("ask", "human_input", prompt="{{start.city}}"),
    ],
    ids=["transform", "input of a transform", "condition", "input of a condition", "prompt"],
)
async def test_an_expression_without_a_value_fails_the_node_with_its_code(
    expressions: MockType, definition: NodeDefinition, code: str
) -> None:
    expressions.evaluate.side_effect = ExpressionFailed("It has no value.", code=code)

    with pytest.raises(NodeFailed) as raised:
        await executed(definition, expressions=expressions)

    error = raised.value.error
    assert (error.code, error.detail, error.retryable) == (code, "It has no value.", False)


async def test_a_node_of_another_kind_is_no_local_step(expressions: MockType) -> None:
    with pytest.raises(ValueError, match="agent"):
        await executed(agent("guide"), expressions=expressions)
    expressions.evaluate.assert_not_awaited()
