"""`dragoman schedule`: add, list, show, update, pause, resume, delete."""

from pathlib import Path

import httpx
import pytest

from domain.json_value import JsonObject
from interfaces.http.schedules.views import ScheduleView
from tests.unit.interfaces.cli.fake_service import FakeService, agent_document, whole

SCHEDULE = whole(
    ScheduleView,
    {
        "id": "sch_1",
        "name": "morning",
        "cron": "0 7 * * *",
        "timezone": "Europe/Lisbon",
        "agent_id": "agt_1",
        "input": [{"type": "text", "text": "Go."}],
        "thread_id": None,
        "multitask_strategy": "enqueue",
        "missed": "run_once",
        "enabled": True,
        "next_fire_at": "2026-01-02T07:00:00.000000Z",
        "last_fired_at": None,
        "last_run_id": None,
        "last_error": None,
        "version": 1,
        "created_at": "2026-01-01T12:00:00.000000Z",
    },
)
ADD = ("schedule", "add", "morning", "--cron", "0 7 * * *", "--input", "Go.")


@pytest.mark.requirement("E7")
def test_a_schedule_is_added_and_its_first_time_told() -> None:
    service = FakeService().on("POST", "/v1/schedules", SCHEDULE)
    outcome = service.run(*ADD, "--agent", "guide", "--timezone", "Europe/Lisbon")
    assert (outcome.exit_code, outcome.out) == (0, "")
    assert "2026-01-02T07:00:00" in outcome.err
    assert service.sent("POST", "/v1/schedules") == [
        {
            "name": "morning",
            "cron": "0 7 * * *",
            "timezone": "Europe/Lisbon",
            "agent": "guide",
            "input": "Go.",
            "enabled": True,
        }
    ]


def test_all_there_is_to_say_about_a_schedule_is_sent(tmp_path: Path) -> None:
    schema = tmp_path / "answer.yaml"
    schema.write_text("type: object", encoding="utf-8")
    service = FakeService().on("POST", "/v1/schedules", {**SCHEDULE, "enabled": False, "next_fire_at": None})
    given: tuple[str, ...] = (
        "--thread",
        "thr_1",
        "--model",
        "openai:a",
        "--missed",
        "skip",
        "--strategy",
        "reject",
        "--paused",
    )
    given += ("--webhook", "https://example.com/hook", "--set", "effort=low", "--output-schema", str(schema))
    outcome = service.run(*ADD, "--agent", "agt_1", *given, "--json")
    assert outcome.json["next_fire_at"] is None
    [body] = service.sent("POST", "/v1/schedules")
    assert isinstance(body, dict)
    assert {name: body[name] for name in body if name not in ("name", "cron", "input", "timezone")} == {
        "agent_id": "agt_1",
        "thread_id": "thr_1",
        "model": "openai:a",
        "missed": "skip",
        "multitask_strategy": "reject",
        "webhook": "https://example.com/hook",
        "model_settings": {"effort": "low"},
        "output_schema": {"type": "object"},
        "enabled": False,
    }


def test_schedules_are_listed_with_their_next_time_and_their_trouble() -> None:
    error: JsonObject = {"code": "agent_disabled", "detail": "It is disabled.", "at": "2026-01-01T12:00:00.000000Z"}
    entries: list[JsonObject] = [
        dict(SCHEDULE),
        {**SCHEDULE, "name": "weekly", "enabled": False, "next_fire_at": None},
        {**SCHEDULE, "name": "broken", "last_error": error},
    ]
    service = FakeService().on("GET", "/v1/schedules", {"data": [*entries], "next_cursor": None})
    lines = service.run("schedule", "list").out.splitlines()
    assert "2026-01-02T07:00:00" in next(line for line in lines if "morning" in line)
    assert "paused" in next(line for line in lines if "weekly" in line)
    assert "agent_disabled" in next(line for line in lines if "broken" in line)
    shown = FakeService().on("GET", "/v1/schedules/broken", entries[2]).run("schedule", "show", "broken")
    assert "agent_disabled: It is disabled." in shown.out


def test_a_schedule_is_shown_with_the_name_of_its_agent() -> None:
    agents: JsonObject = {"data": [agent_document(id=SCHEDULE["agent_id"], name="clock")], "next_cursor": None}
    service = FakeService().on("GET", "/v1/schedules/morning", dict(SCHEDULE)).on("GET", "/v1/agents", agents)
    [line] = [line for line in service.run("schedule", "show", "morning").out.splitlines() if line.startswith("agent ")]
    assert line.split() == ["agent", "clock"]


def test_without_schedules_it_is_said_how_to_add_one() -> None:
    service = FakeService().on("GET", "/v1/schedules", {"data": [], "next_cursor": None})
    assert "dragoman schedule add" in "".join((outcome := service.run("schedule", "list")).out + outcome.err)


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (("pause", "morning"), {"enabled": False}),
        (("resume", "morning"), {"enabled": True}),
        (
            ("update", "morning", "cron=5 * * * *", "timezone=Asia/Tokyo", "name=7", "input=true"),
            {"cron": "5 * * * *", "timezone": "Asia/Tokyo", "name": "7", "input": "true"},
        ),
        (
            ("update", "morning", "thread_id=null", 'limits={"max_turns": 5}', "tool_allowlist=null"),
            {"thread_id": None, "limits": {"max_turns": 5}, "tool_allowlist": None},
        ),
    ],
)
def test_changes_are_sent_as_they_are_meant(arguments: tuple[str, ...], sent: JsonObject) -> None:
    service = FakeService().on("PATCH", "/v1/schedules/morning", SCHEDULE)
    outcome = service.run("schedule", *arguments)
    assert outcome.exit_code == 0
    assert service.sent("PATCH", "/v1/schedules/morning") == [sent]
    assert service.run("schedule", *arguments, "--json").json["id"] == "sch_1"


def test_a_schedule_is_deleted() -> None:
    service = FakeService().on("DELETE", "/v1/schedules/morning", httpx.Response(204))
    assert service.run("schedule", "delete", "morning").exit_code == 0


def test_what_is_wrong_is_said_in_a_line_with_its_field() -> None:
    problem = {
        "detail": "The schedule is not valid.",
        "code": "schedule_invalid",
        "errors": [{"path": "cron", "message": "must have five fields"}],
    }
    service = FakeService().on("POST", "/v1/schedules", httpx.Response(422, json=problem))
    outcome = service.run(*ADD, "--agent", "guide")
    assert outcome.exit_code == 2
    assert outcome.err.splitlines()[-1].startswith("Error: The schedule is not valid.")
    assert "cron: must have five fields" in outcome.err
    assert service.run("schedule", "update", "morning", "cron").exit_code == 2
