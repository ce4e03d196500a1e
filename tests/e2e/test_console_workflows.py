"""Workflows in a real browser: written and checked, run live on their graph, answered and decided
about by people."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving
from tests.integration.mcp.parts import SERVERS

pytestmark = [pytest.mark.timeout(300), needs_browser()]

NODES: list[Json] = [
    {"id": "start", "kind": "entrypoint", "config": {"schema": {"type": "object", "required": ["topic"]}}},
    {"id": "plain", "kind": "mcp_server", "mode": "tool", "config": {"server": "plain"}},
    {"id": "writer", "kind": "agent", "config": {"agent": "writer", "input": "Write of {{start.topic}}."}},
    {
        "id": "review",
        "kind": "human_input",
        "config": {"prompt": "Is this good? {{writer.text}}", "schema": {"type": "boolean"}},
    },
    {
        "id": "good",
        "kind": "condition",
        "config": {"input": "{{review}}", "cases": [{"handle": "yes", "expression": "@"}], "otherwise": "no"},
    },
    {"id": "publish", "kind": "transform", "config": {"expression": "'published'"}},
    {"id": "drop", "kind": "transform", "config": {"expression": "'dropped'"}},
]
EDGES: list[Json] = [
    {"source": "start", "target": "writer"},
    {"source": "plain", "target": "writer", "target_handle": "tools"},
    {"source": "writer", "target": "review"},
    {"source": "review", "target": "good"},
    {"source": "good", "source_handle": "yes", "target": "publish"},
    {"source": "good", "source_handle": "no", "target": "drop"},
]
STORY: Json = {"name": "story", "nodes": NODES, "edges": EDGES}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


def prepared(service: Service) -> None:
    """A workflow whose agent calls a tool of a real server, with approval, and whose result a
    person reviews."""
    service.server("plain", sys.executable, "-I", "-S", str(SERVERS / "plain_server.py"))
    service.call("POST", "/mcp-servers/plain/refresh")
    call = ("mcp__plain__echo", {"text": "hello"})
    model = service.script("writer", a_turn("I ask.", call), a_turn("It said {{ results.mcp__plain__echo }}."))
    asks = {"mcp__plain__*": {"decision": "require_approval", "allow_self_approval": True}}
    service.agent("writer", model, tools=[], tool_policies=asks)
    service.call("POST", "/workflows", STORY)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("workflows") / "home") as running:
        prepared(running)
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    # A refused form is an answer of its own, of which Chromium tells beside the page.
    assert [told for told in somebody.complaints if "status of 422" not in told] == []
    somebody.page.context.close()


def drawn(somebody: Person, node: str) -> Locator:
    """A node on the graph."""
    return somebody.page.locator(f'.node[data-node="{node}"]')


def begun(service: Service) -> str:
    return str(service.call("POST", "/workflows/story/runs", {"input": {"topic": "bridges"}}, expect=202)["id"])


@pytest.mark.requirement("F4", "C3")
def test_a_workflow_is_started_approved_and_answered_while_its_graph_goes_on_by_itself(
    person: Person, browser: Browser, service: Service
) -> None:
    page = person.page
    page.get_by_role("link", name="Workflows").click()
    page.get_by_role("link", name="story").first.click()
    page.get_by_role("heading", name="Workflow story").wait_for()
    page.get_by_label("Input (JSON").fill("{}")
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_label("Input (JSON")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Input (JSON").fill('{"topic": "bridges"}')
    page.get_by_role("button", name="Start the run").click()
    page.get_by_text("Workflow run wfr_").wait_for()

    expect(drawn(person, "writer")).to_contain_text("? waiting")
    expect(page.get_by_label("Details").get_by_role("heading", name="writer")).to_be_visible()
    expect(drawn(person, "plain")).to_contain_text("◆ ready")
    expect(drawn(person, "review")).to_contain_text("○ pending")
    page.get_by_role("button", name="Approve").click()
    expect(drawn(person, "writer")).to_contain_text("✓ succeeded")
    expect(drawn(person, "review")).to_contain_text("? waiting")
    expect(page.get_by_text("Is this good? It said hello.")).to_be_visible()

    second = Person(browser, service.url)
    second.sign_in(service.key)
    second.go(page.url.partition(service.url)[2])
    second.page.get_by_label("Answer").select_option("yes")
    second.page.get_by_role("button", name="Answer").click()
    expect(second.page.locator("#decided")).to_contain_text("answered")

    expect(drawn(person, "publish")).to_contain_text("✓ succeeded")
    expect(drawn(person, "drop")).to_contain_text("– skipped")
    expect(page.locator('[data-wire="good publish"]')).to_have_class("wire taken")
    expect(page.locator('[data-wire="good drop"]')).to_have_class("wire untaken")
    drawn(person, "publish").get_by_role("button").click()
    expect(page.get_by_label("Details")).to_contain_text('"published"')
    expect(page.locator("#status")).to_have_text("completed")
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    expect(page.get_by_label("Output", exact=True)).to_contain_text('"publish": "published"')
    page.locator("#node-writer").get_by_role("link").click()
    expect(page.locator("#timeline")).to_contain_text("mcp__plain__echo")
    assert second.complaints == []
    second.page.context.close()


@pytest.mark.requirement("F1")
def test_a_definition_is_checked_with_all_that_is_wrong_and_saved(person: Person, service: Service) -> None:
    page = person.page
    person.go("/console/workflows/new")
    page.get_by_role("button", name="YAML").click()
    text = page.get_by_label("Definition (YAML or JSON)")
    text.fill("name: [")
    expect(page.locator("#checked")).to_contain_text("line 1, column 8")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#faults")).to_contain_text("line 1, column 8")
    wrong = {
        "name": "second",
        "nodes": [*NODES[:3], {"id": "x", "kind": "nothing"}],
        "edges": [{"source": "start", "target": "y"}],
    }
    text.fill(json.dumps(wrong))
    with page.expect_response("**/console/workflows/new") as refused:
        page.get_by_role("button", name="Save").click()
    assert refused.value.status == 422
    # As the refused save says it, and the check while one types, whichever is answered last.
    for told in ("4 things are wrong.", "unknown_kind", "unknown_node", "x", "y"):
        expect(page.locator("#checked")).to_contain_text(told)
    expect(page.locator("#toasted")).to_be_empty()
    text.fill(json.dumps(STORY | {"name": "second"}))
    expect(page.locator("#verdict")).to_have_text("valid")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="Workflow second").wait_for()

    page.get_by_role("link", name="Edit").click()
    page.get_by_role("button", name="YAML").click()
    expect(text).to_have_value(page.get_by_label("Definition (YAML or JSON)").input_value())
    text.fill(text.input_value().replace("'published'", "'printed'").replace("name: second", "name: third"))
    page.get_by_role("button", name="Save as version 2").click()
    page.get_by_role("heading", name="Workflow third").wait_for()
    saved = service.call("GET", "/workflows/third")
    assert (saved["version"], len(saved["nodes"]), len(saved["edges"])) == (2, len(NODES), len(EDGES))
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("heading", name="Workflows").wait_for()
    expect(page.get_by_role("link", name="third")).to_have_count(0)


@pytest.mark.requirement("F4", "U6")
def test_a_question_with_an_object_as_its_schema_is_answered_in_a_form_on_the_page_of_the_run(
    person: Person, service: Service
) -> None:
    who = {"type": "object", "title": "Who", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
    schema = {
        "type": "object",
        "properties": {"who": who, "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
        "required": ["who", "tags"],
    }
    ask = {"id": "ask", "kind": "human_input", "config": {"prompt": "Who is it?", "schema": schema}}
    body = {
        "name": "form",
        "nodes": [{"id": "start", "kind": "entrypoint"}, ask],
        "edges": [{"source": "start", "target": "ask"}],
    }
    service.call("POST", "/workflows", body)
    run = service.call("POST", "/workflows/form/runs", {"input": None}, expect=202)["id"]
    page = person.page
    person.go(f"/console/workflows/runs/{run}")
    group = page.get_by_role("group", name="Who")
    group.get_by_label("name").fill("Ada")
    group.get_by_label("age").fill("36")
    if AXE.exists():
        assert person.violations() == []
    page.get_by_role("button", name="Answer").click()
    expect(page.locator("#faults")).to_contain_text("Answer")
    page.get_by_label("tags").fill("first\nsecond")
    page.get_by_role("button", name="Answer").click()
    expect(page.locator("#status")).to_have_text("completed")
    nodes = {node["node_id"]: node for node in service.call("GET", f"/workflow-runs/{run}")["nodes"]}
    assert nodes["ask"]["output"] == {"who": {"name": "Ada", "age": 36}, "tags": ["first", "second"]}
    person.complaints.clear()  # the browser notes the refusal


@pytest.mark.requirement("F4")
def test_what_somebody_is_typing_stays_while_the_graph_goes_on_and_a_run_is_cancelled(
    person: Person, service: Service
) -> None:
    ask = {"id": "ask", "kind": "human_input", "config": {"prompt": "What?"}}
    other = {"id": "other", "kind": "human_input", "config": {"prompt": "And what else?"}}
    edges = [{"source": "start", "target": "ask"}, {"source": "start", "target": "other"}]
    service.call(
        "POST",
        "/workflows",
        {"name": "asks", "nodes": [{"id": "start", "kind": "entrypoint"}, ask, other], "edges": edges},
    )
    run = service.call("POST", "/workflows/asks/runs", {"input": None}, expect=202)["id"]
    page = person.page
    person.go(f"/console/workflows/runs/{run}")
    page.locator("#answer-ask").fill("Half a sen")
    expect(page.locator("#answer-other")).to_be_visible()
    until(lambda: service.call("GET", f"/workflow-runs/{run}")["status"] == "requires_action", what="both questions")
    service.call("POST", f"/workflow-runs/{run}/resume", {"answers": [{"node_id": "other", "answer": "x"}]})
    expect(drawn(person, "other")).to_contain_text("✓ succeeded")
    expect(page.locator("#answer-other")).to_have_count(0)
    expect(page.locator("#answer-ask")).to_have_value("Half a sen")
    expect(page.locator("#question-ask").get_by_role("button", name="Answer")).to_be_enabled()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator("#status")).to_have_text("cancelled")
    expect(drawn(person, "ask")).to_contain_text("■ cancelled")
    expect(page.locator("#connection")).to_have_text("Ended: cancelled")


@pytest.mark.requirement("F4")
def test_the_page_of_a_workflow_run_goes_on_after_the_service_was_killed_and_started_again(
    browser: Browser, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with serving(home) as first:
        prepared(first)
        run = begun(first)
        somebody = Person(browser, first.url)
        somebody.sign_in(first.key)
        somebody.go(f"/console/workflows/runs/{run}")
        expect(drawn(somebody, "writer")).to_contain_text("waiting")
        port = first.url.rpartition(":")[2]
        os.killpg(first.process.pid, signal.SIGKILL)
        first.process.wait()
    expect(somebody.page.locator("#connection")).to_contain_text("Trying again")
    with serving(home, DRAGOMAN_PORT=port) as second:
        expect(somebody.page.locator("#connection")).to_have_text("Live")
        approval = second.call("GET", "/approvals?state=pending")["data"][0]["id"]
        second.call("POST", f"/approvals/{approval}", {"decision": "approve"})
        expect(drawn(somebody, "writer")).to_contain_text("succeeded")
        expect(drawn(somebody, "review")).to_contain_text("waiting")
    somebody.page.context.close()


@pytest.mark.requirement("C6")
def test_who_is_signed_out_meanwhile_comes_back_to_the_run_after_signing_in(browser: Browser, service: Service) -> None:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    somebody.page.route("**/stream?*", lambda route: route.abort())
    somebody.go(f"/console/workflows/runs/{begun(service)}")
    expect(somebody.page.locator("#connection")).to_contain_text("Trying again")
    somebody.page.context.clear_cookies()
    somebody.page.get_by_label("API key").fill(service.key)
    somebody.page.unroute("**/stream?*")
    somebody.page.get_by_role("button", name="Sign in").click()
    expect(somebody.page.get_by_text("Workflow run wfr_")).to_be_visible()
    expect(somebody.page.locator("#connection")).to_have_text("Live")
    somebody.page.context.close()
