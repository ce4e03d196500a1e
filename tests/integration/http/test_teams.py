"""Teams over HTTP: what belongs to a group is not there for people outside of it, whichever way
they ask."""

from dataclasses import dataclass, replace

import pytest

from domain.audit.event import AuditAction
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.ids import ApiKeyId, UserId
from tests.builders import a_key, an_audit_event, numbered
from tests.composition import MODEL
from tests.integration.http.route_cases import IDP_BODY, Case
from tests.integration.http.service import Service, paths_of, problem_of, token_of
from tests.integration.http.test_access import CASES, SECRETIVE, WORKFLOW_BODY, _everything, _filled, names
from tests.people_builders import a_user

__all__ = ["names"]
pytestmark = pytest.mark.requirement("P2")

TEAM = "finance"
INSIDER, OUTSIDER = "dgm_key-of-a-member", "dgm_key-of-a-stranger"
_OWNED = (
    "agent",
    "server",
    "thread_id",
    "run_id",
    "approval_id",
    "source_id",
    "schedule",
    "gateway_session",
    "delivery_id",
    "workflow",
    "workflow_run",
)
_OF_TEAM = tuple(f"{{{each}}}" for each in _OWNED)


def is_of_team(case: Case) -> bool:
    """Whether the request names something of the team."""
    said = f"{case.path}{case.query}{case.body}"
    return case.foreign and (any(each in said for each in _OF_TEAM) or "'guide'" in said)


CASES_OF_TEAM = [case for case in CASES if is_of_team(case)]


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    insider: UserId
    outsider: UserId


async def _person(service: Service, number: int, provider: str, token: str) -> UserId:
    """A user with every permission but that of managing the organization, and a key of theirs."""
    entry = an_audit_event(900 + number, action=AuditAction.USER_CREATED)
    user = a_user(
        UserId(numbered("usr", number)),
        provider_id=provider,  # type: ignore[arg-type]
        subject=f"person-{number}",
        role=Role.VIEWER,
        custom_role="almost-all",
    )
    stored = await service.stores.user_access.add(user, entry)
    key = a_key(ApiKeyId(numbered("key", number)), token=token, role=Role.VIEWER, custom_role="almost-all")
    await service.stores.identity.add_key(replace(key, person_id=stored.id), an_audit_event(950 + number))
    return stored.id


@pytest.fixture
async def people(service: Service) -> People:
    almost_all = [each.value for each in Permission if each is not Permission.ORGANIZATION_MANAGE]
    await service.call("POST", "/v1/roles", json={"name": "almost-all", "permissions": almost_all})
    provider = {**IDP_BODY, "name": "people", "client_id": "people"}
    idp = (await service.call("POST", "/v1/identity-providers", json=provider)).json()["id"]
    return People(
        insider=await _person(service, 71, idp, INSIDER),
        outsider=await _person(service, 72, idp, OUTSIDER),
    )


@pytest.fixture
async def team(service: Service, people: People) -> str:
    made = await service.call("POST", "/v1/groups", json={"name": TEAM, "members": [people.insider]})
    assert made.status_code == 201, made.text
    return TEAM


def test_every_route_that_names_an_agent_a_server_a_thread_or_a_run_is_tried() -> None:
    assert len(CASES_OF_TEAM) > 50
    named = {each.strip("/{}?") for case in CASES for each in case.path.split("/") if each.startswith("{")}
    assert named >= {"agent", "server", "thread_id", "run_id"}
    of_workflows = [case for case in CASES if "{workflow" in case.path]
    assert [case for case in of_workflows if case not in CASES_OF_TEAM] == []
    assert len(of_workflows) >= 12


async def test_what_belongs_to_a_team_is_not_found_by_people_outside_of_it(
    service: Service, names: dict[str, str]
) -> None:
    before = await _everything(service)
    for case in CASES_OF_TEAM:
        path, body = str(_filled(case.path + case.query, names)), _filled(case.body, names)
        response = await service.call(case.method, path, json=body, token=OUTSIDER)
        assert response.status_code == 404, (str(case), response.text)
        sent = f"{path} {body}"
        assert not [known for known in SECRETIVE if known in response.text and known not in sent], str(case)
    assert await _everything(service) == before


@pytest.mark.parametrize("case", CASES_OF_TEAM, ids=str)
async def test_members_use_what_belongs_to_their_team(service: Service, names: dict[str, str], case: Case) -> None:
    path, body = str(_filled(case.path + case.query, names)), _filled(case.body, names)
    response = await service.call(case.method, path, json=body, token=INSIDER)
    assert response.status_code == case.status, response.text


async def test_lists_show_nothing_of_a_team_to_people_outside_of_it(service: Service, names: dict[str, str]) -> None:
    own = [names[each] for each in _OWNED]
    for case in CASES:
        if case.method == "GET" and "{" not in case.path:
            shown = await service.call("GET", case.path, token=OUTSIDER)
            assert not [identifier for identifier in own if identifier in shown.text], str(case)
    for path in (
        "agents",
        "mcp-servers",
        "threads",
        "runs",
        "approvals",
        "schedules",
        "gateway-sessions",
        "workflows",
        "workflow-runs",
    ):
        assert (await service.call("GET", f"/v1/{path}", token=OUTSIDER)).json()["data"] == [], path
        assert (await service.call("GET", f"/v1/{path}", token=INSIDER)).json()["data"] != [], path


async def test_filters_do_not_find_what_belongs_to_a_team(service: Service, names: dict[str, str]) -> None:
    for query in (
        f"runs?thread_id={names['thread_id']}",
        f"runs?agent_id={names['agent']}",
        f"approvals?run_id={names['run_id']}",
        f"audit-events?run_id={names['run_id']}",
        f"audit-events?resource={names['agent']}",
        f"audit-events?resource={names['workflow']}",
        f"audit-events?resource={names['workflow_run']}",
        f"workflow-runs?workflow_id={names['workflow']}",
        f"audit-events?server_id={names['server']}",
        f"usage?agent_id={names['agent']}",
    ):
        assert (await service.call("GET", f"/v1/{query}", token=OUTSIDER)).json()["data"] == [], query


async def test_who_leaves_the_group_sees_nothing_more_at_the_next_request(
    service: Service, names: dict[str, str], people: People
) -> None:
    agent, run = f"/v1/agents/{names['agent']}", f"/v1/runs/{names['run_id']}"
    assert (await service.call("GET", agent, token=INSIDER)).status_code == 200

    left = await service.call("PATCH", f"/v1/groups/{TEAM}", json={"members": [people.outsider]})
    assert left.status_code == 200, left.text

    problem_of(await service.call("GET", agent, token=INSIDER), 404, "agent_not_found")
    problem_of(await service.call("GET", run, token=INSIDER), 404, "run_not_found")
    assert (await service.call("GET", agent, token=OUTSIDER)).status_code == 200


async def test_a_group_that_owns_something_is_neither_deleted_nor_renamed(
    service: Service, names: dict[str, str]
) -> None:
    refused = problem_of(await service.call("DELETE", f"/v1/groups/{TEAM}"), 409, "group_owns")
    assert "guide" in str(refused["detail"])
    assert "files" in str(refused["detail"])
    assert "only ours" in str(refused["detail"])
    problem_of(await service.call("PATCH", f"/v1/groups/{TEAM}", json={"name": "money"}), 409, "group_owns")
    for method, body in (("DELETE", None), ("PATCH", {"name": "money"})):
        told = await service.call(method, f"/v1/groups/{TEAM}", json=body, token=OUTSIDER)
        detail = str(problem_of(told, 409, "group_owns")["detail"])
        assert "agents" in detail
        assert not [known for known in ("guide", "files", names["thread_id"]) if known in detail]


async def test_a_team_is_a_group_that_one_is_in(service: Service, team: str) -> None:
    for name in (team, "unknown"):
        body = {"name": "new", "model": MODEL, "team": name}
        refused = await service.call("POST", "/v1/agents", json=body, token=OUTSIDER)
        assert paths_of(problem_of(refused, 422, "agent_invalid")) == ["team"]
        server = {"slug": "new", "kind": "custom", "command": "server", "team": name}
        refused = await service.call("POST", "/v1/mcp-servers", json=server, token=OUTSIDER)
        assert paths_of(problem_of(refused, 422, "mcp_server_invalid")) == ["team"]
        workflow = {**WORKFLOW_BODY, "team": name}
        refused = await service.call("POST", "/v1/workflows", json=workflow, token=OUTSIDER)
        assert paths_of(problem_of(refused, 422, "workflow_invalid")) == ["team"]
        refused = await service.call("POST", "/v1/threads", json={"team": name}, token=OUTSIDER)
        assert paths_of(problem_of(refused, 422, "thread_invalid")) == ["team"]


async def test_an_agent_of_others_does_not_get_the_server_of_a_team(service: Service, names: dict[str, str]) -> None:
    body = {"name": "spy", "model": MODEL, "mcp_servers": ["files"]}
    refused = problem_of(await service.call("POST", "/v1/agents", json=body, token=OUTSIDER), 422, "agent_invalid")
    assert TEAM not in str(refused)
    # An admin sees the server, but an agent of the organization does not get it.
    refused = problem_of(await service.call("POST", "/v1/agents", json=body), 422, "agent_invalid")
    assert paths_of(refused) == ["mcp_servers.0"]
    made = await service.call("POST", "/v1/agents", json={**body, "team": TEAM})
    assert made.status_code == 201, made.text
    shown = (await service.call("GET", f"/v1/tools?agent={made.json()['id']}")).json()["data"]
    assert [tool["name"] for tool in shown] == ["mcp__files__echo"]

    # The organization takes the server back into its own hands; then it is given to the team again.
    await service.call("PATCH", "/v1/mcp-servers/files", json={"team": None})
    body = {**body, "name": "common"}
    common = (await service.call("POST", "/v1/agents", json=body)).json()
    await service.call("PATCH", "/v1/mcp-servers/files", json={"team": TEAM})
    assert (await service.call("GET", f"/v1/tools?agent={common['id']}")).json()["data"] == []


async def test_a_thread_gets_the_team_of_the_first_agent_that_has_one(service: Service, names: dict[str, str]) -> None:
    thread = (await service.call("POST", "/v1/threads", token=INSIDER)).json()
    assert thread["team"] is None
    path = f"/v1/threads/{thread['id']}"
    assert (await service.call("GET", path, token=OUTSIDER)).status_code == 200

    begun = await service.call("POST", f"{path}/runs", json={"agent": "guide", "input": "hello"}, token=INSIDER)

    assert begun.status_code == 202, begun.text
    assert (await service.call("GET", path, token=INSIDER)).json()["team"] == TEAM
    problem_of(await service.call("GET", path, token=OUTSIDER), 404, "thread_not_found")
    problem_of(await service.call("GET", f"/v1/runs/{begun.json()['id']}", token=OUTSIDER), 404, "run_not_found")
    await service.call("POST", "/v1/agents", json={"name": "common", "model": MODEL})
    body = {"agent": "common", "input": "hello"}
    problem_of(await service.call("POST", f"{path}/runs", json=body, token=OUTSIDER), 404, "thread_not_found")


async def test_an_agent_of_another_team_does_not_run_on_the_thread_of_a_team(
    service: Service, names: dict[str, str]
) -> None:
    await service.call("POST", "/v1/groups", json={"name": "others"})
    await service.call("POST", "/v1/agents", json={"name": "theirs", "model": MODEL, "team": "others"})
    body = {"agent": "theirs", "input": "hello"}
    refused = await service.call("POST", f"/v1/threads/{names['thread_id']}/runs", json=body)
    problem_of(refused, 409, "thread_of_another_team")


async def test_a_workflow_of_another_team_has_neither_agents_nor_servers_of_a_team(
    service: Service, names: dict[str, str]
) -> None:
    nodes = [
        {"id": "start", "kind": "entrypoint"},
        {"id": "ask", "kind": "agent", "config": {"agent": "guide"}},
        {"id": "call", "kind": "mcp_server", "config": {"server": "files", "call": "echo"}},
    ]
    edges = [{"source": "start", "target": "ask"}, {"source": "ask", "target": "call"}]
    body = {"name": "sly", "nodes": nodes, "edges": edges}
    # An admin sees both, and is told whose they are.
    for token, is_told in ((token_of(Role.ADMIN), True), (OUTSIDER, False)):
        found = (await service.call("POST", "/v1/workflows/validate", json=body, token=token)).json()
        assert [fault["code"] for fault in found["errors"]] == ["unknown_agent", "unknown_server"]
        assert (TEAM in str(found["errors"])) is is_told
    refused = await service.call("POST", "/v1/workflows", json=body, token=OUTSIDER)
    problem_of(refused, 422, "workflow_invalid")
    made = await service.call("POST", "/v1/workflows", json={**body, "team": TEAM}, token=INSIDER)
    assert (made.status_code, made.json()["team"]) == (201, TEAM)


async def test_a_workflow_is_given_to_a_team_by_its_body_or_its_text_and_back(
    service: Service, names: dict[str, str]
) -> None:
    text = f"# theirs\nname: story\nteam: {TEAM}\nnodes: [{{id: start, kind: entrypoint}}]\n"
    made = await service.call("POST", "/v1/workflows", json={**WORKFLOW_BODY, "name": "story"}, token=INSIDER)
    path = f"/v1/workflows/{made.json()['id']}"
    assert (await service.call("GET", path, token=OUTSIDER)).status_code == 200

    given = (await service.call("PATCH", path, json={"text": text}, token=INSIDER)).json()

    assert (given["team"], given["version"], given["text"]) == (TEAM, 2, text)
    problem_of(await service.call("GET", path, token=OUTSIDER), 404, "workflow_not_found")
    differs = await service.call("PATCH", path, json={"text": text, "team": None}, token=INSIDER)
    assert paths_of(problem_of(differs, 422, "definition_invalid")) == ["team"]
    begun = (await service.call("POST", f"{path}/runs", json={}, token=INSIDER)).json()["id"]
    back = (await service.call("PATCH", path, json={"team": None}, token=INSIDER)).json()
    assert (back["team"], back["text"]) == (None, None)
    # What ran for the team stays the team's, and so does what is made of it.
    problem_of(await service.call("GET", f"/v1/workflow-runs/{begun}", token=OUTSIDER), 404, "workflow_run_not_found")
    replayed = await service.call(
        "POST", f"/v1/workflow-runs/{begun}/replay", json={"node_id": "start", "alone": True}, token=INSIDER
    )
    assert replayed.status_code == 202, replayed.text
    again = f"/v1/workflow-runs/{replayed.json()['id']}"
    problem_of(await service.call("GET", again, token=OUTSIDER), 404, "workflow_run_not_found")
    assert (await service.call("GET", again, token=INSIDER)).status_code == 200


async def test_the_tools_of_a_workflow_run_of_a_team_are_opened_by_members_only(
    service: Service, names: dict[str, str]
) -> None:
    nodes = [{"id": "start", "kind": "entrypoint"}, {"id": "ask", "kind": "agent", "config": {"agent": "guide"}}]
    body = {"name": "open", "nodes": nodes, "edges": [{"source": "start", "target": "ask"}], "team": TEAM}
    workflow = (await service.call("POST", "/v1/workflows", json=body, token=INSIDER)).json()["id"]
    run = (await service.call("POST", f"/v1/workflows/{workflow}/runs", json={}, token=INSIDER)).json()["id"]
    opening = {"workflow_run_id": run, "node_ids": ["ask"]}
    refused = await service.call("POST", "/v1/gateway-sessions", json=opening, token=OUTSIDER)
    problem_of(refused, 404, "workflow_run_not_found")
    opened = await service.call("POST", "/v1/gateway-sessions", json=opening, token=INSIDER)
    assert opened.status_code == 201, opened.text
    seen = (await service.call("GET", "/v1/gateway-sessions", token=OUTSIDER)).json()["data"]
    assert opened.json()["id"] not in [session["id"] for session in seen]


async def test_the_same_idempotency_key_does_not_show_the_run_of_a_team(
    service: Service, names: dict[str, str]
) -> None:
    body, headers = {"agent": "guide", "input": "hello"}, {"Idempotency-Key": "the-same"}
    assert (await service.call("POST", "/v1/runs", json=body, headers=headers, token=INSIDER)).status_code == 202
    problem_of(
        await service.call("POST", "/v1/runs", json=body, headers=headers, token=OUTSIDER), 404, "agent_not_found"
    )


async def test_a_change_of_the_team_is_audited(service: Service, team: str) -> None:
    agent = (await service.call("POST", "/v1/agents", json={"name": "new", "model": MODEL})).json()["id"]
    await service.call("PATCH", f"/v1/agents/{agent}", json={"team": team})
    await service.call("PATCH", f"/v1/agents/{agent}", json={"team": None})
    entries = (await service.call("GET", f"/v1/audit-events?resource={agent}&action=agent.updated")).json()["data"]
    assert [entry["details"] | {"name": "", "version": 0} for entry in entries] == [
        {"name": "", "version": 0, "changed": ["team"], "team": None, "former_team": team},
        {"name": "", "version": 0, "changed": ["team"], "team": team},
    ]


async def test_a_change_of_the_team_of_a_workflow_is_audited(service: Service, team: str) -> None:
    workflow = (await service.call("POST", "/v1/workflows", json=WORKFLOW_BODY)).json()["id"]
    await service.call("PATCH", f"/v1/workflows/{workflow}", json={"team": team})
    await service.call("PATCH", f"/v1/workflows/{workflow}", json={"team": None})
    path = f"/v1/audit-events?resource={workflow}&action=workflow.updated"
    entries = (await service.call("GET", path)).json()["data"]
    assert [entry["details"] | {"name": "", "version": 0} for entry in entries] == [
        {"name": "", "version": 0, "changed": ["team"], "team": None, "former_team": team},
        {"name": "", "version": 0, "changed": ["team"], "team": team},
    ]
