"""Teams beside `/v1`: the console, the protocols of front ends and other agents, the registry, and
the gateway."""

import re

import pytest
from litestar.routes import HTTPRoute

from interfaces.console.app import console_routes
from interfaces.http.protocols import protocols_app
from interfaces.http.stream_places import StreamPlaces
from tests.composition import MODEL, a_container
from tests.integration.http.gateway_caller import LEGACY, a_modern_request
from tests.integration.http.service import Service
from tests.integration.http.test_access import SECRETIVE, names
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_teams import INSIDER, OUTSIDER, TEAM, people, team

__all__ = ["names", "people", "team"]
pytestmark = pytest.mark.requirement("P2")

_OWNED = (
    "agent",
    "server",
    "thread_id",
    "run_id",
    "approval_id",
    "source_id",
    "schedule",
    "gateway_session",
    "workflow",
    "workflow_run",
)
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


def _meant(parameter: str, path: str, names: dict[str, str]) -> str | None:
    """What the parameter of a path names in the service; None for what belongs to no team."""
    if parameter == "run_id" and "/workflows/" in path:
        return names["workflow_run"]
    if parameter == "session_id" and not path.startswith("/gateway/"):
        return None
    run = names["run_id"].partition("_")[2]
    meant = {
        "agent_id": names["agent"],
        "agent": "guide",
        "approval_id": names["approval_id"],
        "thread_id": names["thread_id"],
        "thread": names["thread_id"],
        "chat": names["thread_id"],
        "conversation": f"conv_{names['thread_id'].partition('_')[2]}",
        "run_id": names["run_id"],
        "task": names["run_id"],
        "response_id": f"resp_{run}",
        "delivery_id": names["delivery_id"],
        "session_id": names["gateway_session"],
        "workflow": names["workflow"],
        "slug": "files",
        "server": "files",
        "schedule_id": names["schedule"],
        "source_id": names["source_id"],
    }
    return meant.get(parameter)


def _filled(path: str, names: dict[str, str]) -> str | None:
    """The path with what belongs to the team; None if it names nothing of it."""
    parameters = _PARAMETER.findall(path)
    meant = {each: _meant(each, path, names) for each in parameters}
    if not parameters or not any(meant.values()):
        return None
    return _PARAMETER.sub(lambda match: meant[match[1]] or "some", path)


async def test_no_page_of_the_console_has_anything_of_a_team_for_people_outside_of_it(
    service: Service, names: dict[str, str]
) -> None:
    headers = await signed_in(service, OUTSIDER)
    own = [names[each] for each in _OWNED]
    tried = 0
    for route in console_routes():
        for pattern in sorted(route.paths):
            if "{" not in pattern and "GET" in route.http_methods and "sign-in" not in pattern:
                page = await browse(service, "GET", f"/console{pattern}".rstrip("/"), headers=headers)
                assert not [each for each in own if each in page.text], pattern
                continue
            path = _filled(pattern, names)
            if path is None:
                continue
            tried += 1
            for method in sorted({*route.http_methods} - {"OPTIONS", "HEAD"}):
                answer = await browse(service, method, f"/console{path}", headers=headers)
                is_refused = answer.status_code >= 400 or "There is no" in answer.text
                assert is_refused, (method, path, answer.text)
                assert not [each for each in SECRETIVE if each in answer.text and each not in path], (method, path)
    assert tried > 40
    assert (await service.call("GET", f"/v1/agents/{names['agent']}")).status_code == 200


async def test_the_protocols_of_front_ends_and_other_agents_do_not_find_what_belongs_to_a_team(
    service: Service, names: dict[str, str]
) -> None:
    app = protocols_app(a_container(), places=StreamPlaces.among(10), heartbeat_s=15.0)
    token = {"Authorization": f"Bearer {OUTSIDER}", "A2A-Version": "1.0"}
    ui = {
        "id": names["thread_id"],
        "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "?"}]}],
    }
    ag_ui = {
        "threadId": names["thread_id"],
        "runId": "one",
        "messages": [{"id": "m1", "role": "user", "content": "?"}],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
    }
    tried = 0
    for route in app.routes:
        path = _filled(route.path_format, names) if isinstance(route, HTTPRoute) else None
        if path is None or not isinstance(route, HTTPRoute) or ".well-known" in path:
            continue
        for method in sorted({*route.methods} - {"OPTIONS", "HEAD"}):
            tried += 1
            body: object = ag_ui if path.startswith("/ag-ui") else ui if path.startswith("/ai-sdk") else {}
            answer = await service.client.request(
                method, path, headers=token, json=body if method in ("POST", "PATCH", "PUT") else None
            )
            assert answer.status_code >= 400 or "error" in answer.json(), (method, path, answer.text)
            assert not [each for each in SECRETIVE if each in answer.text and each not in path], (method, path)
    assert tried > 20
    for path, body in (
        ("/openai/v1/chat/completions", {"model": "guide", "messages": [{"role": "user", "content": "?"}]}),
        ("/openai/v1/responses", {"model": "guide", "input": "?"}),
    ):
        answer = await service.client.post(path, headers=token, json=body)
        assert answer.status_code == 404, answer.text
    models = (await service.client.get("/openai/v1/models", headers=token)).text
    assert "guide" not in models
    own = {"Authorization": f"Bearer {INSIDER}"}
    assert "guide" in (await service.client.get("/openai/v1/models", headers=own)).text


async def test_an_agent_of_the_organization_has_no_contents_of_a_server_that_was_given_to_a_team(
    service: Service, names: dict[str, str]
) -> None:
    await service.call("PATCH", "/v1/mcp-servers/files", json={"team": None})
    await service.call("POST", "/v1/agents", json={"name": "common", "model": MODEL, "mcp_servers": ["files"]})
    token = {"Authorization": f"Bearer {OUTSIDER}", "Accept": "application/json, text/event-stream"}

    async def served() -> str:
        answers = []
        for method in ("tools/list", "resources/list", "prompts/list"):
            body, headers = a_modern_request(method)
            sent = token | {name: value for name, value in headers.items() if value is not None}
            answers.append((await service.client.post("/mcp?agent=common", headers=sent, json=body)).text)
        return "".join(answers)

    assert "mcp__files__echo" in await served()
    asked = len(service.connections.asked)
    await service.call("PATCH", "/v1/mcp-servers/files", json={"team": TEAM})

    assert "files" not in await served()
    assert len(service.connections.asked) == asked


async def test_the_gateway_refuses_people_outside_of_the_team_and_who_has_left_it(
    service: Service, names: dict[str, str]
) -> None:
    outside = {"Authorization": f"Bearer {OUTSIDER}", "Accept": "application/json, text/event-stream"}
    inside = {**outside, "Authorization": f"Bearer {INSIDER}"}
    refused = await service.client.post("/mcp?agent=guide", headers=outside, json=INITIALIZE)
    assert refused.json()["error"]["data"] == {"code": "agent_not_found"}
    assert (await service.client.post("/mcp?agent=guide", headers=inside, json=INITIALIZE)).status_code == 200
    opened = await service.call("POST", "/v1/gateway-sessions", json={"agent_id": names["agent"]}, token=INSIDER)
    of_session = {**outside, "Authorization": f"Bearer {opened.json()['token']}"}
    assert (await service.client.post("/mcp", headers=of_session, json=INITIALIZE)).status_code == 200

    await service.call("PATCH", f"/v1/groups/{TEAM}", json={"members": []})

    assert (await service.client.post("/mcp", headers=of_session, json=INITIALIZE)).status_code == 401
    refused = await service.client.post("/mcp?agent=guide", headers=inside, json=INITIALIZE)
    assert refused.json()["error"]["data"] == {"code": "agent_not_found"}
    await service.call("PATCH", "/v1/agents/guide", json={"team": None})
    # The thread of the session is still the team's.
    assert (await service.client.post("/mcp", headers=of_session, json=INITIALIZE)).status_code == 401


async def test_the_console_offers_the_groups_as_teams_and_shows_whose_things_are(
    service: Service, names: dict[str, str]
) -> None:
    browser = await signed_in(service)

    async def page(path: str) -> str:
        return (await browse(service, "GET", f"/console/{path}", headers=browser)).text

    option = f'<option value="{TEAM}">{TEAM}</option>'
    for form in ("agents/new", "servers-new?kind=http", "workflows/new", f"workflows/{names['workflow']}/edit"):
        assert option in await page(form)
    chosen = f'<option value="{TEAM}" selected>{TEAM}</option>'
    server = (await service.call("GET", f"/v1/mcp-servers/{names['server']}")).json()["slug"]
    for form in (f"agents/{names['agent']}/edit", f"servers/{server}/edit"):
        assert chosen in await page(form)
    for shown in (f"agents/{names['agent']}", f"servers/{server}"):
        assert f"<dt>Team</dt><dd>{TEAM}</dd>" in await page(shown)
    assert f"team {TEAM}</p>" in await page(f"threads/{names['thread_id']}")
    assert f"team {TEAM}</p>" in await page(f"workflows/{names['workflow']}")
