"""Schedules over HTTP."""

import pytest

from domain.identity.role import Role
from domain.schedules.firing import Firing
from domain.schedules.schedule import ScheduleError
from tests.builders import ORG, an_audit_event
from tests.composition import MODEL
from tests.integration.http.service import Service, paths_of, problem_of, token_of
from tests.integration.http.test_access import SCHEDULE_BODY

BODY = {**SCHEDULE_BODY, "name": "nightly"}
FULL = {
    "name": "weekly",
    "cron": "30 6 * * MON",
    "timezone": "Europe/Lisbon",
    "agent": "guide",
    "input": [
        {"type": "text", "text": "Look."},
        {"type": "image", "media_type": "image/png", "url": "https://e.org/a"},
    ],
    "multitask_strategy": "reject",
    "limits": {"max_turns": 3, "timeout_s": 60.0},
    "lane": "batch",
    "model_settings": {"effort": "low"},
    "output_schema": {"type": "object", "properties": {"news": {"type": "string"}}},
    "model": MODEL,
    "tool_allowlist": ["send_email"],
    "metadata": {"team": "ops"},
    "missed": "skip",
    "webhook": {"url": "https://example.com/hooks/T0K3N", "events": ["run.failed"]},
}


_OTHERWISE = ("agent", "limits", "model_settings", "input", "webhook")
"""Fields that a view has in another form."""


@pytest.fixture
async def agent(service: Service) -> str:
    """The id of the agent `guide`."""
    created = await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    return str(created.json()["id"])


@pytest.mark.requirement("E7")
async def test_a_schedule_is_made_read_changed_paused_and_deleted(service: Service, agent: str) -> None:
    created = await service.call("POST", "/v1/schedules", json=BODY)
    assert (created.status_code, created.headers["etag"]) == (201, '"1"')
    made = created.json()
    assert created.headers["location"] == f"/v1/schedules/{made['id']}"
    assert made["id"].startswith("sch_")
    # The service's clock begins at noon of 1 January.
    assert (made["next_fire_at"], made["timezone"], made["missed"]) == (
        "2026-01-02T07:00:00.000000Z",
        "UTC",
        "run_once",
    )
    assert (made["agent_id"], made["input"]) == (agent, [{"type": "text", "text": "hello"}])
    assert [made[name] for name in ("thread_id", "last_fired_at", "last_run_id", "last_error")] == [None] * 4

    by_name = await service.call("GET", "/v1/schedules/nightly", token=token_of(Role.VIEWER))
    assert (by_name.json(), by_name.headers["etag"]) == (made, '"1"')

    headers = {"If-Match": '"1"'}
    changed = await service.call(
        "PATCH", "/v1/schedules/nightly", json={"cron": "0 9 * * *", "timezone": "Asia/Tokyo"}, headers=headers
    )
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert changed.json()["next_fire_at"] == "2026-01-02T00:00:00.000000Z"
    stale = await service.call("PATCH", "/v1/schedules/nightly", json={"enabled": False}, headers=headers)
    problem_of(stale, 412, "version_conflict")

    paused = await service.call("PATCH", f"/v1/schedules/{made['id']}", json={"enabled": False})
    assert (paused.json()["enabled"], paused.json()["next_fire_at"]) == (False, None)
    resumed = await service.call("PATCH", f"/v1/schedules/{made['id']}", json={"enabled": True})
    assert (resumed.json()["next_fire_at"], resumed.json()["version"]) == ("2026-01-02T00:00:00.000000Z", 4)

    listed = await service.call("GET", "/v1/schedules", token=token_of(Role.VIEWER))
    assert listed.json() == {"data": [resumed.json()], "next_cursor": None}
    assert (await service.call("DELETE", "/v1/schedules/nightly")).status_code == 204
    problem_of(await service.call("GET", "/v1/schedules/nightly"), 404, "schedule_not_found")
    audit = await service.call("GET", "/v1/audit-events?action=schedule.*")
    assert [entry["action"].partition(".")[2] for entry in audit.json()["data"]] == [
        "deleted",
        "updated",
        "updated",
        "updated",
        "created",
    ]
    assert audit.json()["data"][3]["details"]["changed"] == ["cron", "timezone"]


@pytest.mark.requirement("E7", "H3")
async def test_everything_a_run_may_be_asked_for_a_schedule_keeps(service: Service, agent: str) -> None:
    thread = (await service.call("POST", "/v1/threads")).json()["id"]
    created = await service.call("POST", "/v1/schedules", json={**FULL, "thread_id": thread})
    assert created.status_code == 201, created.text
    made = created.json()
    kept = {name: value for name, value in FULL.items() if name not in _OTHERWISE}
    assert made.items() >= {**kept, "thread_id": thread, "agent_id": agent}.items()
    assert (made["limits"]["max_turns"], made["limits"]["timeout_s"], made["limits"]["max_tokens"]) == (3, 60.0, None)
    assert {name for name, value in made["model_settings"].items() if value is not None} == {"effort"}
    assert [part["type"] for part in made["input"]] == ["text", "image"]
    assert made["webhook"] == {"receiver": "example.com:443", "secret": None, "events": ["run.failed"]}
    assert "T0K3N" not in created.text

    emptied = await service.call(
        "PATCH",
        "/v1/schedules/weekly",
        json={
            "thread_id": None,
            "model": None,
            "tool_allowlist": None,
            "limits": {"max_turns": None, "max_tokens": 9},
            "multitask_strategy": "enqueue",
            "missed": "run_once",
            "model_settings": {},
            "output_schema": None,
            "metadata": {},
            "webhook": None,
            "input": "Look again.",
            "name": "monday",
        },
    )
    after = emptied.json()
    taken_away = ("thread_id", "output_schema", "model", "tool_allowlist", "webhook")
    assert [after[name] for name in taken_away] == [None] * 5
    assert after["metadata"] == {}
    assert set(after["model_settings"].values()) == {None}
    assert (after["limits"]["max_turns"], after["limits"]["timeout_s"], after["limits"]["max_tokens"]) == (
        None,
        60.0,
        9,
    )
    assert (after["multitask_strategy"], after["missed"], after["name"]) == ("enqueue", "run_once", "monday")
    assert after["next_fire_at"] == made["next_fire_at"]
    assert after["input"] == [{"type": "text", "text": "Look again."}]


async def test_a_change_of_nothing_makes_no_version(service: Service, agent: str) -> None:
    await service.call("POST", "/v1/schedules", json=BODY)
    same = await service.call("PATCH", "/v1/schedules/nightly", json={"cron": BODY["cron"], "agent": "guide"})
    assert (same.status_code, same.json()["version"]) == (200, 1)
    assert (await service.call("PATCH", "/v1/schedules/nightly", json={})).json()["version"] == 1


async def test_another_agent_can_be_named_by_id_or_name_but_not_by_both(service: Service, agent: str) -> None:
    other = (await service.call("POST", "/v1/agents", json={"name": "other", "model": MODEL})).json()["id"]
    await service.call("POST", "/v1/schedules", json=BODY)
    changed = await service.call("PATCH", "/v1/schedules/nightly", json={"agent": "other"})
    assert changed.json()["agent_id"] == other
    back = await service.call("PATCH", "/v1/schedules/nightly", json={"agent_id": agent})
    assert back.json()["agent_id"] == agent
    both = {"agent": "other", "agent_id": agent}
    for method, path, body in (
        ("PATCH", "/v1/schedules/nightly", both),
        ("POST", "/v1/schedules", {**BODY, "name": "second", **both}),
    ):
        assert paths_of(problem_of(await service.call(method, path, json=body), 422, "body_invalid")) == ["agent"]
    without = {name: value for name, value in BODY.items() if name != "agent"}
    missing = await service.call("POST", "/v1/schedules", json=without)
    assert paths_of(problem_of(missing, 422, "body_invalid")) == ["agent"]


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    ("wrong", "paths"),
    [
        ({"cron": "0 25 * * *"}, ["cron"]),
        ({"cron": "@daily"}, ["cron"]),
        ({"cron": "0 0 31 2 *"}, ["cron"]),
        ({"timezone": "Europe/Atlantis"}, ["timezone"]),
        ({"cron": "* *", "timezone": ""}, ["cron", "timezone"]),
        ({"cron": "0 0 */31 2 MON#5"}, ["cron"]),
        ({"name": " "}, ["name"]),
        ({"input": "  "}, ["input"]),
        ({"metadata": {"schedule": 1}}, ["metadata.schedule"]),
    ],
)
async def test_what_cannot_work_is_refused_by_its_place(
    service: Service, agent: str, wrong: dict[str, object], paths: list[str]
) -> None:
    refused = await service.call("POST", "/v1/schedules", json={**BODY, **wrong})
    assert paths_of(problem_of(refused, 422, "schedule_invalid")) == paths
    await service.call("POST", "/v1/schedules", json=BODY)
    changed = await service.call("PATCH", "/v1/schedules/nightly", json=wrong)
    assert paths_of(problem_of(changed, 422, "schedule_invalid")) == paths
    assert (await service.call("GET", "/v1/schedules/nightly")).json()["version"] == 1


@pytest.mark.parametrize(
    "body",
    [
        {**BODY, "crontab": "* * * * *"},
        {**BODY, "missed": "run_all"},
        {**BODY, "enabled": "yes"},
        {**BODY, "multitask_strategy": "wait"},
        {**BODY, "limits": {"max_turns": 0}},
        {**BODY, "next_fire_at": "2026-01-02T07:00:00.000000Z"},
        {"name": "nightly", "agent": "guide"},
    ],
)
async def test_a_body_of_another_shape_is_refused(service: Service, agent: str, body: dict[str, object]) -> None:
    problem_of(await service.call("POST", "/v1/schedules", json=body), 422, "body_invalid")


@pytest.mark.parametrize("field", ["name", "cron", "timezone", "agent", "input", "metadata", "missed", "enabled"])
async def test_what_a_schedule_cannot_do_without_is_not_taken_away(service: Service, agent: str, field: str) -> None:
    await service.call("POST", "/v1/schedules", json=BODY)
    refused = await service.call("PATCH", "/v1/schedules/nightly", json={field: None})
    assert paths_of(problem_of(refused, 422, "body_invalid")) == [field]


@pytest.mark.parametrize(
    ("wrong", "status", "code"),
    [
        ({"agent": "nobody"}, 404, "agent_not_found"),
        ({"thread_id": "thr_gone"}, 404, "thread_not_found"),
        ({"model": "openai:dear"}, 403, "model_not_allowed"),
        ({"output_schema": {"type": "array"}}, 422, "output_schema_invalid"),
        ({"output_schema": {"type": "object", "required": 1}}, 422, "output_schema_invalid"),
        ({"webhook": "http://127.0.0.1/hook"}, 422, "webhook_invalid"),
        ({"webhook": {"url": "https://example.com/", "secret": {"secret": "NONE"}}}, 422, "webhook_invalid"),
    ],
)
async def test_what_could_begin_no_run_is_refused_when_it_is_saved(
    service: Service, agent: str, wrong: dict[str, object], status: int, code: str
) -> None:
    problem_of(await service.call("POST", "/v1/schedules", json={**BODY, **wrong}), status, code)
    await service.call("POST", "/v1/schedules", json=BODY)
    problem_of(await service.call("PATCH", "/v1/schedules/nightly", json=wrong), status, code)


async def test_a_schedule_whose_agent_is_gone_can_still_be_paused_but_not_resumed(service: Service, agent: str) -> None:
    await service.call("POST", "/v1/schedules", json=BODY)
    assert (await service.call("DELETE", "/v1/agents/guide")).status_code == 204
    paused = await service.call("PATCH", "/v1/schedules/nightly", json={"enabled": False})
    assert (paused.status_code, paused.json()["agent_id"]) == (200, agent)
    refused = await service.call("PATCH", "/v1/schedules/nightly", json={"enabled": True})
    problem_of(refused, 404, "agent_not_found")


async def test_a_name_is_given_once(service: Service, agent: str) -> None:
    await service.call("POST", "/v1/schedules", json=BODY)
    problem_of(await service.call("POST", "/v1/schedules", json=BODY), 409, "schedule_exists")
    await service.call("POST", "/v1/schedules", json={**BODY, "name": "second"})
    renamed = await service.call("PATCH", "/v1/schedules/second", json={"name": "nightly"})
    problem_of(renamed, 409, "schedule_exists")


@pytest.mark.requirement("E7")
async def test_why_the_last_fire_began_no_run_can_be_read(service: Service, agent: str) -> None:
    made = (await service.call("POST", "/v1/schedules", json=BODY)).json()
    schedule = await service.stores.schedules.find(ORG, made["id"])
    assert schedule is not None
    assert schedule.next_fire_at is not None
    error = ScheduleError(code="agent_disabled", detail="The agent is disabled.", at=schedule.next_fire_at)
    firing = Firing(schedule_id=schedule.id, version=1, due_at=schedule.next_fire_at, next_fire_at=None)
    assert await service.stores.due_schedules.pass_over(schedule, firing, error, an_audit_event(1))
    read = (await service.call("GET", "/v1/schedules/nightly")).json()
    assert read["last_error"] == {
        "code": "agent_disabled",
        "detail": "The agent is disabled.",
        "at": "2026-01-02T07:00:00.000000Z",
    }
    assert (read["next_fire_at"], read["enabled"]) == (None, True)
