"""Agents over HTTP."""

import pytest

from tests.composition import MODEL
from tests.integration.http.service import Service, paths_of, problem_of

GUIDE: dict[str, object] = {
    "name": "guide",
    "model": MODEL,
    "instructions": "Be brief.",
    "tools": ["send_email"],
    "tool_allowlist": ["send_*"],
    "limits": {"max_turns": 5, "max_cost_usd": 0.25},
}


@pytest.mark.requirement("H3")
async def test_model_settings_are_stored_replaced_and_refused_as_the_model_refuses_them(service: Service) -> None:
    settings = {"effort": "high", "stop": ["END"], "extra_body": {"top_k": 3}}
    created = await service.call("POST", "/v1/agents", json={**GUIDE, "model_settings": settings})
    stored = created.json()["model_settings"]
    assert {name: value for name, value in stored.items() if value is not None} == settings
    changed = await service.call("PATCH", "/v1/agents/guide", json={"model_settings": {"temperature": 0}})
    assert changed.json()["model_settings"] == {**dict.fromkeys(stored), "temperature": 0}
    refused = await service.call("PATCH", "/v1/agents/guide", json={"model_settings": {"seed": 1}})
    assert paths_of(problem_of(refused, 422, "agent_invalid")) == ["model_settings.seed"]
    run = {"agent": "guide", "input": "Hi", "model_settings": {"seed": 1}}
    assert paths_of(problem_of(await service.call("POST", "/v1/runs", json=run), 422, "model_settings_invalid")) == [
        "model_settings.seed"
    ]
    outside = await service.call("PATCH", "/v1/agents/guide", json={"model_settings": {"extra_body": {"tools": None}}})
    assert paths_of(problem_of(outside, 422, "model_settings_invalid")) == ["model_settings.extra_body"]


async def test_an_agent_is_created_read_changed_and_deleted(service: Service) -> None:
    created = await service.call("POST", "/v1/agents", json=GUIDE)
    agent = created.json()
    assert (created.status_code, created.headers["content-type"]) == (201, "application/json")
    assert created.headers["location"] == f"/v1/agents/{agent['id']}"
    assert created.headers["etag"] == '"1"'
    assert (
        agent.items() >= {**GUIDE, "limits": agent["limits"], "mcp_servers": [], "enabled": True, "version": 1}.items()
    )
    assert agent["limits"] == {
        "max_turns": 5,
        "max_tool_calls": None,
        "max_calls_per_turn": None,
        "max_tokens": None,
        "max_cost_usd": 0.25,
        "context_tokens": None,
        "timeout_s": None,
        "turn_tool_timeout_s": None,
        "tool_timeout_s": None,
        "model_attempts": None,
        "model_retry_s": None,
    }
    assert agent["created_at"].endswith("Z")

    assert agent.pop("warnings") == []
    read = await service.call("GET", "/v1/agents/guide")
    assert (read.json(), read.headers["etag"]) == (agent, '"1"')

    changed = await service.call(
        "PATCH",
        f"/v1/agents/{agent['id']}",
        json={"name": "scout", "limits": {"max_cost_usd": None}},
        headers={"If-Match": '"1"'},
    )
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert changed.json().items() >= {"name": "scout", "version": 2, "instructions": "Be brief."}.items()
    assert (changed.json()["limits"]["max_turns"], changed.json()["limits"]["max_cost_usd"]) == (5, None)

    versions = (await service.call("GET", f"/v1/agents/{agent['id']}/versions")).json()
    assert [entry["version"] for entry in versions["data"]] == [2, 1]
    now = {name: value for name, value in changed.json().items() if name != "warnings"}
    assert (await service.call("GET", "/v1/agents")).json() == {"data": [now], "next_cursor": None}

    deleted = await service.call("DELETE", f"/v1/agents/{agent['id']}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    problem_of(await service.call("GET", f"/v1/agents/{agent['id']}"), 404, "agent_not_found")


@pytest.mark.parametrize("if_match", ['"2"', 'W/"2"', "2"])
async def test_a_change_of_another_version_is_refused(service: Service, if_match: str) -> None:
    await service.call("POST", "/v1/agents", json=GUIDE)
    response = await service.call("PATCH", "/v1/agents/guide", json={"enabled": False}, headers={"If-Match": if_match})
    problem_of(response, 412, "version_conflict")


@pytest.mark.parametrize("if_match", ['"1"', 'W/"1"', "*", " 1 "])
async def test_a_change_of_the_version_last_read_is_made(service: Service, if_match: str) -> None:
    await service.call("POST", "/v1/agents", json=GUIDE)
    response = await service.call("PATCH", "/v1/agents/guide", json={"enabled": False}, headers={"If-Match": if_match})
    assert (response.status_code, response.json()["enabled"]) == (200, False)


@pytest.mark.parametrize("if_match", ["abc", '"1", "2"', "-1", '"'])
async def test_an_unreadable_if_match_is_refused(service: Service, if_match: str) -> None:
    await service.call("POST", "/v1/agents", json=GUIDE)
    response = await service.call("PATCH", "/v1/agents/guide", json={"enabled": False}, headers={"If-Match": if_match})
    assert paths_of(problem_of(response, 422, "if_match_invalid")) == ["If-Match"]


@pytest.mark.requirement("H3")
async def test_an_output_schema_is_stored_removed_and_refused_if_no_answer_could_be_checked_by_it(
    service: Service,
) -> None:
    schema = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}
    created = await service.call("POST", "/v1/agents", json={**GUIDE, "output_schema": schema})
    assert created.json()["output_schema"] == schema
    for unusable in (
        {"type": "array"},
        {"type": "object", "properties": {"a": {"type": "text"}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}},
        {"type": "object", "description": "x" * 70_000},
        {"type": "object", "enum": [1] * 31_000},
    ):
        refused = await service.call("PATCH", "/v1/agents/guide", json={"output_schema": unusable})
        assert paths_of(problem_of(refused, 422, "agent_invalid")) == ["output_schema"]
    removed = await service.call("PATCH", "/v1/agents/guide", json={"output_schema": None})
    assert removed.json()["output_schema"] is None


@pytest.mark.requirement("H3")
async def test_a_run_with_an_output_schema_that_no_answer_could_be_checked_by_is_refused(service: Service) -> None:
    await service.call("POST", "/v1/agents", json=GUIDE)
    body = {"agent": "guide", "input": "hello", "output_schema": {"type": "string"}}
    refused = await service.call("POST", "/v1/runs", json=body)
    assert paths_of(problem_of(refused, 422, "output_schema_invalid")) == ["output_schema"]


async def test_a_name_in_use_is_a_conflict(service: Service) -> None:
    await service.call("POST", "/v1/agents", json=GUIDE)
    problem_of(await service.call("POST", "/v1/agents", json=GUIDE), 409, "agent_name_taken")


async def test_what_an_agent_names_must_exist(service: Service) -> None:
    response = await service.call(
        "POST", "/v1/agents", json={"name": "x", "model": "openai:no", "tools": ["send_mail"], "mcp_servers": ["no"]}
    )
    problem = problem_of(response, 422, "agent_invalid")
    assert sorted(paths_of(problem)) == ["mcp_servers.0", "model", "tools.0"]
    assert "did you mean 'send_email'?" in response.text


async def test_pages_follow_each_other_until_there_is_no_cursor(service: Service) -> None:
    for number in range(5):
        await service.call("POST", "/v1/agents", json={**GUIDE, "name": f"agent {number}"})
    seen: list[str] = []
    path = "/v1/agents?limit=2"
    while path:
        page = (await service.call("GET", path)).json()
        seen += [agent["name"] for agent in page["data"]]
        path = f"/v1/agents?limit=2&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    assert seen == [f"agent {number}" for number in reversed(range(5))]
