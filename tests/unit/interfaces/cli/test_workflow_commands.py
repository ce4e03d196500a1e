"""`dragoman workflow`."""

from pathlib import Path

import httpx
import pytest

from domain.json_value import JsonObject
from interfaces.http.workflows.views import SavedWorkflowView, ValidationView
from tests.unit.interfaces.cli.fake_service import FakeService, problem, whole

FILE = "name: answers\nnodes:\n- {id: start, kind: entrypoint}\n"
WANTED: JsonObject = {"name": "answers", "nodes": [{"id": "start", "kind": "entrypoint"}]}


def document(version: int = 3) -> JsonObject:
    return whole(
        SavedWorkflowView,
        {
            **WANTED,
            "id": "wfl_1",
            "version": version,
            "edges": [],
            "updated_at": "2026-01-01T00:00:00Z",
            "plan": [
                {"id": "start", "kind": "entrypoint", "mode": "normal", "after": [], "connected_tool_node_ids": []},
                {
                    "id": "ask",
                    "kind": "agent",
                    "mode": "normal",
                    "after": ["start"],
                    "connected_tool_node_ids": ["files"],
                },
                {"id": "mute", "kind": "agent", "mode": "normal", "after": ["ask"], "connected_tool_node_ids": []},
            ],
            "warnings": [{"code": "tool_not_wired", "message": "The tool 'files' is wired to no agent."}],
        },
    )


def write(folder: Path, text: str = FILE) -> str:
    path = folder / "answers.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_new_workflow_is_created_and_what_is_odd_is_said(tmp_path: Path) -> None:
    service = FakeService().on("POST", "/v1/workflows", document(version=1))
    outcome = service.run("workflow", "apply", write(tmp_path))
    assert outcome.exit_code == 0
    assert "created, version 1" in outcome.err
    assert "wired to no agent" in outcome.err
    assert service.sent("POST", "/v1/workflows") == [{**WANTED, "text": FILE}]


@pytest.mark.requirement("U6")
def test_a_file_that_is_no_yaml_for_the_service_is_sent_without_its_text(tmp_path: Path) -> None:
    with_alias = "name: answers\nnodes:\n- &start {id: start, kind: entrypoint}\nedges: []\n# *start\nlayout: *start\n"
    for text in ('{"name": "answers", "nodes": []}', with_alias):
        service = FakeService().on("POST", "/v1/workflows", document(version=1))
        assert service.run("workflow", "apply", write(tmp_path, text)).exit_code == 0
        [sent] = service.sent("POST", "/v1/workflows")
        assert isinstance(sent, dict)
        assert "text" not in sent


@pytest.mark.parametrize(("version", "said"), [(4, "updated, version 4"), (3, "unchanged, version 3")])
def test_a_workflow_that_exists_becomes_what_the_file_says(tmp_path: Path, version: int, said: str) -> None:
    service = (
        FakeService()
        .on("GET", "/v1/workflows/answers", document())
        .on("PATCH", "/v1/workflows/wfl_1", document(version))
    )
    outcome = service.run("workflow", "apply", write(tmp_path), "--json")
    assert said in outcome.err
    assert service.sent("PATCH", "/v1/workflows/wfl_1") == [{"edges": [], "team": None, **WANTED, "text": FILE}]
    assert service.requests[-1].headers["if-match"] == '"3"'
    assert outcome.json == document(version)


@pytest.mark.parametrize(("shown", "count"), [(2, "2 errors."), (1, "1 error.")])
def test_all_that_is_wrong_is_listed_and_the_exit_code_says_so(tmp_path: Path, shown: int, count: str) -> None:
    errors = [
        {"code": "cycle", "message": "The edges run in a circle: a → b → a.", "path": "nodes.1", "node_ids": ["a"]},
        {"code": "unknown_agent", "message": "There is no agent 'x'.", "path": "nodes.2.config.agent", "node_ids": []},
    ][:shown]
    answer = whole(ValidationView, {"valid": False, "errors": errors, "warnings": [], "plan": None})  # type: ignore[dict-item]
    outcome = FakeService().on("POST", "/v1/workflows/validate", answer).run("workflow", "validate", write(tmp_path))
    assert outcome.exit_code == 1
    assert (
        outcome.out.splitlines()
        == [
            "nodes.1: The edges run in a circle: a → b → a.",
            "nodes.2.config.agent: There is no agent 'x'.",
        ][:shown]
    )
    assert count in outcome.err


def test_what_is_valid_is_shown_as_it_would_be_executed(tmp_path: Path) -> None:
    answer = whole(ValidationView, {"valid": True, "errors": [], "warnings": [], "plan": document()["plan"]})
    outcome = FakeService().on("POST", "/v1/workflows/validate", answer).run("workflow", "validate", write(tmp_path))
    assert outcome.exit_code == 0
    assert "files" in outcome.out
    assert "valid" in outcome.err


def test_a_workflow_is_shown_with_the_tools_of_each_agent() -> None:
    outcome = FakeService().on("GET", "/v1/workflows/answers", document()).run("workflow", "show", "answers")
    rows = {line.split()[0]: line.split() for line in outcome.out.splitlines() if line.strip()}
    assert rows["ask"][-1] == "files"
    assert rows["mute"][-1] == "none"


def test_a_workflow_is_drawn() -> None:
    drawn = httpx.Response(200, text="flowchart LR\n    n0\n", headers={"content-type": "text/vnd.mermaid"})
    service = FakeService().on("GET", "/v1/workflows/answers/diagram", drawn)
    assert service.run("workflow", "show", "answers", "--mermaid").out == "flowchart LR\n    n0\n"


def test_workflows_are_listed() -> None:
    outcome = (
        FakeService().on("GET", "/v1/workflows", {"data": [document()], "next_cursor": None}).run("workflow", "list")
    )
    assert "wfl_1" in outcome.out


def test_a_workflow_is_deleted() -> None:
    service = FakeService().on("DELETE", "/v1/workflows/answers", httpx.Response(204))
    outcome = service.run("workflow", "delete", "answers")
    assert (outcome.exit_code, outcome.err) == (0, "Deleted answers.\n")


def test_the_services_complaints_are_bad_usage(tmp_path: Path) -> None:
    refused = problem(422, "workflow_invalid", "The workflow is not valid.", **{"nodes.0": "is in a circle"})
    outcome = FakeService().on("POST", "/v1/workflows", refused).run("workflow", "apply", write(tmp_path))
    assert outcome.exit_code == 2
    assert "nodes.0: is in a circle" in outcome.err


def test_ways_out_and_nodes_with_names_like_true_need_no_quotes(tmp_path: Path) -> None:
    service = FakeService().on("POST", "/v1/workflows", document(version=1))
    text = """
name: answers
team: on
nodes:
- {id: choose, kind: condition, config: {cases: [{handle: yes, expression: "@"}], otherwise: no, default: true}}
- {id: on, kind: transform}
edges:
- {source: choose, source_handle: true, target: on}
- {source: on, source_handle: "false", target: off, target_handle: input}
"""
    assert service.run("workflow", "apply", write(tmp_path, text)).exit_code == 0
    [sent] = service.sent("POST", "/v1/workflows")
    assert isinstance(sent, dict)
    sent.pop("text")
    assert [sent] == [
        {
            "name": "answers",
            "team": "on",
            "nodes": [
                {
                    "id": "choose",
                    "kind": "condition",
                    "config": {"cases": [{"handle": "yes", "expression": "@"}], "otherwise": "no", "default": True},
                },
                {"id": "on", "kind": "transform"},
            ],
            "edges": [
                {"source": "choose", "source_handle": "true", "target": "on"},
                {"source": "on", "source_handle": "false", "target": "off", "target_handle": "input"},
            ],
        }
    ]


def test_a_file_that_is_no_workflow_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    service = FakeService()
    outcome = service.run("workflow", "apply", write(tmp_path, "- nodes\n"))
    assert outcome.exit_code == 2
    assert "no workflow" in outcome.err
    assert service.requests == []
