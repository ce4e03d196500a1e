"""What surrounds every page of the console: the sidebar, who is signed in, times, messages, a lost
connection."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.processes import until
from tests.e2e.service import Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser(), pytest.mark.requirement("U6")]

CALL = ("code_execution", {"code": "print(6 * 7)"})
ASKS = {"code_execution": {"decision": "require_approval", "allow_self_approval": True}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("frame") / "home") as running:
        running.agent("asker", running.script("asker", a_turn("", CALL)), tools=["code_execution"], tool_policies=ASKS)
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    somebody.page.context.close()


def test_the_sidebar_has_three_groups_who_is_signed_in_and_a_badge_of_what_waits(
    person: Person, service: Service
) -> None:
    run = service.start_run("asker", "Work out the answer.")
    person.go(f"/console/runs/{run}")
    expect(person.page.locator("#timeline")).to_contain_text("Waiting for a person")
    person.go("/console/approvals")
    side = person.page.get_by_role("navigation", name="Main")
    for group, entry in (("Build", "Agents"), ("Operate", "Runs"), ("Govern", "Audit")):
        expect(side.get_by_role("list", name=group).get_by_role("link", name=entry, exact=True)).to_be_visible()
    expect(person.page.locator("#badge-inbox")).to_have_text("1 waiting")
    expect(person.page).to_have_title("(1) Approvals · Dragoman")
    expect(person.page.locator("#who")).to_contain_text(service.call("GET", "/organization")["name"])
    expect(person.page.get_by_role("main").get_by_role("link", name="Work out the answer.")).to_be_visible()
    person.page.get_by_role("button", name="Deny").click()
    expect(person.page.locator("#badge-inbox")).to_be_empty()
    expect(person.page).to_have_title("Approvals · Dragoman")


def test_times_are_relative_with_the_moment_as_their_title_and_lists_refresh_themselves(
    person: Person, service: Service
) -> None:
    person.go("/console/runs")
    service.call("POST", f"/runs/{service.start_run('asker', 'Appear by yourself.')}/cancel")
    row = person.page.get_by_role("row").filter(has_text="Appear by yourself.")
    expect(row).to_contain_text("cancelled")
    expect(row.locator("time")).to_have_text("just now")
    assert (row.locator("time").get_attribute("title") or "").endswith(" UTC")


def test_what_lasts_until_a_time_says_for_how_long(person: Person) -> None:
    person.go("/console/runs")
    shown = person.page.evaluate(
        """minutes => minutes.map(each => {
          const time = document.createElement("time");
          time.dataset.left = "";
          time.dateTime = new Date(Date.now() + each * 60000).toISOString();
          document.body.append(time);
          window.frame.tellTimes();
          return time.textContent;
        })""",
        [5, 0.5, -5],
    )
    assert shown == ["for another 5 min", "for less than a minute", "until 5 min ago"]


WITHOUT_CODE = """field => {
    field.required = false;
    field.value = "";
    field.form.querySelector("button[value=approve]").click();
}"""
"""Approves in one step: the list is renewed every few seconds, which makes the field required."""


def test_a_message_stays_until_it_is_dismissed_and_a_lost_connection_is_said(person: Person, service: Service) -> None:
    run = service.start_run("asker")
    page = person.page
    person.go("/console/approvals")
    form = page.locator("form.approval", has=page.locator(f'a[href="/console/runs/{run}"]'))
    form.get_by_label("code", exact=True).evaluate(WITHOUT_CODE)
    message = page.locator("#flash")
    expect(message).to_contain_text("do not fit the tool")
    expect(message).to_be_in_viewport()
    assert not AXE.exists() or person.violations() == []
    page.get_by_role("button", name="Dismiss").click()
    expect(message).to_be_empty()
    page.context.set_offline(True)
    expect(page.locator("#offline")).to_be_visible()
    form.get_by_role("button", name="Deny").click()
    expect(message).to_contain_text("The service cannot be reached.")
    page.context.set_offline(False)
    expect(page.locator("#offline")).to_be_hidden()
    form.get_by_role("button", name="Deny").click()
    expect(page.locator("#decided")).to_contain_text("denied")
    expect(message).to_be_empty()


def test_on_a_phone_the_sidebar_is_behind_a_button(browser: Browser, service: Service) -> None:
    somebody = Person(browser, service.url, width=390)
    somebody.sign_in(service.key)
    agents = somebody.page.get_by_role("link", name="Agents", exact=True)
    expect(agents).to_be_hidden()
    somebody.page.get_by_role("button", name="Menu").click()
    agents.click()
    expect(somebody.page.get_by_role("heading", name="Agents")).to_be_visible()
    assert somebody.complaints == []
    somebody.page.context.close()


RECORDED = """
    window.told = [];
    window.Notification = class extends window.Notification {
        constructor(title, options) { super(title, options); window.told.push(`${title}: ${options.body}`); }
    };
"""
"""Keeps what the browser's own notifications say."""


ONE_MORE = """
    document.querySelector("#who [data-waiting]").dataset.waiting = "2";
    document.dispatchEvent(new Event("htmx:after:swap"));
"""
"""One more waits, of a run that began before the newest."""


def test_a_table_wider_than_its_page_has_a_shade_where_more_is_hidden(browser: Browser, service: Service) -> None:
    service.start_run("asker", "Work out the answer.")
    somebody = Person(browser, service.url, width=700)
    somebody.sign_in(service.key)
    somebody.go("/console/runs")
    table = somebody.page.get_by_role("region", name="Runs", exact=True)
    rule = ".scroll table { visibility: hidden; width: 1000px; table-layout: fixed; }"  # the ground alone is compared
    somebody.page.evaluate(
        "rule => { const [sheet] = document.styleSheets; sheet.insertRule(rule, sheet.cssRules.length); }", rule
    )

    def sides() -> tuple[bytes, bytes]:
        box = table.bounding_box()
        assert box is not None
        left, right = (
            somebody.page.screenshot(clip={"x": x, "y": box["y"], "width": 6, "height": 20})
            for x in (box["x"], box["x"] + box["width"] - 6)
        )
        return left, right

    plain, shaded = sides()
    assert plain != shaded
    table.evaluate("each => { each.scrollLeft = each.scrollWidth; }")
    left, right = sides()
    assert right == plain
    assert left != plain
    assert somebody.complaints == []
    somebody.page.context.close()


def test_a_browser_tells_what_waits_once_a_person_has_switched_it_on(person: Person, service: Service) -> None:
    page = person.page
    service.call("POST", "/runs/cancel", {"agent_id": service.call("GET", "/agents/asker")["id"]})
    page.context.grant_permissions(["notifications"], origin=service.url)
    page.add_init_script(RECORDED)
    person.go("/console/inbox")
    switch = page.get_by_role("button", name="Notify me in this browser")
    expect(switch).to_have_attribute("aria-pressed", "false")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    person.go("/console/agents")
    expect(page.locator("#who [data-waiting='0']")).to_be_attached()
    run = service.start_run("asker", "Ask somebody.")
    until(lambda: bool(service.call("GET", "/approvals?state=pending")["data"]), what="the approval")
    person.renew("#who", "item-settled")
    until(lambda: page.evaluate("window.told.length > 0"), what="the notification")
    name = service.call("GET", "/organization")["name"]
    assert page.evaluate("window.told") == [f"1 waits for a person: Dragoman, {name}"]
    person.renew("#who", "item-settled")
    assert page.evaluate("window.told.length") == 1  # told once
    page.evaluate(ONE_MORE)
    assert page.evaluate("window.told")[1:] == [f"2 wait for a person: Dragoman, {name}"]
    service.call("POST", f"/runs/{run}/cancel")
    person.go("/console/inbox")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "false")


def test_a_browser_that_notifies_from_no_page_says_so_and_is_switched_off(person: Person, service: Service) -> None:
    page = person.page
    service.call("POST", "/runs/cancel", {"agent_id": service.call("GET", "/agents/asker")["id"]})
    page.context.grant_permissions(["notifications"], origin=service.url)
    page.add_init_script(
        "window.Notification = class extends window.Notification { constructor() { throw new TypeError('Illegal'); } };"
    )
    person.go("/console/inbox")
    switch = page.get_by_role("button", name="Notify me in this browser")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    person.go("/console/agents")
    expect(page.locator("#who [data-waiting='0']")).to_be_attached()
    run = service.start_run("asker", "Ask somebody.")
    until(lambda: bool(service.call("GET", "/approvals?state=pending")["data"]), what="the approval")
    person.renew("#who", "item-settled")
    expect(page.locator("#flash")).to_contain_text("Notifications are off.")
    service.call("POST", f"/runs/{run}/cancel")
    person.go("/console/inbox")
    expect(switch).to_have_attribute("aria-pressed", "false")
