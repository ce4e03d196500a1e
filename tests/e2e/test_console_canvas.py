"""The canvas of workflows in a real browser: built by mouse and by keyboard, one definition in two
views, faults at the nodes."""

import re
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest
import yaml
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import Json, Service, a_turn, serving
from tests.integration.mcp.parts import SERVERS

pytestmark = [pytest.mark.timeout(240), needs_browser(), pytest.mark.requirement("U6", "F1")]

TEXT = """# The team's digest.
name: digest
nodes:
- {id: start, kind: entrypoint} # what the caller says
# Writes from nothing but its notes.
- id: write
  kind: agent
  config: {agent: writer, input: "Write of {{start.topic}}."}
- {id: good, kind: condition, config: {expression: "text != ''"}}
- {id: shown, kind: transform, config: {expression: "@"}}
edges:
- {source: start, target: write}
- {source: write, target: good}
- {source: good, source_handle: true, target: shown}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("canvas") / "home") as running:
        running.server("plain", sys.executable, "-I", "-S", str(SERVERS / "plain_server.py"))
        running.agent("writer", running.script("writer", a_turn("Bridges.")), tools=[])
        yield running


@pytest.fixture
def page(browser: Browser, service: Service) -> Iterator[Page]:
    person = Person(browser, service.url)
    person.sign_in(service.key)
    person.go("/console/workflows/new")
    checked(person.page, "valid")
    yield person.page
    assert [told for told in person.complaints if "status of 422" not in told] == []  # of a refused save
    person.page.context.close()


def node(page: Page, name: str) -> Locator:
    return page.locator(f'.node[data-node="{name}"]')


def write(page: Page, text: str) -> None:
    """As YAML; back on the canvas then."""
    page.get_by_role("button", name="YAML").click()
    page.get_by_label("Definition").fill(text)
    checked(page)
    page.get_by_role("button", name="Canvas").click()


def checked(page: Page, verdict: str = "") -> None:
    """What the service says of the text as it is now."""
    expect(page.locator("#verdict:not([data-checking])")).to_contain_text(verdict)


def text_of(page: Page) -> str:
    return page.get_by_label("Definition").input_value()


def edges_of(page: Page) -> list[Json]:
    found: list[Json] = yaml.safe_load(text_of(page))["edges"]
    return found


def pull(page: Page, source: str, target: str, *, handle: str = "") -> None:
    """A wire with the mouse, from the edge of a node to another node."""
    checked(page)  # which draws the nodes' edges again
    begin = node(page, source).locator(f'.port.out[data-handle="{handle}"]').bounding_box()
    end = node(page, target).bounding_box()
    assert begin is not None
    assert end is not None
    page.mouse.move(begin["x"] + begin["width"] / 2, begin["y"] + begin["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=5)
    page.mouse.up()


def test_comments_order_and_style_stay_when_the_canvas_changes_the_text(page: Page) -> None:
    write(page, TEXT)
    node(page, "write").get_by_role("button").click()
    page.get_by_label("Input", exact=True).fill("Write briefly of {{start.topic}}.")
    page.get_by_label("Input", exact=True).blur()
    page.get_by_role("button", name="Agent", exact=True).click()
    page.get_by_label("Agent (required)").select_option("writer")
    wanted = TEXT.replace("Write of", "Write briefly of").replace(
        "edges:", "- id: agent\n  kind: agent\n  config:\n    agent: writer\nedges:"
    )
    assert text_of(page) == wanted + "- source: write\n  target: agent\n"
    page.get_by_label("Id", exact=True).fill("first")
    page.get_by_label("Id", exact=True).press("Enter")
    node(page, "start").get_by_role("button").click()
    page.get_by_label("Id", exact=True).fill("begin")
    page.get_by_label("Id", exact=True).press("Enter")
    expect(node(page, "begin")).to_be_visible()
    assert "{{begin.topic}}" in text_of(page)
    assert {"source": "begin", "target": "write"} in edges_of(page)
    assert "# what the caller says" in text_of(page)


@pytest.mark.requirement("P2")
def test_the_team_is_chosen_among_the_groups_and_stands_in_the_text_behind_the_name(
    page: Page, service: Service
) -> None:
    service.call("POST", "/groups", {"name": "Editors"})
    page.reload()
    checked(page, "valid")
    write(page, TEXT)
    team = page.get_by_label("Team")
    expect(team).to_have_value("")
    team.select_option("Editors")
    assert text_of(page) == TEXT.replace("name: digest\n", "name: digest\nteam: Editors\n")
    checked(page, "valid")
    team.select_option("the organization")
    assert text_of(page) == TEXT
    page.get_by_role("button", name="Undo").click()
    expect(team).to_have_value("Editors")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("main")).to_contain_text("team Editors")
    assert service.call("GET", "/workflows/digest")["team"] == "Editors"
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("Team")).to_have_value("Editors")
    write(page, TEXT.replace("name: digest\n", "name: digest\nteam: Unknown\n"))
    expect(page.get_by_label("Team")).to_have_value("Unknown")
    expect(page.locator("#checked")).to_contain_text("There is no group 'Unknown'.")


def test_wires_are_pulled_to_nodes_tools_to_their_agent_and_nodes_are_moved_and_dropped(page: Page) -> None:
    write(page, TEXT)
    node(page, "good").get_by_role("button").click()
    page.get_by_role("button", name="MCP server").drag_to(
        page.locator(".canvas-area"), target_position={"x": 300, "y": 60}
    )
    page.get_by_label("MCP server (required)").select_option("plain")
    pull(page, "server", "write")
    expect(page.locator('[data-wire="server write"]')).to_have_class("wire tool")
    assert edges_of(page)[-1] == {"source": "server", "target": "write", "target_handle": "tools"}
    pull(page, "good", "write", handle="false")
    assert edges_of(page)[-1] == {"source": "good", "source_handle": "false", "target": "write"}
    expect(page.locator("#checked")).to_contain_text("cycle")
    page.locator('[data-wire="good write"] .hit').dispatch_event("click")
    page.get_by_role("button", name="Remove").click()
    checked(page, "valid")

    before = node(page, "shown").bounding_box()
    assert before is not None
    page.mouse.move(before["x"] + 60, before["y"] + 20)
    page.mouse.down()
    page.mouse.move(before["x"] + 60, before["y"] + 120, steps=4)
    page.mouse.up()
    after = node(page, "shown").bounding_box()
    assert after is not None
    assert after["y"] - before["y"] > 60


def test_a_node_that_was_moved_before_the_first_save_stays_where_it_is(page: Page) -> None:
    places = "key => JSON.parse(localStorage.getItem(`dragoman-canvas ${key}`))"
    write(page, TEXT.replace("name: digest", "name: moved"))
    box = node(page, "shown").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 120, steps=4)
    page.mouse.up()
    drafted = page.evaluate(places, "new")
    assert drafted["shown"][1] > 60
    checked(page, "valid")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(lambda url: "/workflows/" in url and not url.endswith("/new"))
    assert page.evaluate(places, page.url.split("/")[-1]) == drafted


def test_everything_is_done_by_the_keyboard_too(page: Page) -> None:
    page.get_by_role("button", name="Agent", exact=True).press("Enter")
    expect(page.get_by_label("Agent (required)")).to_be_focused()
    page.keyboard.press("w")
    page.get_by_role("button", name="Transform").press("Enter")
    expect(page.get_by_label("Expression (required)")).to_be_focused()
    page.keyboard.type("@")
    node(page, "shape").get_by_role("button").press("ArrowLeft")
    expect(node(page, "agent").get_by_role("button")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Start")).to_be_visible()
    page.get_by_label("Connect to").select_option("shape")
    page.get_by_role("button", name="Connect", exact=True).press("Enter")
    assert {"source": "start", "target": "shape"} in edges_of(page)
    page.get_by_role("button", name="Remove the connection to shape").press("Enter")
    assert {"source": "start", "target": "shape"} not in edges_of(page)
    before = node(page, "shape").bounding_box()
    node(page, "shape").get_by_role("button").press("Alt+ArrowDown")
    assert node(page, "shape").bounding_box() != before
    page.keyboard.press("Delete")
    expect(node(page, "shape")).to_have_count(0)
    expect(node(page, "agent").get_by_role("button")).to_be_focused()
    page.keyboard.press("Control+z")
    expect(node(page, "shape")).to_be_visible()
    page.keyboard.press("Control+Shift+z")
    expect(node(page, "shape")).to_have_count(0)


def test_changes_are_undone_and_done_again(page: Page) -> None:
    write(page, TEXT)
    node(page, "shown").get_by_role("button").click()
    page.get_by_role("button", name="Delete node").click()
    expect(node(page, "shown")).to_have_count(0)
    assert "# Writes from nothing but its notes." in text_of(page)
    page.get_by_role("button", name="Undo").click()
    expect(node(page, "shown")).to_be_visible()
    assert text_of(page) == TEXT
    page.get_by_role("button", name="Undo").click()
    expect(node(page, "write")).to_have_count(0)
    page.get_by_role("button", name="Redo").click()
    assert text_of(page) == TEXT


def test_faults_are_shown_at_the_node_and_its_field_until_they_are_mended(page: Page) -> None:
    write(page, TEXT.replace("agent: writer", "agent: nobody").replace('"@"', '"@@"'))
    checked(page, "2 faults")
    expect(node(page, "write").locator(".count")).to_have_text("1 fault")
    node(page, "write").get_by_role("button").click()
    agent = page.get_by_label("Agent (required)")
    expect(agent).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#panel")).to_contain_text("There is no agent 'nobody'.")
    agent.select_option("writer")
    checked(page, "1 fault")
    expect(agent).not_to_have_attribute("aria-invalid", "true")
    expect(node(page, "write").locator(".count")).to_be_hidden()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#checked")).to_contain_text("expression_invalid")
    node(page, "shown").get_by_role("button").click()
    page.get_by_text("More", exact=True).click()
    attempts = page.get_by_role("group", name="Retry").get_by_label("Attempts")
    attempts.fill("99")
    attempts.blur()
    checked(page, "2 faults")


def test_the_whole_is_fitted_zoomed_and_shown_on_the_map(page: Page) -> None:
    write(page, TEXT)
    tools = page.get_by_role("group", name="Zoom")
    page.get_by_role("button", name="Fit the whole workflow").click()
    before = tools.locator(".hint").text_content()
    page.get_by_role("button", name="Zoom in").click()
    assert tools.locator(".hint").text_content() != before
    node(page, "start").get_by_role("button").press("0")
    expect(tools.locator(".hint")).to_have_text(before or "")
    area = page.locator(".canvas-area").bounding_box()
    assert area is not None
    for name in ("start", "write", "good", "shown"):
        box = node(page, name).bounding_box()
        assert box is not None
        assert area["x"] <= box["x"]
        assert box["x"] + box["width"] <= area["x"] + area["width"]
    expect(page.locator(".canvas-map rect")).to_have_count(5)


@pytest.mark.skipif(not AXE.exists(), reason="needs `make node`")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_editor_can_be_used_by_everybody_in_both_themes_at_three_widths(
    *, browser: Browser, service: Service, dark: bool
) -> None:
    for width in (1440, 1024, 390):
        person = Person(browser, service.url, width=width, dark=dark)
        person.sign_in(service.key)
        person.go("/console/workflows/new")
        page = person.page
        write(page, TEXT.replace("agent: writer", "agent: nobody"))
        checked(page, "1 fault")
        node(page, "write").get_by_role("button").click()
        expect(page.locator("#panel")).to_contain_text("There is no agent")
        assert person.violations() == [], width
        page.get_by_role("button", name="YAML").click()
        assert person.violations() == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert person.complaints == []
        page.context.close()


def test_on_a_phone_the_form_of_a_node_is_a_sheet_below_the_canvas(browser: Browser, service: Service) -> None:
    person = Person(browser, service.url, width=390)
    person.sign_in(service.key)
    person.go("/console/workflows/new")
    page = person.page
    write(page, TEXT)
    panel = page.locator("#panel")
    node(page, "start").get_by_role("button").click()
    expect(panel).to_be_in_viewport(ratio=1)
    sheet, area = panel.bounding_box(), page.locator("#canvas").bounding_box()
    assert sheet is not None
    assert area is not None
    assert sheet["y"] + sheet["height"] == 800
    assert sheet["y"] > area["y"] >= 0
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_contain_text("Build the workflow")
    expect(panel).to_have_css("position", "static")
    assert person.complaints == []
    page.context.close()


def test_what_a_version_changed_is_shown_and_an_older_one_restored(page: Page, service: Service) -> None:
    nodes: list[Json] = [{"id": "start", "kind": "entrypoint"}]
    workflow = service.call("POST", "/workflows", {"name": "versions", "nodes": nodes, "edges": []})["id"]
    nodes = [*nodes, {"id": "shape", "kind": "transform", "config": {"expression": "@"}}]
    service.call("PATCH", "/workflows/versions", {"nodes": nodes, "edges": [{"source": "start", "target": "shape"}]})
    page.goto(page.url.replace("/workflows/new", f"/workflows/{workflow}"))
    page.get_by_text("Versions (2)").click()
    page.get_by_text("Version 2", exact=True).click()
    expect(page.locator(".history ins").filter(has_text="- id: shape")).to_be_visible()
    page.get_by_role("link", name="Open version 1").click()
    expect(page.locator(".node")).to_have_count(1)
    page.get_by_text("What changed until version 2").click()
    expect(page.locator(".card ins").filter(has_text="- id: shape")).to_be_visible()
    page.get_by_role("button", name="Restore as version 3").click()
    expect(page.get_by_role("main").locator("p.hint").first).to_contain_text("version 3")
    expect(page.locator(".node")).to_have_count(1)


def test_a_run_is_replayed_from_a_node_and_a_node_tried_alone(page: Page, service: Service) -> None:
    nodes: list[Json] = [
        {"id": "start", "kind": "entrypoint"},
        {"id": "write", "kind": "agent", "config": {"agent": "writer", "input": "Write."}},
        {"id": "shape", "kind": "transform", "config": {"expression": "text.no"}},
        {"id": "end", "kind": "transform", "config": {"expression": "join('', [@, '!'])"}},
    ]
    edges = [{"source": one["id"], "target": other["id"]} for one, other in pairwise(nodes)]
    service.call("POST", "/workflows", {"name": "replayed", "nodes": nodes, "edges": edges})
    run = service.call("POST", "/workflows/replayed/runs", {"input": None}, expect=202)["id"]
    page.goto(page.url.replace("/workflows/new", f"/workflows/runs/{run}"))
    expect(page.locator("#connection")).to_have_text("Ended: failed")
    expect(page.get_by_label("Details").get_by_role("heading", name="end")).to_be_visible()

    # Mended, it goes on from there; the agent is not asked again.
    nodes[2]["config"]["expression"] = "text"
    service.call("PATCH", "/workflows/replayed", {"nodes": nodes})
    node(page, "shape").get_by_role("button").click()
    page.get_by_label("Details").get_by_role("button", name="Try alone the node shape").click()
    expect(page).not_to_have_url(re.compile(run))
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    expect(node(page, "shape")).to_contain_text("✓ succeeded")
    expect(node(page, "end")).to_contain_text("■ cancelled")
    page.go_back()
    node(page, "shape").get_by_role("button").click()
    page.get_by_label("Details").get_by_role("button", name="Replay from shape").click()
    expect(page).not_to_have_url(re.compile(run))
    expect(page.locator("#connection")).to_have_text("Ended: completed")
    expect(page.get_by_label("Output", exact=True)).to_contain_text("Bridges.!")
    assert len(service.call("GET", "/runs?limit=100")["data"]) == 1


@pytest.mark.skipif(not AXE.exists(), reason="needs `make node`")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_canvas_of_a_workflow_and_of_a_run_can_be_used_by_everybody_in_both_themes_at_three_widths(
    *, browser: Browser, service: Service, dark: bool
) -> None:
    name = f"shown-{dark}".lower()
    ask: Json = {"id": "ask", "kind": "human_input", "config": {"prompt": "What?"}}
    end: Json = {"id": "end", "kind": "transform", "config": {"expression": "@"}}
    nodes = [{"id": "start", "kind": "entrypoint"}, ask, end]
    edges = [{"source": "start", "target": "ask"}, {"source": "ask", "target": "end"}]
    workflow = service.call("POST", "/workflows", {"name": name, "nodes": nodes, "edges": edges})["id"]
    run = service.call("POST", f"/workflows/{name}/runs", {"input": None}, expect=202)["id"]
    for width in (1440, 1024, 390):
        person = Person(browser, service.url, width=width, dark=dark)
        person.sign_in(service.key)
        page = person.page
        person.go(f"/console/workflows/{workflow}")
        node(page, "ask").get_by_role("button").press("Enter")
        expect(page.get_by_label("Configuration")).to_contain_text("What?")
        assert person.violations() == [], width
        person.go(f"/console/workflows/runs/{run}")
        expect(node(page, "ask")).to_contain_text("? waiting")
        expect(page.get_by_label("Details").get_by_role("heading", name="ask")).to_be_visible()
        page.get_by_role("region", name="Canvas").scroll_into_view_if_needed()
        expect(node(page, "ask")).to_be_in_viewport()
        assert person.violations() == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert person.complaints == []
        page.context.close()
