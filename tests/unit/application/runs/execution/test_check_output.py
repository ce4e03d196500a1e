"""CheckOutput: the answer of a run, by its output schema."""

import json
import threading
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.models.ports import ModelReply
from application.policy.canary_guard import CanaryFound
from application.policy.ports import SchemaValidator
from application.runs.execution.ask_model import Answer
from application.runs.execution.check_output import CheckOutput
from domain.agents.agent import Agent
from domain.ids import MessageId
from domain.json_value import JsonObject, JsonValue
from domain.runs.finish_reason import FinishReason
from domain.runs.output import CheckedOutput
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import KEY, a_run, an_agent, numbered
from tests.run_builders import CANARY, a_claimed_run, a_guarded_agent, a_session, a_state_with_run, some_usage
from tests.unit.application.runs.doubles import RecordingTracer

SCHEMA: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def check(
    text: str,
    schema: JsonObject | None = SCHEMA,
    *,
    agent: Agent | None = None,
    schemas: SchemaValidator | None = None,
) -> CheckedOutput | None:
    run = a_claimed_run(replace(a_run(requested_by=KEY), output_schema=schema))
    session = a_session(run=run, agent=agent or an_agent(), state=a_state_with_run(run), tracer=RecordingTracer())
    reply = ModelReply(
        model="scripted:demo.yaml", text=text, calls=(), usage=some_usage(), finish_reason=FinishReason.STOP
    )
    checking = CheckOutput(schemas=schemas or JsonSchemaValidator())
    return await checking.execute(session, Answer(reply=reply, message_id=MessageId(numbered("msg", 7))), text)


@pytest.mark.requirement("H3")
async def test_an_object_that_matches_is_the_output() -> None:
    assert await check('```json\n{"city": "Lisbon"}\n```') == CheckedOutput(value={"city": "Lisbon"})


@pytest.mark.requirement("H3")
async def test_an_object_that_does_not_match_has_its_faults_and_no_value() -> None:
    output = await check('{"city": 3}')
    assert output == CheckedOutput(faults=('/city: 3 is not of type "string"',))


@pytest.mark.requirement("H3")
async def test_an_answer_without_an_object_is_a_fault() -> None:
    output = await check("Lisbon, of course.")
    assert output is not None
    assert output.faults


@pytest.mark.requirement("H3")
async def test_without_a_schema_nothing_is_checked() -> None:
    assert await check('{"city": 3}', None) is None


@pytest.mark.requirement("H3", "C4")
@pytest.mark.parametrize(
    "shape", ['{{"city": "{}"}}', '{{"city": ["{}"]}}', '{{"{}": 3}}'], ids=["matches", "value", "name"]
)
async def test_a_canary_token_that_is_written_with_escapes_ends_the_run(shape: str) -> None:
    escaped = "".join(f"\\u{ord(character):04x}" for character in CANARY)
    with pytest.raises(CanaryFound) as found:
        await check(shape.format(escaped), agent=a_guarded_agent())
    assert found.value.canary_id == "vault"
    assert found.value.reply is not None
    assert found.value.reply.text == "[canary:vault]"


@pytest.mark.requirement("H3", "C4")
async def test_faults_have_no_canary_token_of_the_schema() -> None:
    schema: JsonObject = {"type": "object", "properties": {"city": {"const": CANARY}}}
    output = await check('{"city": "Lisbon"}', schema, agent=a_guarded_agent())
    assert output is not None
    assert output.faults
    assert CANARY not in str(output.faults)


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(("size", "in_thread"), [(10, False), (100_000, True)])
async def test_a_large_answer_is_checked_in_a_thread(mocker: MockerFixture, size: int, in_thread: bool) -> None:
    schemas = mocker.create_autospec(SchemaValidator, instance=True)
    threads = []

    def violations(schema: JsonObject, value: JsonValue) -> tuple[str, ...]:
        threads.append(threading.current_thread())
        return ()

    schemas.violations.side_effect = violations
    await check(json.dumps({"city": "x" * size}), schemas=schemas)
    assert [thread is not threading.main_thread() for thread in threads] == [in_thread]


@pytest.mark.requirement("H3")
async def test_a_large_answer_is_held_to_its_schema() -> None:
    cities: list[JsonValue] = [{"city": "x"}] * 5_000
    schema: JsonObject = {"type": "object", "properties": {"cities": {"type": "array", "items": SCHEMA}}}
    assert await check(json.dumps({"cities": cities}), schema) == CheckedOutput(value={"cities": cities})
