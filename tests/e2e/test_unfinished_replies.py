"""Runs whose models do not answer in full, as the users of the service see them."""

from pathlib import Path

import httpx
import pytest

from domain.runs.limits import IncompleteReason
from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.service import a_turn, serving

ENDINGS = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "context_exceeded": "context_exceeded",
}


@pytest.mark.requirement("H2", "C5", "E2")
def test_the_reason_is_in_the_run_its_events_its_audit_entry_and_the_description_of_the_api(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        for finish_reason, reason in ENDINGS.items():
            service.agent(
                finish_reason, service.script(finish_reason, {**a_turn("So far"), "finish_reason": finish_reason})
            )
            run = service.run(finish_reason)["run"]
            assert (run["status"], run["incomplete_reason"], run["output"]) == ("incomplete", reason, "So far")
            last = service.events(run["id"])[-1]
            assert (last["type"], last["reason"]) == ("run.incomplete", reason)
            [entry] = service.call("GET", f"/audit-events?run_id={run['id']}&action=run.completed")["data"]
            assert (entry["details"]["status"], entry["details"]["reason"]) == ("incomplete", reason)
        schema = httpx.get(f"{service.url}/schema/openapi.json", timeout=60).json()
        known = schema["components"]["schemas"]["IncompleteReason"]["enum"]
        assert set(known) == {reason.value for reason in IncompleteReason} >= set(ENDINGS.values())


@pytest.mark.requirement("H2")
def test_the_command_line_says_the_reason_in_words(tmp_path: Path) -> None:
    dragoman = DragomanHere(tmp_path / "home")
    model = dragoman.script("cut", {"text": "So far", "finish_reason": "length"})
    done = dragoman.run("run", "Tell me everything.", "--model", model, exit_code=1)
    assert done.out == "So far\n"
    assert "incomplete (max_output_tokens: the model's answer was cut at its output limit)" in done.err
