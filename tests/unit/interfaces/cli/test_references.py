"""Beginnings of ids, nearest names, ids of another kind."""

import pytest

from domain.json_value import JsonObject
from tests.unit.interfaces.cli.fake_service import FakeService, agent_document, problem, run_document

pytestmark = pytest.mark.requirement("U4")

FIRST, SECOND = "run_01hx4aaaaaaaaaaaaaaaaaaaaa", "run_01hx4bbbbbbbbbbbbbbbbbbbbb"


def page(*entries: JsonObject) -> JsonObject:
    return {"data": [*entries], "next_cursor": None}


def runs(*ids: str) -> FakeService:
    service = FakeService().on("GET", "/v1/runs", page(*(run_document(id=each) for each in ids)))
    for each in ids:
        service.on("GET", f"/v1/runs/{each}/wait", {"run": run_document(id=each), "messages": []})
    return service


def test_the_beginning_of_an_id_stands_for_the_one_id_that_begins_so() -> None:
    service = runs(FIRST, SECOND)
    assert service.run("run", "show", "run_01hx4a").out.splitlines()[0] == f"run       {FIRST}"


def test_a_beginning_of_several_ids_is_refused_with_their_names() -> None:
    outcome = runs(FIRST, SECOND).run("run", "show", "run_01hx4")
    assert outcome.exit_code == 2
    assert FIRST in outcome.err
    assert SECOND in outcome.err


def test_a_whole_id_is_not_looked_up() -> None:
    service = runs(FIRST)
    service.run("run", "show", FIRST)
    assert "/v1/runs" not in [request.url.path for request in service.requests]


def test_a_beginning_is_completed_in_queries_and_in_bodies() -> None:
    service = (
        runs(FIRST, SECOND)
        .on("GET", "/v1/approvals", page())
        .on("POST", "/v1/gateway-sessions", problem(403, "forbidden", "No."))
    )
    service.run("approval", "list", "--run", "run_01hx4b")
    assert service.requests[-1].url.params["run_id"] == SECOND
    service.run("gateway", "open", "--run", "run_01hx4b")
    assert service.sent("POST", "/v1/gateway-sessions") == [{"run_id": SECOND}]


def test_a_message_that_begins_like_an_id_stays_as_it_is() -> None:
    service = runs(FIRST).on("POST", "/v1/runs", problem(403, "forbidden", "No."))
    service.run("run", "start", "run_01hx4a", "--agent", "guide")
    assert service.sent("POST", "/v1/runs") == [{"agent": "guide", "input": "run_01hx4a"}]


def test_a_name_with_a_typing_error_gets_the_nearest_name_and_the_command_that_lists_all() -> None:
    service = (
        FakeService()
        .on("GET", "/v1/agents", page(agent_document(name="guide"), agent_document(name="writer")))
        .on("GET", "/v1/agents/giude", problem(404, "agent_not_found", "There is no agent 'giude'."))
    )
    outcome = service.run("agent", "show", "giude")
    assert outcome.exit_code == 1
    assert "Did you mean 'guide'? `dragoman agent list` shows all." in outcome.err


def test_an_id_of_another_kind_is_named_with_the_command_that_shows_it() -> None:
    thread = "thr_01hx4aaaaaaaaaaaaaaaaaaaaa"
    service = FakeService().on(
        "GET", f"/v1/runs/{thread}/wait", problem(404, "run_not_found", f"There is no run '{thread}'.")
    )
    assert f"It is the id of a thread: `dragoman thread show {thread}`." in service.run("run", "show", thread).err


def test_what_cannot_be_listed_leaves_the_answer_of_the_service_as_it_is() -> None:
    service = (
        FakeService()
        .on("GET", "/v1/api-keys", problem(403, "forbidden", "Your role may not."))
        .on("DELETE", "/v1/api-keys/key_0123", problem(403, "forbidden", "Your role may not."))
    )
    outcome = service.run("key", "revoke", "key_0123")
    assert (outcome.exit_code, outcome.err) == (1, "Error: Your role may not.\n")
