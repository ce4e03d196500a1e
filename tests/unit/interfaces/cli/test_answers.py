"""Answers of the service, read as the views of its API."""

import httpx
import pytest

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import entries_of, parsed_as, read_as
from interfaces.cli.failures import UnexpectedAnswer
from interfaces.http.agents.views import AgentView
from interfaces.http.threads.views import QuarantineView
from tests.unit.interfaces.cli.fake_service import FakeService, agent_document, run_document

QUARANTINE: JsonObject = {"run_id": "run_1", "canary_id": "vault", "at": "2026-01-01T12:00:00Z"}


def test_an_answer_is_its_view_without_fields_of_newer_services() -> None:
    assert sorted(read_as(QuarantineView, {**QUARANTINE, "a_new_one": 1})) == ["at", "canary_id", "run_id"]
    page: JsonObject = {"data": [QUARANTINE], "next_cursor": None}
    assert [entry["run_id"] for entry in entries_of(QuarantineView, page)] == ["run_1"]


@pytest.mark.parametrize("document", [{"run_id": "run_1"}, {**QUARANTINE, "at": 5}, [], None])
def test_an_answer_that_is_not_its_view_is_unexpected(document: JsonValue) -> None:
    with pytest.raises(UnexpectedAnswer):
        read_as(QuarantineView, document)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run_id": 1}'])
def test_a_text_that_is_not_its_view_is_unexpected(text: str) -> None:
    with pytest.raises(UnexpectedAnswer):
        parsed_as(QuarantineView, text)


@pytest.mark.parametrize(
    ("field", "value"), [("incomplete_reason", "a_new_one"), ("usage", None), ("pending", [{}]), ("created_at", 5)]
)
def test_a_run_that_this_version_does_not_know_is_an_error_on_one_line(field: str, value: JsonValue) -> None:
    run = run_document("requires_action") | {field: value}
    service = FakeService().on("GET", "/v1/runs/run_1/wait", {"run": run, "messages": []})
    outcome = service.run("run", "show", "run_1")
    assert outcome.exit_code == 1
    assert outcome.err.splitlines()[-1].startswith("Error: The service's answer is not understood")
    assert "Traceback" not in outcome.err


def test_an_agent_without_a_field_of_this_version_is_an_error_that_names_the_field() -> None:
    older = {name: value for name, value in agent_document().items() if name != "description"}
    assert "description" in AgentView.__required_keys__
    outcome = FakeService().on("GET", "/v1/agents/guide", httpx.Response(200, json=older)).run("agent", "show", "guide")
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "`description`" in outcome.err
