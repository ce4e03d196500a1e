"""`dragoman workflow run` and what goes with it."""

import json
from typing import cast

import httpx
import pytest

from domain.json_value import JsonObject
from interfaces.http.workflow_runs.views import WorkflowRunView
from tests.unit.interfaces.cli.fake_service import FakeService, whole

RUN = "/v1/workflow-runs/wfr_1"


def document(status: str = "completed", **fields: object) -> JsonObject:
    found: dict[str, object] = {
        "id": "wfr_1",
        "workflow_id": "wfl_1",
        "workflow_version": 2,
        "status": status,
        "output": None,
        "error": None,
        "pending": [],
        "nodes": [],
        "created_at": "2026-01-01T00:00:00Z",
        **fields,
    }
    return whole(WorkflowRunView, cast(JsonObject, found))


def stream(*events: tuple[str, dict[str, object]], status: str = "completed") -> httpx.Response:
    frames = [
        f"id: {seq}\nevent: {kind}\ndata: {json.dumps({'seq': seq, 'type': kind, **data})}\n\n"
        for seq, (kind, data) in enumerate(events, start=1)
    ]
    frames.append(f'event: end\ndata: {{"status": "{status}"}}\n\n')
    return httpx.Response(200, text="".join(frames), headers={"content-type": "text/event-stream"})


def service(ended: JsonObject, *events: tuple[str, dict[str, object]]) -> FakeService:
    return (
        FakeService()
        .on("POST", "/v1/workflows/answers/runs", document("queued"))
        .on("GET", f"{RUN}/stream", stream(*events, status=str(ended["status"])))
        .on("GET", RUN, ended)
    )


def test_a_workflow_is_run_and_followed_to_its_output() -> None:
    harness = service(document(output="A page."), ("node.started", {"node_id": "poet"}), ("workflow.completed", {}))
    outcome = harness.run("workflow", "run", "answers", "--input", '{"topic": "Ulm"}')
    assert (outcome.exit_code, outcome.out) == (0, "A page.\n")
    assert "node.started poet" in outcome.err
    assert harness.sent("POST", "/v1/workflows/answers/runs") == [{"input": {"topic": "Ulm"}}]
    assert harness.workers_asked_for == [True]


@pytest.mark.parametrize(("given", "sent"), [("Ulm", "Ulm"), ("7", 7), ("NaN", "NaN"), ('"x"', "x")])
def test_an_input_that_is_no_json_is_text(given: str, sent: object) -> None:
    harness = service(document())
    harness.run("workflow", "run", "answers", "--input", given)
    assert harness.sent("POST", "/v1/workflows/answers/runs") == [{"input": sent}]


def test_a_run_that_fails_says_where_and_why() -> None:
    error = {"code": "http_status", "detail": "The server answered HTTP 404."}
    ended = document("failed", error=error, failed_node="fetch")
    outcome = service(ended, ("node.failed", {"node_id": "fetch", "error": error})).run("workflow", "run", "answers")
    assert outcome.exit_code == 1
    assert "failed at fetch: The server answered HTTP 404." in outcome.err


@pytest.mark.requirement("F4")
@pytest.mark.parametrize(("more", "alone"), [((), False), (("--alone",), True)])
def test_a_replay_is_a_run_that_is_followed(*, more: tuple[str, ...], alone: bool) -> None:
    harness = service(document(output="A page."), ("workflow.completed", {}))
    harness.on("POST", f"{RUN}0/replay", document("queued"))
    outcome = harness.run("workflow", "replay", "wfr_10", "review", *more)
    assert (outcome.exit_code, outcome.out) == (0, "A page.\n")
    assert harness.sent("POST", f"{RUN}0/replay") == [{"node_id": "review", "alone": alone}]


def test_a_run_that_waits_says_how_to_answer() -> None:
    ended = document("requires_action", pending=[{"node_id": "review", "asked": {"prompt": "Publish?"}}])
    outcome = service(ended).run("workflow", "run", "answers")
    assert outcome.exit_code == 3
    assert "dragoman workflow answer wfr_1 review ANSWER" in outcome.err


def test_an_answer_goes_to_its_node_and_only_what_is_new_is_told() -> None:
    harness = service(document(output=1), ("workflow.queued", {})).on("POST", f"{RUN}/resume", document("queued"))
    outcome = harness.run("workflow", "answer", "wfr_1", "review", "true", "--json")
    assert harness.sent("POST", f"{RUN}/resume") == [{"answers": [{"node_id": "review", "answer": True}]}]
    followed = [request for request in harness.requests if request.url.path.endswith("/stream")]
    assert followed[-1].headers["last-event-id"] == "1"
    assert outcome.json == document(output=1)


def test_a_run_is_shown_with_its_nodes() -> None:
    nodes = [
        {"node_id": "fetch", "status": "succeeded", "attempt": 1, "output": {"a": 1}},
        {
            "node_id": "poet",
            "status": "failed",
            "attempt": 2,
            "error": {"code": "x", "detail": "No."},
            "run_id": "run_1",
        },
    ]
    outcome = FakeService().on("GET", RUN, document("failed", nodes=nodes)).run("workflow", "run-show", "wfr_1")
    assert outcome.exit_code == 0
    assert all(said in outcome.out for said in ("fetch", '{"a": 1}', "run_1", "No."))


def test_a_run_is_drawn() -> None:
    drawn = httpx.Response(200, text="flowchart LR\n", headers={"content-type": "text/vnd.mermaid"})
    outcome = FakeService().on("GET", f"{RUN}/diagram", drawn).run("workflow", "run-show", "wfr_1", "--mermaid")
    assert outcome.out == "flowchart LR\n"


def test_runs_are_listed_and_stopped() -> None:
    harness = (
        FakeService()
        .on("GET", "/v1/workflow-runs", {"data": [document()], "next_cursor": None})
        .on("POST", f"{RUN}/cancel", document("cancelled"))
    )
    assert "wfr_1" in harness.run("workflow", "runs").out
    assert harness.run("workflow", "cancel", "wfr_1").err == "Workflow run wfr_1: cancelled.\n"


def test_a_run_whose_agent_waits_says_for_which_calls_and_how_to_go_on() -> None:
    calls = [
        {"type": "tool_use", "id": "call_1", "name": "order", "params": {"item": "shoes"}, "approval_id": "apr_1"},
        {"type": "tool_use", "id": "call_2", "name": "send_email", "params": {"to": "a@b.example"}},
    ]
    ended = document("requires_action", pending=[{"node_id": "buyer", "run_id": "run_1", "asked": {"calls": calls}}])
    outcome = service(ended).run("workflow", "run", "answers")
    assert outcome.exit_code == 3
    assert 'buyer requires approval: order {"item": "shoes"}' in outcome.err
    assert "dragoman approval decide apr_1 --approve" in outcome.err
    assert "dragoman run resume run_1" in outcome.err
    assert "workflow answer" not in outcome.err
    shown = FakeService().on("GET", RUN, ended).run("workflow", "run-show", "wfr_1")
    assert "dragoman approval decide apr_1 --approve" in shown.err
