"""Pages by which a company is operated: everybody can read them, in light and dark, at three
widths."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import ISOLATED_PYTHON, SERVERS
from tests.e2e.small_company import Company, small_company

pytestmark = [pytest.mark.timeout(300), needs_browser(), pytest.mark.requirement("U6")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with small_company(tmp_path_factory.mktemp("operating")) as opened:
        yield opened


def try_a_tool(page: Page) -> None:
    page.get_by_label("words").fill("charged twice")
    page.get_by_role("button", name="Call the tool").click()
    expect(page.locator("#tried .status")).to_have_text("succeeded")


def see_the_calls(page: Page) -> None:
    expect(page.locator("#calls")).to_contain_text("Used by")


def compare_two(page: Page) -> None:
    page.get_by_label("Choose How many tickets are open?").check()
    page.get_by_label("Choose And last week?").check()
    page.get_by_role("button", name="Compare two").click()
    expect(page.get_by_role("heading", name="Steps")).to_be_visible()


def see_what_waits(page: Page) -> None:
    for kind in ("approval", "tool in quarantine", "to do", "workflow question"):
        row = page.locator(".items li", has=page.get_by_text(kind, exact=True)).first
        row.get_by_role("link").click()
        expect(page.locator("#detail .status").first).to_have_text(kind)


def see_the_charts(page: Page) -> None:
    expect(page.get_by_role("img", name="Runs by hour: at most")).to_be_visible()
    expect(page.get_by_role("img", name="Duration of runs: at most")).to_be_visible()
    expect(page.get_by_role("img", name="Cost by day: at most")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("for operators")


def see_the_usage(page: Page) -> None:
    expect(page.get_by_role("img", name="Cost by day: at most")).to_be_visible()
    expect(page.get_by_role("region", name="Calls by tool")).to_be_visible()


Steps = Callable[[Page], None]
PAGES: dict[str, tuple[str, Steps]] = {
    "overview": ("/console", see_the_charts),
    "usage": ("/console/usage?split=agent", see_the_usage),
    "trial": ("/console/servers/tickets/try?tool=find_ticket", try_a_tool),
    "inbox": ("/console/inbox", see_what_waits),
    "comparison": ("/console/runs", compare_two),
    "server": ("/console/servers/tickets", see_the_calls),
}


def test_keys_lead_through_the_inbox_and_decide_and_the_next_item_opens(browser: Browser, company: Company) -> None:
    service = company.service
    runs = []
    for number in (1, 2):  # one after the other: the list is in the order of the approvals
        runs.append(service.start_run("refunds", f"Pay back order {number}."))
        service.call("GET", f"/runs/{runs[-1]}/wait")
    first, second = runs
    person = Person(browser, service.url)
    person.sign_in(service.key)
    page = person.page
    asked = {each["run_id"]: each["id"] for each in service.call("GET", "/approvals?state=pending")["data"]}
    person.go(f"/console/inbox?item=approval:{asked[first]}")
    detail = page.locator("#detail")
    expect(detail).to_contain_text("Pay back order 1.")
    page.keyboard.press("j")
    expect(detail).to_contain_text("Pay back order 2.")
    page.keyboard.press("k")
    expect(detail).to_contain_text("Pay back order 1.")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/inbox/detail*", hold)
    page.wait_for_load_state("networkidle")
    page.locator("[aria-current=true]").focus()
    with page.expect_request("**/inbox/detail*"):
        page.keyboard.press("j")
    page.keyboard.press("a")  # the next one is chosen, and not shown yet
    for each in held:
        each.continue_()
    page.unroute("**/inbox/detail*")
    expect(detail).to_contain_text("Pay back order 2.")
    page.locator("[aria-current=true]").evaluate(
        "row => row.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', repeat: true, bubbles: true}))"
    )
    page.keyboard.press("k")
    expect(detail).to_contain_text("Pay back order 1.")
    waiting = {each["run_id"] for each in service.call("GET", "/approvals?state=pending")["data"]}
    assert waiting >= {first, second}
    detail.get_by_label("Reason").fill("adjk")  # keys write where one writes
    page.locator("[aria-current=true]").focus()
    page.keyboard.press("d")
    expect(page.locator("#decided")).to_contain_text("denied")
    expect(detail).to_contain_text("Pay back order 2.")
    page.keyboard.press("a")
    expect(page.locator("#decided")).to_contain_text("approved")
    states = {each["run_id"]: each for each in service.call("GET", "/approvals")["data"]}
    assert (states[first]["state"], states[first]["reason"]) == ("denied", "adjk")
    assert (states[second]["state"], states[second]["edited_arguments"]) == ("approved", None)
    assert person.complaints == []
    page.context.close()


def test_a_ticked_box_stays_with_its_item_and_not_with_a_tool_that_changed(
    browser: Browser, company: Company, tmp_path: Path
) -> None:
    service, said = company.service, tmp_path / "description"
    said.write_text("Looks around.", encoding="utf-8")
    service.server("watch", *ISOLATED_PYTHON, str(SERVERS / "changing_server.py"), str(said))

    def change(description: str) -> None:
        said.write_text(description, encoding="utf-8")
        service.call("POST", "/mcp-servers/watch/refresh")

    change("Looks around.")
    change("Looks around here.")
    for number in (4, 5):
        service.call("GET", f"/runs/{service.start_run('refunds', f'Pay back order {number}.')}/wait")
    newest, older = [each["id"] for each in service.call("GET", "/approvals?state=pending")["data"]][:2]
    person = Person(browser, service.url)
    person.sign_in(service.key)
    page = person.page
    person.go("/console/inbox")
    leaves, stays = (page.locator(f'[name=item][value="approval:{each}"]') for each in (older, newest))
    tool = page.get_by_label("Choose look: tool of the MCP server watch")
    stays.check()
    tool.check()
    service.call("POST", f"/approvals/{older}", {"decision": "deny"})
    change("Looks around everywhere.")
    expect(leaves).to_have_count(0)
    expect(tool).not_to_be_checked()
    expect(stays).to_be_checked()
    expect(page.locator("[name=item]:checked")).to_have_count(1)
    service.call("POST", f"/approvals/{newest}", {"decision": "deny"})
    service.call("PATCH", "/mcp-servers/watch", {"enabled": False})
    assert person.complaints == []
    page.context.close()


@pytest.mark.skipif(not AXE.exists(), reason="needs `make node`")
@pytest.mark.parametrize(("width", "dark"), [(1280, True), (820, False), (390, True)])
def test_pages_of_operation_can_be_read_once_they_are_used(
    *, browser: Browser, company: Company, width: int, dark: bool
) -> None:
    person = Person(browser, company.service.url, width=width, dark=dark)
    person.sign_in(company.service.key)
    for name, (path, steps) in PAGES.items():
        person.go(path)
        steps(person.page)
        assert person.violations() == [], name
        assert person.page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the screen"
    assert person.complaints == []
    person.page.context.close()


# The last one: the tool does not wait after it.
def test_a_tool_is_rejected_by_a_key_and_the_history_says_by_whom(browser: Browser, company: Company) -> None:
    company.service.start_run("refunds", "Pay back order 3.")
    person = Person(browser, company.service.url)
    person.sign_in(company.service.key)
    page = person.page
    person.go("/console/inbox?item=tool:catalog:look")
    detail = page.locator("#detail")
    detail.get_by_label("Reason, if you reject it").fill("Who needs it?")
    page.locator(".items [aria-current=true]").focus()
    page.keyboard.press("d")
    expect(page.locator("#decided")).to_contain_text("look: rejected")
    person.go("/console/inbox/decided?kind=tool")
    row = page.get_by_role("row", name="look")
    expect(row).to_contain_text("rejected")
    expect(row).to_contain_text("Who needs it?")
    expect(row.locator("time")).to_have_text(re.compile("just now|min ago"))
    person.go("/console/inbox")
    expect(page.locator(".items .due").first).to_have_text(re.compile(r"ends in 2[34] h"))
    person.go("/console/servers/catalog")
    page.get_by_text("Rejected (1)").click()
    page.get_by_role("button", name="Approve look after all").click()
    expect(page.get_by_text("Rejected (1)")).to_have_count(0)
    tools = company.service.call("GET", "/mcp-servers/catalog/tools")["data"]
    assert [tool["state"] for tool in tools if tool["name"] == "look"] == ["approved"]
    assert person.complaints == []
    page.context.close()
