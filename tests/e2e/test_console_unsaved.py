"""Edits that were not saved, in a real browser: it asks before they are lost, and only then."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from tests.e2e.browser import Person, browsing, needs_browser
from tests.e2e.service import Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser(), pytest.mark.requirement("U6")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("unsaved") / "home") as running:
        running.agent("guide", running.script("talker", a_turn("Hello.")))
        yield running


class Asked:
    """What the browser asked a person, who stays on the page."""

    def __init__(self, page: Page) -> None:
        self._kinds: list[str] = []
        page.on("dialog", self._stay)

    def _stay(self, dialog: Dialog) -> None:
        self._kinds.append(dialog.type)
        dialog.dismiss()

    def taken(self) -> list[str]:
        kinds, self._kinds = self._kinds, []
        return kinds


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    # A refused form is an answer of its own, of which Chromium tells beside the page.
    assert [told for told in somebody.complaints if "status of 422" not in told] == []
    somebody.page.context.close()


def leave(page: Page) -> None:
    page.get_by_role("link", name="Overview", exact=True).click()


def test_the_form_of_an_agent_is_not_left_with_changes_without_a_question(person: Person) -> None:
    page, asked = person.page, Asked(person.page)
    person.go("/console/agents/new")
    name = page.get_by_label("Name", exact=True)
    name.fill("writer")
    leave(page)
    expect(name).to_have_value("writer")
    assert asked.taken() == ["beforeunload"]
    page.get_by_label("Model", exact=True).fill("nobody")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_label("Model", exact=True)).to_have_attribute("aria-invalid", "true")
    leave(page)
    expect(name).to_have_value("writer")
    assert asked.taken() == ["beforeunload"]
    page.get_by_label("Model", exact=True).fill("scripted:talker.yaml")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("heading", name="Agent writer").wait_for()
    page.get_by_role("link", name="Edit").first.click()
    name.fill("reader")
    name.fill("writer")  # as it was
    leave(page)
    page.get_by_role("heading", name="Overview").wait_for()
    assert asked.taken() == []


def test_the_editor_of_a_workflow_is_not_left_with_changes_without_a_question(person: Person) -> None:
    page, asked = person.page, Asked(person.page)
    person.go("/console/workflows/new")
    expect(page.locator("#verdict")).to_have_text("valid")
    page.get_by_role("group", name="Add a node").get_by_role("button", name="Transform").click()
    leave(page)
    expect(page.get_by_role("heading", name="New workflow")).to_be_visible()
    assert asked.taken() == ["beforeunload"]
    page.get_by_role("button", name="Undo").click()
    page.get_by_label("Name", exact=True).fill("short")
    expect(page.locator("#verdict")).to_have_text("valid")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="Workflow short").wait_for()
    page.get_by_role("link", name="Edit").click()
    expect(page.locator("#verdict")).to_have_text("valid")
    leave(page)
    page.get_by_role("heading", name="Overview").wait_for()
    assert asked.taken() == []


def test_settings_that_are_saved_are_left_without_a_question(person: Person) -> None:
    page, asked = person.page, Asked(person.page)
    person.go("/console/settings")
    page.get_by_label("Retention of runs (days)").fill("30")
    leave(page)
    expect(page.get_by_label("Retention of runs (days)")).to_have_value("30")
    assert asked.taken() == ["beforeunload"]
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("It is in effect.")).to_be_visible()
    leave(page)
    page.get_by_role("heading", name="Overview").wait_for()
    assert asked.taken() == []
