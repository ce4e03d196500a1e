"""Health, the OpenAPI document, API keys, the audit trail and the access log."""

import json
import re
from collections.abc import Iterator

import pytest

from application.system.readiness import Obstacle
from interfaces.http.agents.schemas import CreateAgentBody, UpdateAgentBody
from interfaces.http.api_keys.schemas import CreateApiKeyBody
from interfaces.http.bodies import Body, decoded_body
from interfaces.http.mcp_servers.schemas import McpServerBody, TestMcpServerBody, UpdateMcpServerBody
from interfaces.http.runs.schemas import ResumeRunBody, RunBody
from interfaces.http.threads.schemas import AppendMessageBody, CreateThreadBody
from tests.composition import MODEL
from tests.integration.http.service import Service, problem_of

BODIES: list[type[Body]] = [
    CreateAgentBody,
    UpdateAgentBody,
    CreateApiKeyBody,
    McpServerBody,
    TestMcpServerBody,
    UpdateMcpServerBody,
    ResumeRunBody,
    RunBody,
    AppendMessageBody,
    CreateThreadBody,
]


@pytest.mark.requirement("G2")
async def test_health_needs_no_key(service: Service) -> None:
    live = await service.call("GET", "/health/live", token=None)
    ready = await service.call("GET", "/health/ready", token=None)
    assert (live.status_code, live.json()) == (200, {"status": "live"})
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


@pytest.mark.requirement("G2")
async def test_a_service_that_is_not_ready_says_what_is_missing_and_is_alive(service: Service) -> None:
    service.readiness.missing = (Obstacle(part="database", detail="It is away."),)
    problem = problem_of(await service.call("GET", "/health/ready", token=None), 503, "not_ready")
    assert problem["detail"] == "Not ready: database."
    assert problem["errors"] == [{"path": "database", "message": "It is away."}]
    assert (await service.call("GET", "/health/live", token=None)).status_code == 200


async def test_the_openapi_document_is_served_without_a_key(service: Service) -> None:
    response = await service.call("GET", "/schema", token=None)
    document = response.json()
    assert response.status_code == 200
    assert document["openapi"].startswith("3.1")
    assert document["info"]["version"] == "1.2.3"
    assert (await service.call("GET", "/schema/openapi.json", token=None)).json() == document


async def test_bodies_are_described_as_generators_of_clients_read_them(service: Service) -> None:
    document = (await service.call("GET", "/schema", token=None)).json()
    shapes = document["components"]["schemas"]
    agent, imported = shapes["CreateAgentBody"]["properties"], shapes["ImportBody"]["properties"]
    rules = agent["tool_policies"]
    assert (rules["type"], rules["additionalProperties"]) == ("object", {"$ref": "#/components/schemas/ToolRuleBody"})
    assert imported["mcpServers"]["type"] == "object"
    assert agent["tools"]["items"] == {"type": "string"}
    titles = [shape["title"] for shape in shapes.values() if "title" in shape]
    assert len(set(titles)) == len(titles)
    in_paths = [
        parameter["schema"]
        for item in document["paths"].values()
        for operation in item.values()
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "path"
    ]
    assert {schema.get("type") for schema in in_paths} == {"string"}


@pytest.mark.requirement("U2")
async def test_where_tools_look_for_the_document_leads_to_it(service: Service) -> None:
    answer = await service.client.get("/openapi.json", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/schema/openapi.json")


@pytest.mark.requirement("U2")
async def test_the_front_door_leads_to_the_console(service: Service) -> None:
    answer = await service.client.get("/", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console")


@pytest.mark.requirement("U2")
async def test_the_api_explorer_is_served_from_own_files_without_a_key(service: Service) -> None:
    page = await service.client.get("/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    referred = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert not [url for url in referred if not url.startswith(("/", "data:"))]
    for url in (url for url in referred if url.startswith("/docs/")):
        file = await service.client.get(url)
        assert file.status_code == 200
        assert file.headers["x-content-type-options"] == "nosniff"
    assert (await service.client.get("/docs/../pages.py")).status_code == 404
    assert (await service.client.get("/docs/explorer.html")).status_code == 404


async def test_the_guides_are_pages_of_the_service_whose_links_lead_somewhere(service: Service) -> None:
    first = await service.client.get("/docs/guides")
    assert (first.status_code, first.headers["content-type"]) == (200, "text/html; charset=utf-8")
    names = set(re.findall(r'href="/docs/guides/([\w-]+)"', first.text))
    assert {"first-run", "concepts", "cli", "approvals", "policy"} <= names
    for name in names:
        page = await service.client.get(f"/docs/guides/{name}")
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "&lt;!--" not in page.text
        linked = re.findall(r'<a href="([^"]+)"', page.text)
        assert [url for url in linked if not url.startswith(("/docs", "/console", "http", "#"))] == []
        assert {url.split("/")[3].partition("#")[0] for url in linked if url.startswith("/docs/guides/")} <= names
    assert (await service.client.get("/docs/guides/../../pyproject")).status_code == 404


async def test_every_operation_has_its_own_name_a_summary_and_documented_problems(service: Service) -> None:
    document = (await service.call("GET", "/schema", token=None)).json()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
        if {"Health", "OAuth"} & set(operation["tags"]):  # open to all
            continue
        assert operation["security"] == [{"apiKey": []}]
        always = {"400", "401", "422", "500"} | ({"413"} if "requestBody" in operation else set())
        for status in always:
            assert list(operation["responses"][status]["content"]) == ["application/problem+json"]
        assert all(
            parameter["description"] for parameter in operation.get("parameters", []) if parameter["in"] == "path"
        )
    ready = document["paths"]["/health/ready"]["get"]["responses"]["503"]
    assert list(ready["content"]) == ["application/problem+json"]


async def test_bodies_are_described_as_strict_as_they_are_and_with_examples(service: Service) -> None:
    schemas = (await service.call("GET", "/schema", token=None)).json()["components"]["schemas"]
    for model in BODIES:
        assert schemas[model.__name__]["additionalProperties"] is False
        assert schemas[model.__name__]["examples"]


@pytest.mark.parametrize("model", BODIES)
def test_the_examples_of_a_body_are_valid(model: type[Body]) -> None:
    for example in model.examples:
        decoded_body(model, json.loads(json.dumps(example)))


@pytest.mark.requirement("C6")
async def test_a_token_is_shown_once(service: Service) -> None:
    created = await service.call("POST", "/v1/api-keys", json={"name": "ci", "role": "runner"})
    assert created.status_code == 201
    key = created.json()
    token = key.pop("token")
    assert token.startswith("dgm_")
    listed = await service.call("GET", "/v1/api-keys")
    assert key in listed.json()["data"]
    assert token not in listed.text
    assert token not in (await service.call("GET", "/v1/audit-events")).text
    assert (await service.call("DELETE", f"/v1/api-keys/{key['id']}")).status_code == 200
    [revoked] = [
        entry for entry in (await service.call("GET", "/v1/api-keys")).json()["data"] if entry["id"] == key["id"]
    ]
    assert revoked["revoked_at"].endswith("Z")
    problem_of(await service.call("DELETE", "/v1/api-keys/key_admin"), 409, "api_key_in_use")


@pytest.mark.requirement("C5")
async def test_the_audit_trail_says_who_did_what(service: Service) -> None:
    agent = (await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})).json()
    run = (await service.call("POST", "/v1/runs/wait", json={"agent": "guide", "input": "hi"})).json()["run"]

    async def actions(query: str) -> list[str]:
        page = (await service.call("GET", f"/v1/audit-events{query}")).json()
        return sorted(entry["action"] for entry in page["data"])

    assert await actions("") == ["agent.created", "run.completed", "run.started"]
    assert await actions("?action=run.*") == ["run.completed", "run.started"]
    assert await actions(f"?run_id={run['id']}&action=run.started") == ["run.started"]
    assert await actions(f"?resource={agent['id']}&actor=key_admin") == ["agent.created"]
    assert await actions("?until=2025-01-01T00:00:00Z") == []
    assert len(await actions("?since=2025-01-01T00:00:00")) == 3
    [entry] = (await service.call("GET", "/v1/audit-events?action=agent.created")).json()["data"]
    assert (
        entry.items()
        >= {
            "actor": "key_admin",
            "resource": agent["id"],
            "run_id": None,
            "details": {"name": "guide", "version": 1},
        }.items()
    )


async def test_the_document_says_how_long_and_how_large_values_may_be(service: Service) -> None:
    schemas = (await service.call("GET", "/schema")).json()["components"]["schemas"]
    agent, limits = schemas["CreateAgentBody"]["properties"], schemas["LimitsBody"]["properties"]
    assert agent["name"]["maxLength"] == 200
    assert "10000" in str(limits["max_turns"])


def enumerations(part: object) -> Iterator[list[object]]:
    """Every `enum` of an OpenAPI document."""
    if isinstance(part, dict):
        if isinstance(found := part.get("enum"), list):
            yield found
        for each in part.values():
            yield from enumerations(each)
    elif isinstance(part, list):
        for each in part:
            yield from enumerations(each)


async def test_enumerations_are_of_texts_as_generators_of_clients_leave_out_routes_with_others(
    service: Service,
) -> None:
    document = (await service.call("GET", "/schema/openapi.json", token=None)).json()
    found = list(enumerations(document))
    assert len(found) > 20
    assert [each for each in found if any(not isinstance(value, str | None) for value in each)] == []
