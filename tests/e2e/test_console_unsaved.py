"""Edits that were not saved, in a real browser: it asks before they are lost, and only then."""

import re
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
    """What the browser asked a person, who stays on the page, or leaves it without `stays`."""

    def __init__(self, page: Page) -> None:
        self.stays = True
        self._kinds: list[str] = []
        page.on("dialog", self._answer)

    def _answer(self, dialog: Dialog) -> None:
        self._kinds.append(dialog.type)
        if self.stays:
            dialog.dismiss()
        else:
            dialog.accept()

    def taken(self) -> list[str]:
        kinds, self._kinds = self._kinds, []
        return kinds


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    # Answers to forms that are not saved, of which Chromium tells beside the page.
    refusals = ("status of 422", "status of 412")
    assert [told for told in somebody.complaints if not any(refusal in told for refusal in refusals)] == []
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
    page.get_by_label("Model", exact=True).fill("unknown")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_label("Model", exact=True)).to_have_attribute("aria-invalid", "true")
    leave(page)
    expect(name).to_have_value("writer")
    assert asked.taken() == ["beforeunload"]
    page.get_by_label("Model", exact=True).fill("scripted:talker.yaml")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("heading", name="Agent writer").wait_for()
    page.get_by_role("link", name="Edit").first.click()
    page.wait_for_url("**/edit")
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


def test_a_field_of_a_node_that_is_being_edited_is_a_change(person: Person) -> None:
    page, asked = person.page, Asked(person.page)
    person.go("/console/workflows/new")
    expect(page.locator("#verdict")).to_have_text("valid")
    page.get_by_role("group", name="Add a node").get_by_role("button", name="Transform").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="start").click()
    page.get_by_label("Id", exact=True).fill("begin")
    with page.expect_event("dialog"):
        page.evaluate("setTimeout(() => location.reload())")
    expect(page.get_by_label("Id", exact=True)).to_be_focused()
    assert asked.taken() == ["beforeunload"]


def test_changes_that_were_given_up_are_not_there_on_the_way_back(person: Person, service: Service) -> None:
    page, asked = person.page, Asked(person.page)
    service.agent("editor", "scripted:talker.yaml")
    person.go("/console/agents/editor/edit")
    name = page.get_by_label("Name", exact=True)
    name.fill("lector")
    page.get_by_label("Instructions").fill("Read.")
    asked.stays = False
    leave(page)
    page.get_by_role("heading", name="Overview").wait_for()
    assert asked.taken() == ["beforeunload"]
    page.go_back()
    expect(name).to_have_value("editor")
    expect(page.get_by_label("Instructions")).to_have_value("")
    leave(page)
    page.get_by_role("heading", name="Overview").wait_for()
    assert asked.taken() == []


def test_a_form_whose_session_has_ended_is_not_left_without_a_question(person: Person) -> None:
    page, asked = person.page, Asked(person.page)
    person.go("/console/settings")
    page.get_by_label("Retention of runs (days)").fill("31")
    page.context.clear_cookies()
    with page.expect_event("dialog"):
        page.get_by_role("button", name="Save").click()
    assert asked.taken() == ["beforeunload"]
    expect(page.get_by_label("Retention of runs (days)")).to_have_value("31")
    expect(page.get_by_role("button", name="Save")).to_be_enabled()


def test_a_link_that_discards_changes_in_another_tab_leaves_them_here(person: Person, service: Service) -> None:
    page, asked = person.page, Asked(person.page)
    person.go("/console/settings")
    page.get_by_label("Retention of runs (days)").fill("32")
    service.call("PATCH", "/organization", {"retention_days": 33})
    page.get_by_role("button", name="Save").click()
    discard = page.get_by_role("link", name="discard your changes")
    with page.context.expect_page() as opened:
        discard.click(modifiers=["Control"])
    opened.value.close()
    leave(page)
    expect(page.get_by_label("Retention of runs (days)")).to_have_value("32")
    assert asked.taken() == ["beforeunload"]
    discard.click()
    expect(page.get_by_label("Retention of runs (days)")).to_have_value("33")
    assert asked.taken() == []


def test_the_form_of_a_server_is_left_without_a_question_where_nothing_was_typed(person: Person) -> None:
    page, asked = person.page, Asked(person.page)
    person.go("/console/servers-new?kind=python")
    variables = page.get_by_role("group", name="Environment")
    names = variables.get_by_label("Name", exact=True)

    def add_another() -> None:
        before = names.count()
        variables.get_by_role("button", name="Add another").click()
        expect(names).to_have_count(before + 1)

    add_another()
    leave(page)
    page.get_by_role("heading", name="Overview").wait_for()
    assert asked.taken() == []
    page.go_back()
    add_another()
    names.last.fill("TOKEN")
    leave(page)
    expect(names.last).to_have_value("TOKEN")
    assert asked.taken() == ["beforeunload"]


def test_a_server_that_is_saved_is_left_without_a_question(person: Person) -> None:
    page, asked = person.page, Asked(person.page)
    person.go("/console/servers-new?kind=http")
    page.locator("#slug").fill("Not a slug")
    page.locator("#url").fill("http://127.0.0.1:9/mcp")
    page.get_by_role("button", name="Add the server").click()
    expect(page.locator("#slug")).to_have_attribute("aria-invalid", "true")
    leave(page)
    expect(page.locator("#slug")).to_have_value("Not a slug")
    assert asked.taken() == ["beforeunload"]
    page.locator("#slug").fill("plain")
    page.get_by_role("button", name="Add the server").click()
    page.wait_for_url("**/console/servers/plain")
    assert asked.taken() == []


@pytest.fixture(scope="module")
def stored(service: Service) -> dict[str, str]:
    """Addresses of the pages of a schedule, an identity provider, a model provider and roles."""
    call = service.call
    service.agent("clerk", "scripted:talker.yaml")
    schedule = call("POST", "/schedules", {"name": "daily", "agent": "clerk", "cron": "0 8 * * *", "input": "Go"})
    rules = [{"claim": "groups", "value": "agents", "role": "operator"}]
    provider = {"name": "login", "issuer": "https://login.example.com", "client_id": "dragoman", "rules": rules}
    ids = call("POST", "/identity-providers", provider)
    call("POST", "/model-providers", {"name": "local", "kind": "openai", "base_url": "http://127.0.0.1:9/v1"})
    call("POST", "/roles", {"name": "auditor", "description": "Reads", "permissions": []})
    return {
        "schedule": f"/console/schedules/{schedule['id']}",
        "identity provider": f"/console/settings/identity-providers/{ids['id']}",
        "model provider": "/console/settings/model-providers/local",
        "role": "/console/people/roles",
    }


@pytest.mark.parametrize(
    ("form", "label", "changed"),
    [
        ("schedule", "Cron expression", "0 9 * * *"),
        ("identity provider", "Client id", "other"),
        ("model provider", "Address", "http://127.0.0.1:10/v1"),
        ("role", "Description", "Reads all"),
    ],
)
def test_what_was_changed_is_not_lost_and_what_was_saved_asks_nothing(
    person: Person, stored: dict[str, str], form: str, label: str, changed: str
) -> None:
    page, asked = person.page, Asked(person.page)
    person.go(stored[form])
    if form == "role":
        page.get_by_text("auditor").first.click()
    field = page.get_by_label(label, exact=True).first
    field.fill(changed)
    leave(page)
    expect(field).to_have_value(changed)
    assert asked.taken() == ["beforeunload"]
    page.get_by_role("button", name=re.compile("^Save( auditor)?$")).click()
    saved = page.get_by_text(re.compile("^Saved "))
    expect(saved.or_(page.get_by_role("heading", name="Schedules")).first).to_be_visible()
    leave(page)
    page.get_by_role("heading", name="Overview").wait_for()
    assert asked.taken() == []
