"""The console in a real browser, over a real service."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser()]

CALL = ("code_execution", {"code": "print(6 * 7)"})
ASKS = {"code_execution": {"decision": "require_approval", "allow_self_approval": True}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("console") / "home") as running:
        turns = (a_turn("Let me work that out.", CALL), a_turn("It is 42, and <b>this</b> is not markup."))
        running.agent("asker", running.script("asker", *turns), tools=["code_execution"], tool_policies=ASKS)
        running.agent("talker", running.script("talker", a_turn("Hello."), a_turn("Hello again.")))
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    assert somebody.complaints == []
    somebody.page.context.close()


@pytest.mark.requirement("C3")
def test_a_live_run_is_approved_in_another_session_and_goes_on_before_both(
    person: Person, browser: Browser, service: Service
) -> None:
    person.go("/console/playground")
    person.page.get_by_label("Agent").select_option(label="asker · scripted:asker.yaml")
    person.page.get_by_label("Message").fill("What is 6 * 7?")
    person.page.get_by_role("button", name="Start a run").click()
    watched = person.page
    expect(watched.locator("#timeline")).to_contain_text("Waiting for a person: code_execution")
    expect(watched.locator("#status")).to_have_text("waiting for a person")

    second = Person(browser, service.url)
    second.sign_in(service.key)
    second.go("/console/approvals")
    expect(second.page.get_by_label("code", exact=True)).to_have_value("print(6 * 7)")
    second.page.get_by_text("As JSON").click()
    expect(second.page.get_by_label("Arguments as JSON")).to_have_text('{\n  "code": "print(6 * 7)"\n}')
    second.page.get_by_role("button", name="Approve").click()
    expect(second.page.locator("#decided")).to_contain_text("approved")
    expect(second.page.get_by_role("button", name="Approve")).to_have_count(0)

    expect(watched.locator("#timeline")).to_contain_text("It is 42, and <b>this</b> is not markup.")
    expect(watched.locator("#status")).to_have_text("completed")
    expect(watched.locator("#connection")).to_have_text("Ended: completed")
    watched.get_by_text("Tool calls in the audit trail").click()
    expect(watched.get_by_role("region", name="Tool calls")).to_contain_text("tool.executed")
    assert second.complaints == []
    second.page.context.close()


@pytest.mark.requirement("C3")
def test_a_call_is_denied_on_the_page_of_its_run_and_the_model_is_told(person: Person, service: Service) -> None:
    run = service.start_run("asker")
    person.go(f"/console/runs/{run}")
    person.page.get_by_label("Reason").fill("Not on a Sunday.")
    person.page.get_by_role("button", name="Deny").click()
    expect(person.page.locator("#status")).to_have_text("completed")
    expect(person.page.locator("#timeline")).to_contain_text("blocked")
    transcript = service.call("GET", f"/runs/{run}/wait")["messages"]
    assert "Not on a Sunday." in str(transcript)


def test_one_talks_on_with_an_agent_on_the_thread_of_a_run(person: Person) -> None:
    person.go("/console/playground?agent=talker")
    person.page.get_by_label("Message").fill("Hi.")
    person.page.get_by_role("button", name="Start a run").click()
    expect(person.page.locator("#connection")).to_have_text("Ended: completed")
    first = person.page.url
    more = person.page.get_by_label("Reply")
    more.fill("And again.")
    for _ in range(2):  # renewed by itself when a run changes, at any moment
        person.renew("#state", "run-changed")
        expect(more).to_have_value("And again.")
        expect(more).to_be_focused()
    person.page.get_by_role("button", name="Send").click()
    person.page.wait_for_url(lambda url: url != first)
    expect(person.page.locator("#connection")).to_have_text("Ended: completed")


def test_a_double_click_starts_one_run_and_no_click_another_while_the_page_is_left(
    person: Person, service: Service
) -> None:
    agent = service.agent("once", service.script("once", a_turn("Once.")))["id"]
    person.go("/console/playground?agent=once")
    page = person.page
    page.get_by_label("Message").fill("Hi.")
    start = page.get_by_role("button", name="Start a run")
    page.route("**/console/runs/run_*", lambda route: route.fulfill(status=204))  # the browser stays on this page
    with page.expect_request("**/console/runs/run_*"):
        start.dblclick()
    expect(start).to_be_disabled()
    assert [run["agent_id"] for run in service.call("GET", "/runs")["data"]].count(agent) == 1


def test_a_double_click_makes_one_key_whose_token_is_shown(person: Person, service: Service) -> None:
    person.go("/console/keys")
    person.page.get_by_label("Name", exact=True).fill("clicked-twice")
    person.page.get_by_role("button", name="Create key").dblclick()
    expect(person.page.get_by_label("Token. It is shown")).to_have_value(re.compile("^dgm_"))
    expect(person.page.get_by_role("row").filter(has_text="clicked-twice")).to_have_count(1)
    names = [key["name"] for key in service.call("GET", "/api-keys")["data"]]
    assert names.count("clicked-twice") == 1


def test_what_is_typed_into_an_approval_and_what_is_unfolded_stays_when_the_page_renews_itself(
    person: Person, service: Service
) -> None:
    run = service.start_run("asker")
    person.go(f"/console/runs/{run}")
    page, edited = person.page, "print(1)"
    page.get_by_label("code", exact=True).fill(edited)
    page.get_by_label("Reason").fill("Because.")
    person.renew("#state", "run-changed")
    expect(page.get_by_label("code", exact=True)).to_have_value(edited)
    expect(page.get_by_label("Reason")).to_have_value("Because.")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#status")).to_have_text("completed")
    page.get_by_text("Tool calls in the audit trail").click()
    person.renew("#state", "run-changed")
    expect(page.get_by_role("region", name="Tool calls")).to_contain_text("tool.executed")
    [approval] = service.call("GET", f"/approvals?run_id={run}")["data"]
    assert approval["edited_arguments"] == {"code": edited}


def test_approvals_that_come_later_leave_what_is_typed_into_others(person: Person, service: Service) -> None:
    first = service.start_run("asker")
    person.go("/console/approvals")
    mine = person.page.locator("form", has=link_to(person, first)).get_by_label("Reason")
    mine.fill("Not yet.")
    second = service.start_run("asker")
    expect(link_to(person, second)).to_be_visible()
    expect(mine).to_have_value("Not yet.")
    expect(mine).to_be_focused()
    for run in (first, second):
        service.call("POST", f"/runs/{run}/cancel")
        expect(link_to(person, run)).to_have_count(0)


def link_to(person: Person, run: str) -> Locator:
    return person.page.locator(f'a[href="/console/runs/{run}"]')


def test_a_run_is_cancelled_on_its_page(person: Person, service: Service) -> None:
    run = service.start_run("asker")
    person.go(f"/console/runs/{run}")
    person.page.on("dialog", lambda dialog: dialog.accept())
    person.page.get_by_role("button", name="Cancel the run").click()
    expect(person.page.locator("#status")).to_have_text("cancelled")
    expect(person.page.locator("#timeline")).to_contain_text("Cancelled")


@pytest.mark.skipif(not AXE.exists(), reason="needs `make node`")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_the_sign_in_and_a_run_that_waits_can_be_read_in_both_themes_and_on_a_phone(
    *, browser: Browser, service: Service, width: int, dark: bool
) -> None:
    run = service.start_run("asker")
    person = Person(browser, service.url, width=width, dark=dark)
    person.go("/console")
    assert person.violations() == []
    person.sign_in(service.key)
    person.go(f"/console/runs/{run}")
    expect(person.page.locator("#timeline")).to_contain_text("Waiting for a person")
    assert person.violations() == []
    assert person.page.evaluate("document.documentElement.scrollWidth") <= width
    assert person.complaints == []
    person.page.context.close()


def test_the_way_through_by_keyboard_alone(browser: Browser, service: Service) -> None:
    somebody = Person(browser, service.url)
    somebody.go("/console")
    expect(somebody.page.get_by_label("API key")).to_be_focused()
    somebody.page.keyboard.type(service.key)
    somebody.page.keyboard.press("Enter")
    somebody.page.get_by_role("heading", name="Overview").wait_for()
    somebody.page.keyboard.press("Tab")
    expect(somebody.page.get_by_role("link", name="Skip to content")).to_be_focused()
    somebody.page.keyboard.press("Enter")
    expect(somebody.page.locator("#main")).to_be_focused()
    somebody.page.context.close()


@pytest.mark.requirement("E3")
def test_a_page_goes_on_after_the_service_was_killed_and_started_again(browser: Browser, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as first:
        turns = (a_turn("Let me see.", CALL), a_turn("It is 42."))
        first.agent("asker", first.script("asker", *turns), tools=["code_execution"], tool_policies=ASKS)
        run = first.start_run("asker")
        somebody = Person(browser, first.url)
        somebody.sign_in(first.key)
        somebody.go(f"/console/runs/{run}")
        expect(somebody.page.locator("#timeline")).to_contain_text("Waiting for a person")
        port = first.url.rpartition(":")[2]
        os.killpg(first.process.pid, signal.SIGKILL)
        first.process.wait()
    expect(somebody.page.locator("#connection")).to_contain_text("Trying again")
    with serving(home, DRAGOMAN_PORT=port) as second:
        expect(somebody.page.locator("#connection")).to_have_text("Live")
        approval = second.call("GET", "/approvals?state=pending")["data"][0]["id"]
        second.call("POST", f"/approvals/{approval}", {"decision": "approve"})
        expect(somebody.page.locator("#timeline")).to_contain_text("It is 42.")
        expect(somebody.page.get_by_text("Let me see.")).to_have_count(1)
    somebody.page.context.close()
