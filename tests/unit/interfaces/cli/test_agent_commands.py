"""`dragoman agent`."""

from pathlib import Path

import pytest

from domain.json_value import JsonObject
from interfaces.http.agents.views import LimitsView
from tests.unit.interfaces.cli.fake_service import FakeService, agent_document, problem


def write(folder: Path, text: str, name: str = "guide.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_new_agent_is_created(tmp_path: Path) -> None:
    service = FakeService().on("POST", "/v1/agents", agent_document(version=1))
    outcome = service.run("agent", "apply", write(tmp_path, "name: guide\nmodel: scripted:t.yaml\n"))
    assert outcome.exit_code == 0
    assert "created, version 1" in outcome.err
    assert service.sent("POST", "/v1/agents") == [{"name": "guide", "model": "scripted:t.yaml"}]


def test_an_agent_that_exists_becomes_what_the_file_says_and_nothing_else(tmp_path: Path) -> None:
    service = (
        FakeService()
        .on("GET", "/v1/agents/guide", agent_document())
        .on("PATCH", "/v1/agents/agt_1", agent_document(version=4))
    )
    outcome = service.run(
        "agent", "apply", write(tmp_path, "name: guide\nmodel: openai:m\nlimits: {timeout_s: 9}\nenabled: false\n")
    )
    assert outcome.exit_code == 0
    assert "updated to version 4" in outcome.err
    assert service.sent("PATCH", "/v1/agents/agt_1") == [
        {
            "name": "guide",
            "model": "openai:m",
            "fallback_models": [],
            "instructions": "",
            "tools": [],
            "mcp_servers": [],
            "tool_allowlist": None,
            "tool_policies": {},
            "limits": {**dict.fromkeys(LimitsView.__annotations__), "timeout_s": 9},
            "model_settings": {},
            "daily_budget_usd": None,
            "canary_tokens": [],
            "enabled": False,
            "description": "",
            "agents": [],
            "independent_agents": [],
            "reasoning_summary": False,
            "output_schema": None,
            "lane": "normal",
            "max_queued": None,
            "max_running": None,
            "team": None,
        }
    ]
    assert service.requests[-1].headers["if-match"] == '"3"'


@pytest.mark.requirement("F5")
def test_an_agent_that_opens_others_is_applied_whole_and_shown_with_them(tmp_path: Path) -> None:
    front: JsonObject = {**agent_document(), "agents": ["researcher"], "description": "Finds things."}
    service = (
        FakeService()
        .on("GET", "/v1/agents/guide", front)
        .on("PATCH", "/v1/agents/agt_1", {**front, "agents": [], "description": "", "version": 4})
    )
    shown = service.run("agent", "show", "guide").out
    assert "researcher" in shown
    assert "Finds things." in shown
    assert service.run("agent", "apply", write(tmp_path, "name: guide\nmodel: openai:m\n")).exit_code == 0
    (sent,) = service.sent("PATCH", "/v1/agents/agt_1")
    assert isinstance(sent, dict)
    assert (sent["agents"], sent["description"]) == ([], "")


def test_a_warning_is_one_sentence_with_one_mark_at_its_end(tmp_path: Path) -> None:
    warnings = ["tools: nothing is there", "tool_policies.mai: no such tool; did you mean 'mail'?"]
    service = FakeService().on("POST", "/v1/agents", {**agent_document(version=1), "warnings": [*warnings]})
    outcome = service.run("agent", "apply", write(tmp_path, "name: guide\nmodel: scripted:t.yaml\n"))
    assert [line for line in outcome.err.splitlines() if line.startswith("Warning")] == [
        "Warning: tools: nothing is there.",
        "Warning: tool_policies.mai: no such tool; did you mean 'mail'?",
    ]


def test_a_file_that_changes_nothing_says_so(tmp_path: Path) -> None:
    service = (
        FakeService().on("GET", "/v1/agents/guide", agent_document()).on("PATCH", "/v1/agents/agt_1", agent_document())
    )
    outcome = service.run(
        "agent", "apply", write(tmp_path, '{"name": "guide", "model": "m:n"}', "guide.json"), "--json"
    )
    assert "unchanged, version 3" in outcome.err
    assert outcome.json == agent_document()


def test_the_services_complaints_name_the_fields(tmp_path: Path) -> None:
    service = FakeService().on(
        "POST",
        "/v1/agents",
        problem(422, "body_invalid", "The request body is not valid.", modle="is not a known field"),
    )
    outcome = service.run("agent", "apply", write(tmp_path, "name: guide\nmodle: x\n"))
    assert outcome.exit_code == 2
    assert outcome.err == "Error: The request body is not valid. modle: is not a known field\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", "name: [guide\n", "line 2"),
        ("a.yaml", "name: guide\nwhen: 2026-01-01\n", "plain data"),
        ("a.yaml", "- guide\n", "no agent"),
        ("a.yaml", "model: x\n", "no agent"),
        ("a.yaml", "", "no agent"),
        ("a.yaml", "name: !!python/object:os.system x\n", "not valid YAML"),
        ("a.json", '{"name": ', "line 1"),
        ("a.json", '{"name": "g", "limits": NaN}', "plain data"),
    ],
)
def test_a_file_that_is_no_agent_is_refused_before_anything_is_sent(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    service = FakeService()
    outcome = service.run("agent", "apply", write(tmp_path, text, name))
    assert outcome.exit_code == 2
    assert said in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert service.requests == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9\n")
    for path in (tmp_path / "nowhere.yaml", tmp_path, tmp_path / "latin.yaml"):
        outcome = FakeService().run("agent", "apply", str(path))
        assert outcome.exit_code == 2
        assert str(path) in outcome.err


def test_agents_are_listed_and_shown() -> None:
    service = (
        FakeService()
        .on("GET", "/v1/agents", {"data": [agent_document()], "next_cursor": None})
        .on("GET", "/v1/agents/guide", agent_document(limits={"max_turns": 5, "timeout_s": None}, tool_allowlist=[]))
    )
    assert service.run("agent", "list").out.splitlines()[1].split() == [
        "guide", "scripted:t.yaml", "time", "code_execution", "yes", "3", "agt_1",
    ]  # fmt: skip
    assert service.run("agent", "list", "--json").json["data"] == [agent_document()]
    shown = service.run("agent", "show", "guide").out
    assert '{"max_turns": 5}' in shown
    assert "allowlist  nothing" in shown
    assert "Be brief." in shown


def test_an_agent_that_is_not_there_is_exit_code_1() -> None:
    service = FakeService().on("GET", "/v1/agents/nope", problem(404, "agent_not_found", "There is no agent 'nope'."))
    outcome = service.run("agent", "show", "nope")
    assert (outcome.exit_code, outcome.err) == (
        1,
        "Error: There is no agent 'nope'. `dragoman agent list` shows all.\n",
    )


def test_an_answer_of_another_shape_is_no_traceback() -> None:
    outcome = FakeService().on("GET", "/v1/agents/guide", {"hello": "world"}).run("agent", "show", "guide")
    assert outcome.exit_code == 1
    assert outcome.err.startswith("Error: The service's answer is not understood")
