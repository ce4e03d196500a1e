"""Shortcuts of the keyboard on every page of the console, and what is said once something was
changed."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser(), pytest.mark.requirement("U6")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("keys") / "home") as running:
        running.agent("librarian", running.script("librarian", a_turn("Hello.")))
        running.agent("gardener", running.script("gardener", a_turn("Hello.")))
        running.run("librarian", "Where is the atlas?")
        running.run("librarian", "And the globe?")
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    assert somebody.complaints == []
    somebody.page.context.close()


def test_letters_lead_to_pages_and_through_their_lists(person: Person) -> None:
    page = person.page
    page.clock.set_fixed_time(datetime.now(UTC))  # two letters belong together for a moment only
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="And the globe?")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")  # the last one stays
    expect(page.get_by_role("link", name="Where is the atlas?")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="And the globe?")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("/")
    expect(page.get_by_role("dialog", name="Palette")).to_be_visible()


def test_letters_are_text_where_one_writes(person: Person) -> None:
    page = person.page
    person.go("/console/runs")
    page.keyboard.press("/")
    text = page.get_by_label("Text", exact=True)
    expect(text).to_be_focused()
    page.keyboard.type("gi?j")
    expect(text).to_have_value("gi?j")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_list_of_shortcuts_switches_them_off_for_this_browser(
    browser: Browser, service: Service, width: int, *, dark: bool
) -> None:
    somebody = Person(browser, service.url, width=width, dark=dark)
    somebody.sign_in(service.key)
    page = somebody.page
    page.keyboard.press("?")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shortcuts).to_contain_text("the search of the page")
    assert not AXE.exists() or somebody.violations() == []
    page.get_by_label("Shortcuts of single letters").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(shortcuts).to_be_hidden()
    somebody.go("/console/agents")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="gardener")).not_to_be_focused()
    page.keyboard.press("Control+k")  # with a modifier: not one of them
    expect(page.get_by_role("dialog", name="Palette")).to_be_visible()
    page.keyboard.type("keyboard")
    page.get_by_role("dialog", name="Palette").get_by_role("link", name="Keyboard shortcuts").click()
    page.get_by_label("Shortcuts of single letters").check()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="gardener")).to_be_focused()
    assert somebody.complaints == []
    page.context.close()


def test_what_was_changed_is_said_until_it_is_dismissed_on_the_page_that_follows(
    person: Person, service: Service
) -> None:
    page = person.page
    agent = service.call("GET", "/agents/gardener")["id"]
    person.go(f"/console/agents/{agent}")
    page.on("dialog", lambda dialog: dialog.accept())
    said = page.locator("#toasted")
    page.get_by_role("button", name="Disable").click()
    expect(said).to_have_text("×The agent is disabled.")
    page.wait_for_load_state()
    assert not AXE.exists() or person.violations() == []
    page.get_by_role("button", name="Enable").click()
    expect(said).to_have_text("×The agent is enabled.")
    page.get_by_role("button", name="Dismiss").click()
    expect(said).to_be_empty()
    page.reload()
    expect(said).to_be_empty()
