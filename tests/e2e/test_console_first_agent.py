"""The first-run page in a real browser: a model, a server from its registry, an agent, hello."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import Service, serving
from tests.integration.mcp.install.uv import path_with_uv

pytestmark = [pytest.mark.timeout(420), needs_browser(), pytest.mark.requirement("U2")]

INSTALL_MS = 240_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path / "home", PATH=path_with_uv(tmp_path)) as running:
        yield running


def test_from_an_empty_overview_to_the_first_answer_with_a_tool(browser: Browser, service: Service) -> None:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    page = somebody.page
    page.get_by_role("link", name="Set up a first agent").click()
    page.wait_for_url("**/console/first-agent")
    page.get_by_label("Model", exact=True).select_option("scripted")
    page.get_by_label("MCP server").select_option("time")
    page.get_by_label("Name").fill("clock")
    page.get_by_role("button", name="Create the agent and say hello").click()
    page.wait_for_url(f"{service.url}/console/runs/run_*", timeout=INSTALL_MS)
    expect(page.locator("#timeline")).to_contain_text("The clock says")
    assert somebody.complaints == []
    [run] = service.call("GET", "/runs")["data"]
    assert run["input"][0]["text"] == "What time is it in Lisbon?"
    assert service.call("GET", "/agents/clock")["mcp_servers"] == ["time"]
    page.context.close()


def test_a_missing_key_is_said_at_the_model_and_entered_text_stays(browser: Browser, service: Service) -> None:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    page = somebody.page
    somebody.go("/console/first-agent")
    page.get_by_label("Model", exact=True).select_option("openai:gpt-5-mini")
    page.get_by_label("MCP server").select_option("none")
    page.get_by_label("Name").fill("helper")
    page.get_by_role("button", name="Create the agent and say hello").click()
    expect(page.locator("#faults")).to_contain_text("has no API key")
    expect(page.get_by_label("Name")).to_have_value("helper")
    assert service.call("GET", "/agents")["data"] == []
    page.get_by_label("Model", exact=True).select_option("scripted")
    page.get_by_role("button", name="Create the agent and say hello").click()
    page.wait_for_url(f"{service.url}/console/runs/run_*")
    expect(page.locator("#timeline")).to_contain_text("You said: Hello!")
    page.context.close()


@pytest.mark.skipif(not AXE.exists(), reason="needs `make node`")
def test_everybody_can_read_it_in_light_and_dark_and_on_a_phone(
    browser: Browser, service: Service, tmp_path: Path
) -> None:
    for name, width, dark in (("desktop", 1280, False), ("dark", 1280, True), ("phone", 390, False)):
        somebody = Person(browser, service.url, width=width, dark=dark)
        somebody.sign_in(service.key)
        somebody.go("/console/first-agent")
        somebody.page.get_by_role("heading", name="Set up a first agent").wait_for()
        assert somebody.violations() == [], name
        assert somebody.page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert somebody.complaints == []
        somebody.page.context.close()
