"""Workflows over HTTP."""

import pytest

from domain.workflows.graph import MAX_NODES
from tests.composition import MODEL
from tests.integration.http.service import Service, paths_of, problem_of

NODES: list[dict[str, object]] = [
    {"id": "start", "kind": "entrypoint"},
    {"id": "research", "kind": "agent", "config": {"agent": "guide", "input": "Look up {{start.topic}}"}},
    {"id": "write", "kind": "agent", "config": {"agent": "guide", "input": "Write: {{research.text}}"}},
    {
        "id": "weather",
        "kind": "http_request",
        "mode": "tool",
        "config": {
            "url": "https://weather.example/{{inputs.city}}",
            "headers": {"X-Key": "{{inputs.key}}"},
            "inputs": {"city": {"type": "string"}, "key": {"type": "string"}},
            "tool": {
                "name": "weather",
                "description": "The weather in a city.",
                "bound": {"key": {"secret": "WEATHER_KEY"}},
                "exposed": ["city"],
            },
        },
    },
    {"id": "files", "kind": "mcp_server", "mode": "tool", "config": {"server": "files"}},
]
EDGES: list[dict[str, object]] = [
    {"source": "start", "target": "research"},
    {"source": "research", "source_handle": "output", "target": "write", "target_handle": "input"},
    {"source": "weather", "target": "research", "target_handle": "tools"},
    {"source": "files", "source_handle": "tool", "target": "write", "target_handle": "tools"},
]
STORY: dict[str, object] = {"name": "story", "nodes": NODES, "edges": EDGES}


@pytest.fixture
async def stocked(service: Service) -> Service:
    """A service with what the story names."""
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    await service.call("POST", "/v1/mcp-servers", json={"slug": "files", "kind": "custom", "command": "server"})
    await service.call("POST", "/v1/secrets", json={"name": "WEATHER_KEY", "value": "a value nobody sees"})
    return service


@pytest.mark.requirement("F1", "F3")
async def test_a_workflow_is_created_read_changed_and_deleted(stocked: Service) -> None:
    created = await stocked.call("POST", "/v1/workflows", json=STORY)
    workflow = created.json()
    assert (created.status_code, created.headers["etag"]) == (201, '"1"')
    assert created.headers["location"] == f"/v1/workflows/{workflow['id']}"
    assert workflow.pop("warnings") == []
    assert workflow["nodes"][1] == {**NODES[1], "mode": "normal"}
    assert workflow["edges"][0] == {**EDGES[0], "source_handle": "", "target_handle": "input"}
    tools = {node["id"]: node["connected_tool_node_ids"] for node in workflow["plan"] if node["kind"] == "agent"}
    assert tools == {"research": ["weather"], "write": ["files"]}
    assert "a value nobody sees" not in created.text

    read = await stocked.call("GET", "/v1/workflows/story")
    assert (read.json(), read.headers["etag"]) == (workflow, '"1"')

    path = f"/v1/workflows/{workflow['id']}"
    changed = await stocked.call("PATCH", path, json={"name": "tale"}, headers={"If-Match": '"1"'})
    assert (changed.status_code, changed.json()["version"], changed.json()["name"]) == (200, 2, "tale")
    again = await stocked.call("PATCH", path, json={"name": "tale"})
    assert again.json()["version"] == 2
    versions = (await stocked.call("GET", f"{path}/versions")).json()["data"]
    assert [(version["version"], version["name"]) for version in versions] == [(2, "tale"), (1, "story")]
    listed = (await stocked.call("GET", "/v1/workflows")).json()
    assert [entry["name"] for entry in listed["data"]] == ["tale"]

    assert (await stocked.call("DELETE", path)).status_code == 204
    problem_of(await stocked.call("GET", path), 404, "workflow_not_found")
    actions = [entry.action for entry in stocked.state.audit.values() if entry.resource == workflow["id"]]
    assert actions == ["workflow.created", "workflow.updated", "workflow.deleted"]


async def test_a_version_one_has_not_seen_is_not_overwritten(stocked: Service) -> None:
    await stocked.call("POST", "/v1/workflows", json=STORY)
    refused = await stocked.call("PATCH", "/v1/workflows/story", json={"edges": []}, headers={"If-Match": '"7"'})
    problem_of(refused, 412, "version_conflict")


async def test_a_name_is_given_once(stocked: Service) -> None:
    await stocked.call("POST", "/v1/workflows", json=STORY)
    problem_of(await stocked.call("POST", "/v1/workflows", json=STORY), 409, "workflow_name_taken")


@pytest.mark.requirement("B12", "F1")
@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"kind": "custom", "command": "server", "args": ["--token", "pl4nted"]}, "nodes.1.config.server.args.1"),
        ({"kind": "http", "url": "https://a.example/mcp?api_key=pl4nted"}, "nodes.1.config.server.url"),
        ({"kind": "http", "url": "https://a.example/mcp?api_key=${secret:NOWHERE}"}, "nodes.1.config.server.url"),
        ({"kind": "http", "url": "https://a.example/mcp?api_key=${secret:WEATHER_KEY}"}, None),
    ],
)
async def test_a_server_that_a_node_defines_holds_no_secret_in_clear_and_may_name_one(
    stocked: Service, settings: dict[str, object], path: str | None
) -> None:
    desk = {"id": "desk", "kind": "mcp_server", "mode": "tool", "config": {"server": {"slug": "desk", **settings}}}
    edge = {"source": "desk", "target": "research", "target_handle": "tools"}
    edges = [{"source": "start", "target": "research"}, edge]
    story = {"name": "desk", "nodes": [NODES[0], desk, NODES[1]], "edges": edges}
    answer = await stocked.call("POST", "/v1/workflows", json=story)
    assert "pl4nted" not in answer.text
    if path is None:
        assert answer.status_code == 201, answer.text
        deleted = await stocked.call("DELETE", "/v1/secrets/WEATHER_KEY")
        problem_of(deleted, 409, "secret_in_use")
    else:
        assert paths_of(problem_of(answer, 422, "workflow_invalid")) == [path]


BROKEN: dict[str, object] = {
    "name": "broken",
    "nodes": [
        {"id": "start", "kind": "entrypoint"},
        {"id": "sum", "kind": "transform", "config": {"expression": "sum(@"}},
        {"id": "count", "kind": "transform", "config": {"expression": "counted(@)"}},
        {"id": "ask", "kind": "agent", "config": {"agent": "nobody"}},
        {"id": "answer", "kind": "human_input", "config": {"prompt": "?", "schema": {"type": 7}}},
        {"id": "files", "kind": "mcp_server", "mode": "tool", "config": {"server": "nowhere"}},
        {
            "id": "get",
            "kind": "http_request",
            "config": {"url": "https://a.example", "headers": {"X": {"secret": "NO"}}},
        },
    ],
    "edges": [
        {"source": "start", "target": "sum"},
        {"source": "sum", "target": "count"},
        {"source": "count", "target": "sum"},
        {"source": "start", "target": "ask"},
        {"source": "start", "target": "answer", "target_handle": "tools"},
        {"source": "start", "target": "get", "source_handle": "left"},
        {"source": "files", "target": "ask", "target_handle": "tools"},
    ],
}
FAULTS = {
    ("expression_invalid", "nodes.1.config.expression"),
    ("expression_invalid", "nodes.2.config.expression"),
    ("unknown_agent", "nodes.3.config.agent"),
    ("schema_invalid", "nodes.4.config.schema"),
    ("unknown_server", "nodes.5.config.server"),
    ("unknown_secret", "nodes.6.config.headers.X.secret"),
    ("cycle", "nodes.1"),
    ("tool_edge_source", "edges.4.source"),
    ("tool_edge_target", "edges.4.target"),
    ("unknown_handle", "edges.5.source_handle"),
    ("unreachable", "nodes.4"),
    ("unreachable", "nodes.6"),
}


@pytest.mark.requirement("F1")
async def test_everything_that_is_wrong_is_told_at_once(stocked: Service) -> None:
    validated = await stocked.call("POST", "/v1/workflows/validate", json=BROKEN)
    told = validated.json()
    assert (validated.status_code, told["valid"], told["plan"]) == (200, False, None)
    assert {(error["code"], error["path"]) for error in told["errors"]} == FAULTS
    cycle = next(error for error in told["errors"] if error["code"] == "cycle")
    assert cycle["node_ids"] == ["sum", "count"]
    assert "sum → count → sum" in cycle["message"]

    refused = await stocked.call("POST", "/v1/workflows", json=BROKEN)
    assert set(paths_of(problem_of(refused, 422, "workflow_invalid"))) == {path for _, path in FAULTS}
    assert (await stocked.call("GET", "/v1/workflows")).json()["data"] == []


async def test_what_is_valid_is_told_with_its_plan_and_its_oddities_and_not_saved(stocked: Service) -> None:
    odd = {**STORY, "edges": EDGES[:3]}
    told = (await stocked.call("POST", "/v1/workflows/validate", json=odd)).json()
    assert (told["valid"], told["errors"]) == (True, [])
    assert [(warning["code"], warning["node_ids"]) for warning in told["warnings"]] == [("tool_not_wired", ["files"])]
    assert [node["id"] for node in told["plan"]] == ["start", "weather", "files", "research", "write"]
    assert (await stocked.call("GET", "/v1/workflows")).json()["data"] == []
    saved = (await stocked.call("POST", "/v1/workflows", json=odd)).json()
    assert [warning["code"] for warning in saved["warnings"]] == ["tool_not_wired"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"name": "x"}, "nodes"),
        ({"name": "x", "nodes": [{"id": "a", "kind": "agent", "colour": 1}]}, "nodes.0.colour"),
        ({"name": "x", "nodes": [], "edges": [{"source": "a"}]}, "edges.0.target"),
        ({"name": "x", "nodes": [{"id": 1, "kind": "agent"}]}, "nodes.0.id"),
        ({"name": "x", "nodes": [{"id": "a", "kind": "agent", "config": []}]}, "nodes.0.config"),
    ],
)
async def test_a_body_of_another_shape_is_refused_with_its_place(
    service: Service, body: dict[str, object], path: str
) -> None:
    refused = await service.call("POST", "/v1/workflows", json=body)
    assert path in paths_of(problem_of(refused, 422, "body_invalid"))


async def test_null_takes_no_part_of_a_workflow_away(stocked: Service) -> None:
    await stocked.call("POST", "/v1/workflows", json=STORY)
    refused = await stocked.call("PATCH", "/v1/workflows/story", json={"edges": None})
    assert paths_of(problem_of(refused, 422, "body_invalid")) == ["edges"]


async def test_a_workflow_is_drawn(stocked: Service) -> None:
    await stocked.call("POST", "/v1/workflows", json=STORY)
    drawn = await stocked.call("GET", "/v1/workflows/story/diagram")
    assert drawn.headers["content-type"].startswith("text/vnd.mermaid")
    lines = [line.strip() for line in drawn.text.splitlines()]
    assert lines[0] == "flowchart LR"
    assert 'n0(["start<br/>entrypoint"])' in lines
    assert 'n3[["weather<br/>HTTP request"]]' in lines
    assert "n0 --> n1" in lines
    assert "n3 -. tool .-> n1" in lines
    assert "n4 -. tool .-> n2" in lines


@pytest.mark.requirement("C7")
async def test_a_secret_that_a_workflow_names_cannot_be_deleted(stocked: Service) -> None:
    await stocked.call("POST", "/v1/workflows", json=STORY)
    refused = await stocked.call("DELETE", "/v1/secrets/WEATHER_KEY")
    assert "the workflow story" in str(problem_of(refused, 409, "secret_in_use")["detail"])
    await stocked.call("DELETE", "/v1/workflows/story")
    assert (await stocked.call("DELETE", "/v1/secrets/WEATHER_KEY")).status_code == 204


@pytest.mark.parametrize("count", [MAX_NODES + 1, 10_000])
async def test_a_graph_that_is_too_large_is_refused_before_anything_is_made_of_it(service: Service, count: int) -> None:
    nodes = [{"id": f"n{number}", "kind": "transform", "config": {"expression": "@"}} for number in range(count)]
    edges = [{"source": f"n{number}", "target": f"n{number + 1}"} for number in range(count - 1)]
    for path in ("/v1/workflows", "/v1/workflows/validate"):
        refused = await service.call("POST", path, json={"name": "large", "nodes": nodes, "edges": edges})
        assert "nodes" in paths_of(problem_of(refused, 422, "body_invalid"))


COMMENTED = """# What people ask every morning
name: plain
nodes:
- {id: start, kind: entrypoint}  # begins here
"""
PLAIN = {"name": "plain", "nodes": [{"id": "start", "kind": "entrypoint"}]}


@pytest.mark.requirement("U6")
async def test_a_workflow_keeps_the_text_that_it_was_sent_with_until_a_change_without_one(stocked: Service) -> None:
    created = (await stocked.call("POST", "/v1/workflows", json={**PLAIN, "text": COMMENTED})).json()
    assert (created["text"], created["version"]) == (COMMENTED, 1)
    path = f"/v1/workflows/{created['id']}"
    renamed = COMMENTED.replace("name: plain", "name: simple")
    changed = (await stocked.call("PATCH", path, json={"text": renamed})).json()
    assert (changed["name"], changed["text"], changed["version"]) == ("simple", renamed, 2)
    again = (await stocked.call("PATCH", path, json={"text": renamed, "name": "simple"})).json()
    assert again["version"] == 2
    without = (await stocked.call("PATCH", path, json={"name": "plain"})).json()
    assert (without["text"], without["version"]) == (None, 3)
    assert (await stocked.call("GET", path)).json()["text"] is None
    as_json = await stocked.call(
        "POST", "/v1/workflows", json={**PLAIN, "name": "other", "text": '{"name": "other", "nodes": []}'}
    )
    problem_of(as_json, 422, "definition_invalid")


@pytest.mark.requirement("U6")
async def test_a_text_that_says_another_workflow_is_refused_with_the_parts_that_differ(stocked: Service) -> None:
    for text, code, paths in (
        (COMMENTED.replace("plain", "other"), "definition_invalid", ["name"]),
        (COMMENTED.replace("id: start", "id: begin"), "definition_invalid", ["nodes"]),
        ("name: [", "definition_invalid", ["text"]),
        ("nodes: []", "body_invalid", ["name"]),
    ):
        answer = await stocked.call("POST", "/v1/workflows", json={**PLAIN, "text": text})
        problem = problem_of(answer, 422, code)
        assert paths_of(problem) == paths
    assert (await stocked.call("GET", "/v1/workflows")).json()["data"] == []
