"""Corners of the console in a real browser: long names, the way back to a list, and what is asked
with nothing chosen."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from tests.e2e.browser import Person, browsing, needs_browser
from tests.e2e.service import Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser(), pytest.mark.requirement("U6")]

LONG_NAME = "a" * 64
LONG_WORD = "Donau" * 80


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("corners") / "home") as running:
        running.agent(LONG_NAME, running.script("talker", a_turn("Hello."), a_turn("Hello again.")))
        for text in (LONG_WORD, "Count the apples."):
            running.run(LONG_NAME, text)
        start = {"id": "start", "kind": "entrypoint"}
        running.call("POST", "/workflows", {"name": "weekly-report-of-tickets", "nodes": [start], "edges": []})
        yield running


def at(browser: Browser, service: Service, width: int) -> Person:
    somebody = Person(browser, service.url, width=width)
    somebody.sign_in(service.key)
    return somebody


def width_of(page: Page) -> int:
    width: int = page.evaluate("document.documentElement.scrollWidth")
    return width


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_and_words_make_no_page_wider_than_its_screen(
    browser: Browser, service: Service, width: int
) -> None:
    somebody = at(browser, service, width)
    other, long = service.call("GET", "/runs")["data"]
    for path in (
        "/console/runs",
        f"/console/compare?run={other['id']}&run={long['id']}",
        f"/console/compare?run={long['id']}",
        f"/console/runs/{long['id']}",
        f"/console/chat/{long['thread_id']}",
        f"/console/threads/{long['thread_id']}",
    ):
        somebody.go(path)
        expect(somebody.page.locator(".htmx-request")).to_have_count(0)
        assert width_of(somebody.page) <= width, path
    assert somebody.complaints == []
    somebody.page.context.close()


def test_the_button_that_saves_a_workflow_stands_at_the_right_beside_the_verdict(
    browser: Browser, service: Service
) -> None:
    somebody = at(browser, service, 1440)
    somebody.go("/console/workflows/weekly-report-of-tickets/edit")
    verdict = somebody.page.locator("#verdict")
    expect(verdict).to_have_text("valid")
    save = somebody.page.get_by_role("button", name="Save as version 2")
    for width in range(1440, 800, -40):
        somebody.page.set_viewport_size({"width": width, "height": 800})
        told, button, form = verdict.bounding_box(), save.bounding_box(), somebody.page.locator("#form").bounding_box()
        assert told
        assert button
        assert form
        assert abs(button["x"] + button["width"] - form["x"] - form["width"]) < 2, width
        assert abs(button["y"] + button["height"] / 2 - told["y"] - told["height"] / 2) < 4, width
    somebody.page.context.close()


def test_runs_that_are_not_chosen_are_not_asked_about(browser: Browser, service: Service) -> None:
    somebody = at(browser, service, 1280)
    page = somebody.page
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", stay)
    somebody.go("/console/runs")
    page.get_by_role("button", name="Retry the chosen").click()
    expect(page.locator("#flash")).to_contain_text("Nothing is chosen")
    assert asked == []
    page.get_by_label("Choose Count the apples.").check()
    with page.expect_event("dialog"):
        page.get_by_role("button", name="Retry the chosen").click()
    assert asked == ["Retry the chosen runs?"]
    assert somebody.complaints == []
    somebody.page.context.close()


def test_the_way_back_leads_to_a_list_whose_filters_are_those_of_its_address(
    browser: Browser, service: Service
) -> None:
    somebody = at(browser, service, 1280)
    page = somebody.page
    somebody.go("/console/runs")
    page.get_by_label("State").select_option("failed")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("No runs here.")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("link", name="Count the apples.")).to_be_visible()
    expect(page.get_by_label("State")).to_have_value("")
    assert somebody.complaints == []
    somebody.page.context.close()
