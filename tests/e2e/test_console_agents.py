"""Agents, keys, usage and settings in the console, in a real browser over a real service."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser()]

ASKS = {"code_*": {"decision": "require_approval", "max_calls": 3}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("console") / "home") as running:
        model = running.script("talker", a_turn("Hello."), usage={"input_tokens": 1200, "output_tokens": 80})
        for name in ("guide", "clerk", "shared", "passing"):
            running.agent(name, model, tools=["code_execution", "send_email"], tool_policies=ASKS)
        running.call("PATCH", "/agents/guide", {"instructions": "Be brief.\nNever guess."})
        running.call("PATCH", "/agents/guide", {"instructions": "Be kind.\nNever guess.", "limits": {"max_turns": 4}})
        running.call("POST", "/runs/wait", {"agent": "guide", "input": "Hi."})
        yield running


@pytest.fixture
def person(browser: Browser, service: Service) -> Iterator[Person]:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    yield somebody
    assert somebody.complaints == []
    somebody.page.context.close()


def agree(dialog: Dialog) -> None:
    dialog.accept()


@pytest.mark.requirement("C2")
def test_the_effect_of_rules_is_shown_while_they_are_written_and_a_new_agent_is_saved(
    person: Person, service: Service
) -> None:
    page = person.page
    person.follow("Agents", "/console/agents")
    person.follow("New agent", "/console/agents/new")
    page.get_by_label("Name", exact=True).fill("writer")
    page.get_by_label("Model", exact=True).fill("scripted:talker.yaml")
    live = page.locator("#live")
    expect(live).to_contain_text("No tools.")
    page.get_by_label("code_execution").check()
    expect(live).to_contain_text("Allowed, by default.")
    page.get_by_role("button", name="Add a rule").click()
    expect(page.get_by_label("Tool: name or glob")).to_be_focused()
    page.keyboard.type("code_*")
    page.get_by_label("Decision").select_option("deny")
    expect(live).to_contain_text("by the agent's rule code_*.")
    expect(page.locator("#live-said")).to_have_text("1 blocked")
    page.get_by_label("Tool: name or glob").fill("code_execution_")
    expect(live).to_contain_text("Fits no tool of this agent; did you mean 'code_execution'?")
    page.get_by_role("button", name="Remove this rule").click()
    expect(page.get_by_role("button", name="Add a rule")).to_be_focused()
    expect(live).not_to_contain_text("Without effect")
    page.get_by_role("button", name="Add a token").click()
    page.get_by_label("Id", exact=True).fill("trap")
    page.get_by_label("Token", exact=True).fill("a-very-secret-canary")
    page.get_by_role("button", name="Create the agent").click()
    page.get_by_role("heading", name="Agent writer").wait_for()
    assert "a-very-secret-canary" not in page.content()
    saved = service.call("GET", "/agents/writer")
    assert (saved["tools"], saved["tool_policies"]) == (["code_execution"], {})
    assert saved["canary_tokens"] == [{"id": "trap", "per_run": False}]


def test_what_is_wrong_is_said_at_its_field_and_saved_once_it_is_right(browser: Browser, service: Service) -> None:
    somebody = Person(browser, service.url)
    somebody.sign_in(service.key)
    page = somebody.page
    somebody.go(f"/console/agents/{service.call('GET', '/agents/clerk')['id']}/edit")
    page.get_by_label("Turns").fill("many")
    with page.expect_request("**/console/agents/explain"):
        page.get_by_label("code_execution").uncheck()
    page.get_by_label("Description").fill("Writes.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert").filter(has_text="Not saved.")).to_be_focused()
    turns = page.get_by_label("Turns")
    expect(turns).to_have_attribute("aria-invalid", "true")
    expect(turns).to_have_accessible_description("must be a whole number")
    expect(page.get_by_label("Description")).to_have_value("Writes.")
    page.get_by_label("code_execution").check()
    expect(page.locator("#live")).to_contain_text("by the agent's rule code_*.")
    turns.fill("6")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="Versions").wait_for()
    saved = service.call("GET", "/agents/clerk")
    assert (saved["limits"]["max_turns"], saved["description"], saved["version"]) == (6, "Writes.", 2)
    # Browsers write down each answer that is a refusal; nothing else.
    assert all("status of 422" in complaint for complaint in somebody.complaints)
    somebody.page.context.close()


def test_two_who_edit_one_agent_lose_nothing(browser: Browser, service: Service) -> None:
    path = f"/console/agents/{service.call('GET', '/agents/shared')['id']}/edit"
    first, second = Person(browser, service.url), Person(browser, service.url)
    for somebody in (first, second):
        somebody.sign_in(service.key)
        somebody.go(path)
    first.page.get_by_label("Instructions").fill("Be quick.")
    first.page.get_by_role("button", name="Save").click()
    first.page.get_by_role("heading", name="Versions").wait_for()
    second.page.get_by_label("Description").fill("Shared.")
    second.page.get_by_role("button", name="Save").click()
    expect(second.page.get_by_text("version 2 was saved meanwhile")).to_be_visible()
    expect(second.page.locator(".conflict")).to_contain_text("Be quick.")
    expect(second.page.get_by_label("Instructions")).to_have_value("Be quick.")
    second.page.get_by_role("button", name="Save").click()
    second.page.get_by_role("heading", name="Versions").wait_for()
    saved = service.call("GET", "/agents/shared")
    assert (saved["version"], saved["instructions"], saved["description"]) == (3, "Be quick.", "Shared.")
    for somebody in (first, second):
        assert all("status of 412" in complaint for complaint in somebody.complaints)
        somebody.page.context.close()


@pytest.mark.requirement("C7")
def test_an_agent_is_disabled_enabled_and_deleted(person: Person, service: Service) -> None:
    page = person.page
    page.on("dialog", agree)
    person.go("/console/agents")
    person.follow("passing", f"/console/agents/{service.call('GET', '/agents/passing')['id']}")
    page.get_by_role("button", name="Disable").click()
    page.get_by_role("button", name="Enable").click()
    page.get_by_role("button", name="Disable").wait_for()  # until then it is the page before
    page.get_by_role("button", name="Cancel all runs").click()
    expect(page.get_by_text("0 cancelled, 0 stopping.")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("heading", name="Agents").wait_for()
    expect(page.get_by_role("link", name="passing")).to_have_count(0)


def test_what_changed_between_versions_can_be_read(person: Person) -> None:
    person.go("/console/agents")
    person.page.get_by_role("link", name="guide").click()
    newest = person.page.get_by_role("group").filter(has_text="Version 3")
    expect(newest.get_by_text("+ Be kind.")).to_be_visible()
    expect(newest.get_by_text("− Be brief.")).to_be_visible()
    expect(newest).to_contain_text("first start")


@pytest.mark.requirement("C6")
def test_a_key_is_made_copied_used_and_revoked(person: Person, browser: Browser, service: Service) -> None:
    page = person.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    person.follow("API keys", "/console/keys")
    page.get_by_label("Name").fill("colleague")
    page.get_by_label("Role").select_option("operator")
    page.get_by_role("button", name="Create key").click()
    token = page.get_by_label("Token. It is shown")
    expect(token).to_be_focused()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == token.input_value()
    colleague = Person(browser, service.url)
    colleague.sign_in(token.input_value())
    expect(colleague.page.get_by_role("link", name="API keys")).to_have_count(0)
    colleague.page.goto("about:blank")  # a page that renews itself would be refused in the middle of it
    page.on("dialog", agree)
    page.get_by_role("button", name="Revoke colleague").click()
    expect(page.get_by_role("row").filter(has_text="colleague")).to_contain_text("revoked")
    colleague.go("/console/runs")
    expect(colleague.page.get_by_label("API key")).to_be_visible()
    assert colleague.complaints == []
    colleague.page.context.close()


@pytest.mark.requirement("A10")
def test_usage_of_a_period_is_drawn_with_its_figures_beside(person: Person) -> None:
    page = person.page
    page.get_by_role("link", name="Usage").click()
    expect(page.get_by_role("region", name="By agent").get_by_role("link", name="guide")).to_be_visible()
    expect(page.get_by_role("img", name="Tokens by day: at most 1,280 tokens")).to_be_visible()
    page.get_by_role("link", name="Last 7 days").click()
    expect(page.get_by_role("region", name="By day").get_by_role("row")).to_have_count(8)
    page.get_by_label("Agent", exact=True).select_option(label="clerk")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No usage.")).to_have_count(3)


def test_settings_of_the_organization_show_in_the_form_of_an_agent(person: Person, service: Service) -> None:
    page = person.page
    page.get_by_role("link", name="Settings").click()
    page.wait_for_url("**/console/settings")  # with its script, which adds rules
    page.get_by_role("button", name="Add a rule").click()
    page.get_by_label("Tool: name or glob").fill("send_*")
    page.get_by_label("Decision").select_option("deny")
    page.get_by_label("Retention of runs (days)").fill("90")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as version 2. It is in effect.")).to_be_visible()
    assert service.call("GET", "/organization")["retention_days"] == 90
    person.go(f"/console/agents/{service.call('GET', '/agents/clerk')['id']}/edit")
    expect(page.locator("#live")).to_contain_text("by the organization's rule send_*.")
    service.call("PATCH", "/organization", {"tool_policies": {}})


@pytest.mark.requirement("C7")
def test_a_secret_and_a_provider_that_uses_it_are_kept(person: Person, service: Service) -> None:
    page = person.page
    person.follow("Settings", "/console/settings")
    person.follow("Secrets and model providers", "/console/secrets")
    page.get_by_label("Name", exact=True).fill("ACME")
    page.get_by_label("Value").fill("a value nobody sees")
    page.get_by_role("button", name="Store the secret").click()
    expect(page.get_by_role("status").filter(has_text="ACME is stored.")).to_be_visible()
    page.get_by_label("Name of the provider").fill("acme")
    page.get_by_label("Or the name of a secret").select_option("ACME")
    page.get_by_role("button", name="Add the provider").click()
    expect(page.get_by_role("region", name="Model providers").get_by_role("row").nth(1)).to_contain_text("secret ACME")
    assert "a value nobody sees" not in page.content()
    page.on("dialog", agree)
    page.get_by_role("button", name="Delete the provider acme").click()
    expect(page.get_by_role("status").filter(has_text="acme is deleted.")).to_be_visible()


@pytest.mark.skipif(not AXE.exists(), reason="needs `make node`")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_the_effect_of_a_rule_can_be_read_in_both_themes_and_on_a_phone(
    *, browser: Browser, service: Service, width: int, dark: bool
) -> None:
    guide = service.call("GET", "/agents/guide")["id"]
    person = Person(browser, service.url, width=width, dark=dark)
    person.sign_in(service.key)
    person.go(f"/console/agents/{guide}/edit")
    person.page.get_by_role("button", name="Add a rule").click()
    person.page.get_by_label("Tool: name or glob").last.fill("send_mail")
    expect(person.page.locator("#live")).to_contain_text("did you mean 'send_email'")
    assert person.violations() == []
    assert person.page.evaluate("document.documentElement.scrollWidth") <= width
    assert person.complaints == []
    person.page.context.close()
