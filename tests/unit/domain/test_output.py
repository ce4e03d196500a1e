"""Output of runs by a schema: what is read from an answer, and what is asked when it does not
match."""

import pytest

from domain.json_value import JsonObject
from domain.runs.output import (
    MAX_OUTPUT,
    MAX_SCHEMA,
    is_repair_request,
    output_invalid,
    parsed_output,
    repair_request,
    size_violations,
)
from tests.builders import START, a_message, a_run


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, {"b": null}]}',
        '\n {"a": [1, {"b": null}]}\n',
        '```json\n{"a": [1, {"b": null}]}\n```',
        'Here it is:\n{"a": [1, {"b": null}]}\nAnything else?',
    ],
)
def test_the_object_of_an_answer_is_read_with_and_without_text_around_it(text: str) -> None:
    assert parsed_output(text).value == {"a": [1, {"b": None}]}


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is noon.",
        "[1, 2]",
        "} {",
        '{"a": 1',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        '{"a": ' * 100_000 + "1" + "}" * 100_000,
        '{"a": ' + "1" * 5_000 + "}",
    ],
)
def test_what_is_no_object_that_can_be_stored_is_a_fault(text: str) -> None:
    output = parsed_output(text)
    assert output.value is None
    assert len(output.faults) == 1


@pytest.mark.requirement("H3")
def test_a_very_long_answer_is_not_read() -> None:
    (fault,) = parsed_output('{"a": "' + "x" * MAX_OUTPUT + '"}').faults
    assert str(MAX_OUTPUT) in fault


@pytest.mark.requirement("H3")
def test_a_schema_that_is_too_large_for_every_request_is_a_violation() -> None:
    large: JsonObject = {"type": "object", "description": "x" * MAX_SCHEMA}
    assert [violation.path for violation in size_violations(large)] == ["output_schema"]
    assert size_violations({"type": "object"}) == size_violations(None) == []


@pytest.mark.requirement("H3")
def test_the_request_to_repair_has_the_faults_and_the_schema_and_is_told_from_the_input() -> None:
    run = a_run()
    request = repair_request(run, {"type": "object", "required": ["city"]}, ('"city" is missing',), at=START)
    assert '- "city" is missing' in request.text
    assert '{"type": "object", "required": ["city"]}' in request.text
    assert is_repair_request(request, run)
    assert not is_repair_request(a_message(1, run_id=None), run)


@pytest.mark.requirement("H3")
def test_the_error_names_the_first_faults() -> None:
    error = output_invalid(("one", "two", "three", "four"))
    assert error.code == "output_invalid"
    assert error.detail.endswith("one; two; three.")
