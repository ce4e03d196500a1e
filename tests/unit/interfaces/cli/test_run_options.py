"""`dragoman run start` with an output schema and model settings."""

import json
from pathlib import Path

import pytest

from tests.unit.interfaces.cli.fake_service import run_document
from tests.unit.interfaces.cli.test_run_commands import EVENTS, service_of


@pytest.mark.requirement("H3")
def test_off_a_terminal_stdout_has_the_object_of_a_run_with_a_schema(tmp_path: Path) -> None:
    schema = tmp_path / "city.yaml"
    schema.write_text("type: object\nrequired: [city]\n", encoding="utf-8")
    run = run_document(output='```json\n{"city": "Évora"}\n```', output_json={"city": "Évora"})
    service = service_of(run, *EVENTS)
    outcome = service.run("run", "start", "Where?", "--agent", "guide", "--output-schema", str(schema))
    assert json.loads(outcome.out) == {"city": "Évora"}
    assert service.sent("POST", "/v1/runs") == [
        {"agent": "guide", "input": "Where?", "output_schema": {"type": "object", "required": ["city"]}}
    ]
    shown = service_of(run).run("run", "show", "run_1")
    assert '{"city": "Évora"}' in shown.out


@pytest.mark.requirement("H3")
def test_model_settings_are_given_by_name_and_sent_as_what_they_are() -> None:
    service = service_of(run_document(output="It is noon."), *EVENTS)
    given = ("--set", "effort=high", "--set", "max_output_tokens=900", "--set", 'stop=["END"]', "--set", "verbosity=1")
    service.run("run", "Now?", "--agent", "guide", *given)
    assert service.sent("POST", "/v1/runs") == [
        {
            "agent": "guide",
            "input": "Now?",
            "model_settings": {"effort": "high", "max_output_tokens": 900, "stop": ["END"], "verbosity": "1"},
        }
    ]


@pytest.mark.requirement("U4")
def test_limits_tools_metadata_and_files_are_given_as_the_api_names_them(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Bees hum.", encoding="utf-8")
    given = (
        "--limit",
        "max_turns=3",
        "--tool",
        "mcp__time__*",
        "--metadata",
        "ticket=7",
        "--file",
        f"{tmp_path}/note.txt",
    )
    service = service_of(run_document(output="It is noon."), *EVENTS)
    service.run("run", "Now?", "--agent", "guide", *given)
    [sent] = service.sent("POST", "/v1/runs")
    assert isinstance(sent, dict)
    message = sent.pop("input")
    assert isinstance(message, list)
    assert [part["type"] for part in message if isinstance(part, dict)] == ["text", "file"]
    assert sent == {
        "agent": "guide",
        "limits": {"max_turns": 3},
        "tool_allowlist": ["mcp__time__*"],
        "metadata": {"ticket": 7},
    }


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--limit", "turns=3"), "max_turns"),
        (("--metadata", "oops"), "FIELD=VALUE"),
        (("--set", "efort=high"), "There is no field 'efort'"),
        (("--set", "efort=high"), "Did you mean 'effort'?"),
        (("--set", "effort"), "FIELD=VALUE"),
        (("--output-schema", "nowhere.json"), "nowhere.json cannot be read"),
    ],
)
def test_settings_and_schemas_that_cannot_be_read_start_nothing(given: tuple[str, ...], said: str) -> None:
    service = service_of(run_document())
    outcome = service.run("run", "Now?", "--agent", "guide", *given)
    assert outcome.exit_code == 2
    assert said in outcome.err
    assert service.requests == []
