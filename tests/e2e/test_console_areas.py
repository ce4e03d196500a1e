"""Schedules, threads, gateway sessions, budgets and decided approvals in a real browser, readable
by everybody."""

from collections.abc import Iterator

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
    with serving(tmp_path_factory.mktemp("areas") / "home", OPENAI_API_KEY="unused") as running:
        running.agent("guide", running.script("guide", a_turn("Hello.")))
        running.agent("paid", "openai:gpt-4o-mini", daily_budget_usd=1)
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    somebody.page.on("dialog", lambda dialog: dialog.accept())
    yield somebody
    assert somebody.complaints == []
    somebody.page.context.close()


def test_a_schedule_is_made_with_its_next_times_and_paused(person: Person) -> None:
    page = person.page
    person.follow("Schedules", "/console/schedules")
    page.get_by_label("Name", exact=True).fill("daily")
    page.get_by_label("Cron expression").fill("every day")
    page.get_by_label("Message to the agent").fill("Good morning")
    page.get_by_role("button", name="Create schedule").click()
    expect(page.get_by_label("Cron expression")).to_have_attribute("aria-invalid", "true")
    person.complaints.clear()  # the browser notes the refusal
    page.get_by_label("Cron expression").fill("0 8 * * *")
    page.get_by_role("button", name="Create schedule").click()
    row = page.get_by_role("region", name="Schedules").get_by_role("row").filter(has_text="daily")
    expect(row.get_by_role("listitem")).to_have_count(5)
    page.wait_for_load_state()  # its scripts have run
    page.get_by_role("button", name="Pause daily").click()
    expect(row).to_contain_text("paused")


def test_a_gateway_session_is_opened_with_the_configuration_of_a_client(person: Person) -> None:
    page = person.page
    person.follow("Gateway", "/console/gateway")
    page.get_by_role("button", name="Open session").click()
    token = page.get_by_label("Token. It is shown only once").input_value()
    page.get_by_text("cursor", exact=True).click()
    expect(page.get_by_label("Configuration of cursor", exact=True)).to_contain_text(token)
    if AXE.exists():
        assert person.violations() == []


def test_a_file_of_a_thread_is_added_and_all_runs_are_stopped(person: Person, service: Service) -> None:
    page = person.page
    service.run("guide", "Greet the file.")
    person.follow("Threads", "/console/threads")
    page.get_by_role("link", name="Files of Greet the file.").click()
    page.wait_for_url("**/console/threads/*")
    page.get_by_label("File", exact=True).set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"apples: 42"}
    )
    page.get_by_role("button", name="Add the file").click()
    expect(page.get_by_role("link", name="notes.txt")).to_be_visible()
    person.go("/console/runs")
    page.get_by_role("button", name="Stop all runs").click()
    expect(page.locator("#bulk")).to_contain_text("0 cancelled")


def test_runs_are_chosen_and_cancelled_together(person: Person, service: Service) -> None:
    page = person.page
    service.run("guide", "Choose me.")
    person.go("/console/runs?text=choose")
    page.get_by_label("Choose all").check()
    page.get_by_role("button", name="Retry the chosen").click()
    expect(page.locator("#bulk")).to_contain_text("only a failed run can be retried")
    expect(page.get_by_label("Text")).to_have_value("choose")
